"""The selection of tools as torch modules: which of the tools there are make up the plan, in which order.

A request is read by `Top` over the shared layers, and so is the text of every tool. Relevance (cosine and MaxSim)
makes a short list; on it a joint block lets the tools see each other, the request and the allowed links, so that
near-synonyms are told apart; a recurrent pointer then picks tool after tool until STOP, which is entry 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from conductor.policy.parts import WIDTH
from conductor.policy.selecting_flows import FLOWS
from conductor.training.selector_reading import FEATURES, Foreign, Reader, Relevance, places_of

VERDICTS = ("ok", "failed", "unavailable", "irrelevant", "missing")
"""What a step of an earlier plan came to; the index is the input of `Feedback`."""
HIDDEN = 256
RANK = 48
EDGES = 1 + FLOWS
"""What is known of two tools: an allowed link, and `flows` of their schemas."""
MOVES = 6
"""What is known of going on to a tool: see `moves`."""
HEADS = 8
WAVES = 12
"""Sine waves that tell a row of memory where in the request it stands."""
_FAR = -1e4
_SELDOM = -6.0
"""Logit with which a tool of the short list begins: most of them are not in the plan."""


class Layer(nn.Module):
    """Tools see each other (and the links), then the request."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(3))
        self.own = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.own_out = nn.Linear(HIDDEN, HIDDEN)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.memory = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.feed = nn.Sequential(
            nn.Linear(HIDDEN, 2 * HIDDEN), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * HIDDEN, HIDDEN)
        )
        self.edges = nn.Parameter(torch.zeros(2, EDGES, HEADS))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, own_bias: Tensor, edges: Tensor, memory: Tensor, memory_bias: Tensor) -> Tensor:
        """`x` [n, k, HIDDEN]; `edges` [n, k, k, EDGES]; biases are added to the attention's scores."""
        q, k, v = (heads(part) for part in self.own(self.norms[0](x)).chunk(3, dim=-1))
        bias = own_bias[:, None, None, :]
        bias = bias + (edges @ self.edges[0]).permute(0, 3, 1, 2)
        bias = bias + (edges @ self.edges[1]).permute(0, 3, 2, 1)
        x = x + self.drop(self.own_out(joined(attend(q, k, v, bias)[0])))
        q = heads(self.query(self.norms[1](x)))
        k, v = (heads(part) for part in self.memory(memory).chunk(2, dim=-1))
        x = x + self.drop(self.out(joined(attend(q, k, v, memory_bias[:, None, None, :])[0])))
        found: Tensor = x + self.drop(self.feed(self.norms[2](x)))
        return found


