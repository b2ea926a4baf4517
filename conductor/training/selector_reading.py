"""How the selection reads a request and the texts of tools, and how it tells which tools are relevant."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from conductor.policy.parts import WIDTH
from conductor.policy.selecting import PLACE_SCALE
from conductor.training.encoder import Top

FOREIGN = 512
"""Length of a multilingual sentence vector."""
TOKEN = 96
"""Length of a token vector."""
FEATURES = 6
"""Relevance itself and what it is made of: cosine, request to tool, tool to request; the best likeness of one of
the request's tokens; and `PLACE`."""
_FAR = -1e4


class Reader(nn.Module):
    """Request or tool text: states of the shared layers to a vector, token vectors and their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Top()
        # Of the ways to compute attention the plain one is the fastest here, by two and a half times.
        layer: Any = self.top.layers[0]
        layer.attention.self.config._attn_implementation = "eager"
        for part in self.top.modules():
            # Random zeros cost a third of a step here; hidden word pieces do their work.
            if isinstance(part, nn.Dropout):
                part.p = 0.0
        self.token = nn.Linear(WIDTH, TOKEN, bias=False)
        self.weight = nn.Linear(WIDTH, 1)

    def forward(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """States [n, l, WIDTH] and mask [n, l] to what is read of them.

        Returns:
            Top states [n, l, WIDTH], vector [n, WIDTH], tokens [n, l, TOKEN] and their weights [n, l].
        """
        found = self._through_top(states, mask)
        on = mask.to(found.dtype)
        vector = functional.normalize((found * on[:, :, None]).sum(1) / on.sum(1, keepdim=True), dim=-1)
        tokens = functional.normalize(self.token(found), dim=-1) * on[:, :, None]
        weights = torch.softmax(self.weight(found)[:, :, 0] + (1.0 - on) * _FAR, dim=1)
        return found, vector, tokens, weights

    def _through_top(self, states: Tensor, mask: Tensor) -> Tensor:
        """In training all of it in bfloat16, which halves the time; the weights themselves stay as they are."""
        if not self.training:
            found: Tensor = self.top(states, mask)
            return found
        narrow = {name: value.to(torch.bfloat16) for name, value in self.top.named_parameters()}
        with torch.autocast("cpu", enabled=False):
            wide: Tensor = functional_call(self.top, narrow, (states.to(torch.bfloat16), mask))
        return wide.float()


class Foreign(nn.Module):
    """Sentence vectors in the place of word pieces, for languages that the encoder does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.widen = nn.Sequential(nn.Linear(FOREIGN, WIDTH * 2), nn.GELU(), nn.Linear(WIDTH * 2, WIDTH))
        self.vector = nn.Linear(FOREIGN, WIDTH)
        self.token = nn.Linear(FOREIGN, TOKEN)
        self.weight = nn.Linear(FOREIGN, 1)

    def forward(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """`vectors` [n, k, FOREIGN], row 0 of each the whole request, to what `Reader` gives of word pieces."""
        on = mask.to(vectors.dtype)
        vector = functional.normalize(self.vector(vectors[:, 0]), dim=-1)
        tokens = functional.normalize(self.token(vectors), dim=-1) * on[:, :, None]
        weights = torch.softmax(self.weight(vectors)[:, :, 0] + (1.0 - on) * _FAR, dim=1)
        return self.widen(vectors), vector, tokens, weights


class Relevance(nn.Module):
    """How well each tool fits a request, from vectors alone; makes the short list."""

    def __init__(self, *, maxsim: bool = True) -> None:
        """Without `maxsim`, an ablation, only the vectors of whole texts are compared."""
        super().__init__()
        self._maxsim = maxsim
        self.scale = nn.Parameter(torch.tensor([10.0, 4.0, 8.0]))
        self.sharpness = nn.Parameter(torch.tensor([12.0]))

    def forward(
        self,
        vector: Tensor,
        tokens: Tensor,
        weights: Tensor,
        tools: Tensor,
        tool_tokens: Tensor,
        tool_mask: Tensor,
    ) -> Tensor:
        """Features [n, tools, FEATURES].

        Args:
            vector: of the requests [n, WIDTH].
            tokens: of the requests [n, l, TOKEN]; rows of padding are zero.
            weights: of those [n, l], sum 1.
            tools: vectors [tools, WIDTH].
            tool_tokens: [tools, t, TOKEN].
            tool_mask: [tools, t], 1 where there is a token.
        """
        n, length, _ = tokens.shape
        count, size, _ = tool_tokens.shape
        tokens = tokens.float()
        cosine = vector @ tools.T
        flat = tool_tokens.reshape(count * size, TOKEN)
        likeness = (tokens.reshape(n * length, TOKEN) @ flat.T).reshape(n, length, count, size)
        to_tool = likeness.amax(dim=3)
        from_tool = likeness.amax(dim=1)
        on = tool_mask.to(likeness.dtype)
        offered = (from_tool * on[None]).sum(2) / on.sum(1).clamp(min=1.0)[None]
        return self._features(cosine, to_tool, weights, offered)

    def of_lists(
        self,
        vector: Tensor,
        tokens: Tensor,
        weights: Tensor,
        tools: Tensor,
        tool_tokens: Tensor,
        tool_mask: Tensor,
    ) -> Tensor:
        """The same where each request has its own few tools, [n, k, ...] in the place of [tools, ...]."""
        n, count, size, _ = tool_tokens.shape
        cosine = (tools @ vector[:, :, None])[:, :, 0]
        flat = tool_tokens.reshape(n, count * size, TOKEN).to(tokens.dtype)
        likeness = tokens @ flat.transpose(1, 2)
        to_tool = likeness.reshape(n, -1, count, size).max(dim=3).values.float()
        from_tool = likeness.max(dim=1).values.float().reshape(n, count, size)
        offered = (from_tool * tool_mask).sum(2) / tool_mask.sum(2).clamp(min=1.0)
        return self._features(cosine, to_tool, weights, offered)

    def _features(self, cosine: Tensor, to_tool: Tensor, weights: Tensor, offered: Tensor) -> Tensor:
        """`to_tool` [n, l, tools]: the likeness of each token of the request to the likest of each tool."""
        asked = (to_tool * weights[:, :, None]).sum(1)
        parts = torch.stack((cosine, asked, offered), dim=-1)
        if not self._maxsim:
            parts = parts * torch.tensor([1.0, 0.0, 0.0])
        total = (parts * self.scale).sum(-1, keepdim=True)
        spoken = torch.softmax(self.sharpness * to_tool + weights.clamp(min=1e-9).log()[:, :, None], dim=1)
        place = (spoken * places_of(weights)[:, :, None]).sum(1) * PLACE_SCALE
        peak = (to_tool - 1e4 * (weights <= 0)[:, :, None]).amax(1)
        return torch.cat((total, parts, torch.stack((peak, place), dim=-1)), dim=-1)


def places_of(mask: Tensor) -> Tensor:
    """[n, l]: where in its text each row stands, 0 for the first and 1 for the last.

    Args:
        mask: [n, l], above 0 where there is a row; some may be hidden in training.
    """
    at = torch.arange(mask.shape[1])[None, :]
    last = (at * (mask > 0)).amax(1, keepdim=True)
    return (at / last.clamp(min=1)).clamp(max=1.0)