def heads(x: Tensor) -> Tensor:
    """[n, l, HIDDEN] to [n, HEADS, l, HIDDEN / HEADS]."""
    return x.reshape(x.shape[0], x.shape[1], HEADS, HIDDEN // HEADS).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """What `heads` took apart."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], HIDDEN)


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention and its weights; leading axes broadcast."""
    scores = q @ k.transpose(-1, -2) / (HIDDEN // HEADS) ** 0.5 + bias
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


class Memory(nn.Module):
    """What the joint block and the pointer look at: tokens of a request, and steps of an earlier plan."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(WIDTH, HIDDEN)
        self.place = nn.Linear(2 * WAVES, HIDDEN, bias=False)
        self.norm = nn.LayerNorm(HIDDEN)
        self.feedback = nn.Linear(WIDTH, HIDDEN)
        self.verdict = nn.Embedding(len(VERDICTS), HIDDEN)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Rows of memory [n, l, HIDDEN] of top states [n, l, WIDTH] under the mask [n, l]."""
        angles = places_of(mask)[:, :, None] * (math.pi * torch.arange(1, WAVES + 1, dtype=torch.float32))
        waves = torch.cat((torch.sin(angles), torch.cos(angles)), dim=-1)
        found: Tensor = self.norm(self.read(states) + self.place(waves))
        return found

    def of_feedback(self, tools: Tensor, verdicts: Tensor) -> Tensor:
        """Rows of memory [n, s, HIDDEN] of an earlier plan's tool vectors [n, s, WIDTH] and verdicts [n, s]."""
        found: Tensor = self.norm(self.feedback(tools) + self.verdict(verdicts))
        return found


class Joint(nn.Module):
    """The short list seen as a whole, under the request and the links."""

    def __init__(self, dropout: float, layers: int) -> None:
        super().__init__()
        self.tool = nn.Linear(WIDTH, HIDDEN)
        self.features = nn.Linear(FEATURES, HIDDEN)
        self.stop = nn.Parameter(torch.randn(HIDDEN) * 0.1)
        self.verdict = nn.Embedding(1 + len(VERDICTS), HIDDEN)
        self.linked = nn.Parameter(torch.zeros(HIDDEN))
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(HIDDEN)
        self.unary = nn.Linear(HIDDEN, 1)
        self.by_relevance = nn.Parameter(torch.tensor([0.3]))
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.leaves = nn.Linear(HIDDEN, RANK)
        self.enters = nn.Linear(HIDDEN, RANK)
        self.memory = nn.Linear(HIDDEN, 2 * HIDDEN)

    def forward(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        tools: Tensor,
        features: Tensor,
        mask: Tensor,
        edges: Tensor,
        given: Tensor,
        verdicts: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Entries 0 (STOP) to k (the tools of the short list).

        Args:
            memory: [n, m, HIDDEN].
            memory_mask: [n, m], 1 where there is a row.
            tools: vectors [n, k, WIDTH].
            features: of relevance [n, k, FEATURES].
            mask: [n, k], 1 where there is a tool.
            edges: [n, k, k, EDGES], of the first tool to the second: 1 for an allowed link, then `flows`.
            given: [n], 1 where links are known at all.
            verdicts: [n, k], int64: 0, or 1 + the number of the verdict where an earlier plan had this tool.

        Returns:
            Entries [n, k+1, HIDDEN], unary logits [n, k+1], keys [n, k+1, HIDDEN], what leaves and enters an entry
            [n, k+1, RANK], and keys and values of the memory [n, m, HIDDEN].
        """
        n = tools.shape[0]
        x = self.tool(tools) + self.features(features * 0.2) + given[:, None, None] * self.linked
        x = x + self.verdict(verdicts)
        x = torch.cat(((self.stop[None, None] + given[:, None, None] * self.linked).expand(n, 1, -1), x), dim=1)
        own_bias = functional.pad((1.0 - mask.to(x.dtype)) * _FAR, (1, 0))
        edges = functional.pad(edges.to(x.dtype), (0, 0, 1, 0, 1, 0))
        memory_bias = (1.0 - memory_mask.to(x.dtype)) * _FAR
        for layer in self.layers:
            x = layer(x, own_bias, edges, memory, memory_bias)
        x = self.norm(x)
        unary = self.unary(x)[:, :, 0]
        unary = unary + functional.pad(features[:, :, 0] * self.by_relevance, (1, 0)) + own_bias
        keys, values = self.memory(memory).chunk(2, dim=-1)
        return x, unary, self.key(x), self.leaves(x), self.enters(x), keys, values


class Step(nn.Module):
    """One choice of the pointer for each path that is being followed."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.coverage = nn.Parameter(torch.full((HEADS,), -0.3))
        self.mix = nn.Sequential(
            nn.Linear(2 * HIDDEN, HIDDEN), nn.GELU(), nn.Dropout(dropout), nn.Linear(HIDDEN, HIDDEN)
        )
        self.again = nn.Linear(HIDDEN, 1)
        self.stop = nn.Linear(HIDDEN + 4, 1)
        self.by_unary = nn.Parameter(torch.tensor([1.0]))
        self.link = nn.Parameter(torch.tensor([2.0]))
        self.moves = nn.Sequential(nn.Linear(MOVES, 16), nn.GELU(), nn.Linear(16, 1))
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        state: Tensor,
        previous: Tensor,
        leaves: Tensor,
        coverage: Tensor,
        chosen: Tensor,
        linked: Tensor,
        moves: Tensor,
        given: Tensor,
        unary: Tensor,
        keys: Tensor,
        enters: Tensor,
        memory_keys: Tensor,
        memory_values: Tensor,
        memory_mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities of the next entry, the new state and the new coverage.

        Args:
            state: [b, HIDDEN]; zeros at the start.
            previous: entry that was chosen last [b, HIDDEN]; STOP's entry at the start.
            leaves: of that entry [b, RANK]; zeros at the start.
            coverage: attention that rows of the memory have had [b, m].
            chosen: how often each entry was chosen [b, k+1].
            linked: 1 where a link leads from the last entry [b, k+1].
            moves: what is known of going on to each entry [b, k+1, MOVES]; see `moves`.
            given: [b], 1 where links are known and there is a last tool.
            unary: of `Joint`, [n, k+1] where n is b, or 1 for all paths; likewise the rest.
            keys: [n, k+1, HIDDEN].
            enters: [n, k+1, RANK].
            memory_keys: [n, m, HIDDEN].
            memory_values: [n, m, HIDDEN].
            memory_mask: [n, m].
        """
        state = self.cell(self.drop(previous), state)
        bias = (1.0 - memory_mask.to(state.dtype)) * _FAR
        bias = bias[:, None, None, :] + coverage[:, None, None, :] * self.coverage[None, :, None, None]
        query = self.query(state)[:, None, :]
        context, attention = attend(heads(query), heads(memory_keys), heads(memory_values), bias)
        query = self.mix(torch.cat((state, joined(context)[:, 0]), dim=-1))
        scores = (query[:, None, :] @ keys.transpose(1, 2))[:, 0] / HIDDEN**0.5
        scores = scores + unary * self.by_unary + (leaves[:, None, :] @ enters.transpose(1, 2))[:, 0] / RANK**0.5
        scores = scores + given[:, None] * linked * self.link + self.moves(moves)[:, :, 0]
        scores = scores + chosen * (self.again(query) - 2.0)
        left = unary[:, 1:] + torch.clamp(chosen[:, 1:], max=1.0) * _FAR
        most = left.amax(dim=1, keepdim=True).clamp(min=-10.0)
        rest = (torch.sigmoid(left).sum(dim=1, keepdim=True)).expand(state.shape[0], 1)
        count = chosen.sum(dim=1, keepdim=True)
        stop = self.stop(
            torch.cat((query, most.expand(state.shape[0], 1) * 0.2, rest, count * 0.3, given[:, None]), dim=-1)
        )
        scores = torch.cat((scores[:, :1] + stop, scores[:, 1:]), dim=1)
        return torch.log_softmax(scores, dim=-1), state, coverage + attention.mean(dim=1)[:, 0]


class SelectorModel(nn.Module):
    """All that is trained of the selection."""

    def __init__(self, *, dropout: float = 0.15, layers: int = 2, maxsim: bool = True) -> None:
        super().__init__()
        self.reader = Reader()
        self.foreign = Foreign()
        self.relevance = Relevance(maxsim=maxsim)
        self.memory = Memory()
        self.joint = Joint(dropout, layers)
        self.step = Step(dropout)
        self._start_alike()

    @torch.no_grad()
    def _start_alike(self) -> None:
        """Tools and pieces of the request begin in one space, so that attention means likeness from the start."""
        self.joint.tool.weight.copy_(self.memory.read.weight)
        for layer in (part for part in self.joint.layers if isinstance(part, Layer)):
            layer.query.weight.copy_(layer.memory.weight[:HIDDEN])
        self.joint.unary.bias.fill_(_SELDOM)
        self.joint.verdict.weight.zero_()
        last: Any = self.step.moves[-1]
        last.weight.zero_()
        last.bias.zero_()

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Those that were trained before and move slowly."""
        return list(self.reader.top.parameters())

    def head_parameters(self) -> list[nn.Parameter]:
        """Those that start from nothing."""
        slow = {id(parameter) for parameter in self.encoder_parameters()}
        return [parameter for parameter in self.parameters() if id(parameter) not in slow]


def sequence_log_probabilities(
    step: Step,
    joint: Sequence[Tensor],
    memory_mask: Tensor,
    path: Tensor,
    given: Tensor,
    edges: Tensor,
    places: Tensor,
) -> Tensor:
    """Log-probabilities [n, steps, k+1] along given paths.

    Args:
        step: the pointer.
        joint: what `Joint` returned.
        memory_mask: [n, m].
        path: entries chosen so far [n, steps - 1]; 0 after the end.
        given: [n], 1 where links are known.
        edges: [n, k, k, EDGES].
        places: where the request speaks of each tool [n, k]; see `Relevance`.
    """
    entries, unary, keys, leaves, enters, memory_keys, memory_values = joint
    n = entries.shape[0]
    rows = torch.arange(n)
    edges = functional.pad(edges.to(entries.dtype), (0, 0, 1, 0, 1, 0))
    places = functional.pad(places.to(entries.dtype), (1, 0))
    state = torch.zeros_like(entries[:, 0])
    previous, left = entries[:, 0], torch.zeros_like(leaves[:, 0])
    coverage = torch.zeros_like(memory_mask, dtype=entries.dtype)
    chosen = torch.zeros_like(unary)
    linked, known = torch.zeros_like(unary), torch.zeros_like(given)
    flow = torch.zeros(*unary.shape, 3, dtype=entries.dtype)
    place = torch.zeros(n, 1, dtype=entries.dtype)
    found = []
    for at in range(path.shape[1] + 1):
        scores, state, coverage = step(
            state, previous, left, coverage, chosen, linked, moves(flow, places - place), known, unary, keys,
            enters, memory_keys, memory_values, memory_mask,
        )  # fmt: skip
        found.append(scores)
        if at < path.shape[1]:
            entry = path[:, at]
            previous, left, linked = entries[rows, entry], leaves[rows, entry], edges[rows, entry, :, 0]
            after, before = edges[rows, entry, :, 1], edges[rows, :, entry, 1]
            flow = torch.stack(
                (after, torch.maximum(flow[:, :, 1], after), torch.maximum(flow[:, :, 2], before)), dim=-1
            )
            place = places[rows, entry][:, None]
            known = given * (entry > 0)
            chosen = chosen + functional.one_hot(entry, unary.shape[1]) * (entry > 0)[:, None]
    return torch.stack(found, dim=1)


def moves(flow: Tensor, ahead: Tensor) -> Tensor:
    """[b, k+1, MOVES] of what is known of going on to each entry.

    Args:
        flow: [b, k+1, 3]: how well the last tool, and the best of all chosen ones, feeds the entry, and how well
            the entry feeds the best of them.
        ahead: [b, k+1]: how much later than the last tool the request speaks of the entry.
    """
    return torch.cat((flow, torch.stack((ahead, ahead.abs(), (-ahead).clamp(min=0.0)), dim=-1)), dim=-1)
