"""The modules that fill arguments: vectors of a tool's fields, and the joint pass."""

from typing import Any

import torch
from torch import Tensor, nn

from conductor.policy.filling_inputs import (
    ITEM_FEATURES,
    MAX_STEPS,
    OPTION_FEATURES,
    PAIR_FEATURES,
    PIECE_FEATURES,
)
from conductor.policy.filling_kinds import KINDS
from conductor.policy.parts import WIDTH
from conductor.training.encoder import Top

_HEAD = 128
_SPAN = 48
_LONG = 16
"""Pieces beyond which all spans are alike."""


class FillTool(nn.Module):
    """Vectors of a tool's fields out of the states of its texts: the mean of their pieces."""

    def forward(self, states: Tensor, mask: Tensor, pool: Tensor) -> Tensor:
        """[texts, rows, WIDTH] of `states` [texts, length, WIDTH] by the weights `pool` [texts, rows, length]."""
        return torch.matmul(pool * mask[:, None, :].to(pool.dtype), states)


class FillJoint(nn.Module):
    """One pass over the request and every step, argument and result, so that all of them see each other."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Top()
        layer: Any
        for layer in self.top.layers:
            # Heads of 32 are too narrow for torch's fused kernel: plain products train a third faster. Attention
            # weights are not dropped for the same reason; hidden states are.
            layer.attention.self.config._attn_implementation = "eager"
            layer.attention.self.dropout.p = 0.0
        self.item = nn.Linear(2 * WIDTH, WIDTH)
        half = 0.5 * torch.eye(WIDTH)
        with torch.no_grad():
            self.item.weight.copy_(torch.cat([half, half], dim=1))
            self.item.bias.zero_()
        self.item_norm = nn.LayerNorm(WIDTH)
        self.item_kind = nn.Embedding(4, WIDTH)
        self.item_step = nn.Embedding(MAX_STEPS, WIDTH)
        self.item_features = nn.Linear(ITEM_FEATURES, WIDTH)
        self.piece_features = nn.Linear(PIECE_FEATURES, WIDTH)
        for embedding in (self.item_kind, self.item_step):
            nn.init.normal_(embedding.weight, std=0.02)
        self.dropout = nn.Dropout(0.1)
        self.kind = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, KINDS))
        self.pointer_items = nn.Linear(WIDTH, 4 * _HEAD)
        self.pointer_pieces = nn.Linear(WIDTH, 4 * _HEAD)
        self.option_items = nn.Linear(2 * WIDTH, WIDTH)
        self.option_features = nn.Linear(OPTION_FEATURES, 1)
        self.reference_inputs = nn.Linear(WIDTH, _HEAD)
        self.reference_outputs = nn.Linear(WIDTH, _HEAD)
        self.span_begins = nn.Linear(WIDTH, _SPAN)
        self.span_ends = nn.Linear(WIDTH, _SPAN)
        self.span_length = nn.Parameter(torch.zeros(_LONG + 1))
        self.reference_features = nn.Sequential(nn.Linear(PAIR_FEATURES, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(
        self,
        states: Tensor,
        mask: Tensor,
        pieces: Tensor,
        items: Tensor,
        item_kind: Tensor,
        item_step: Tensor,
        item_features: Tensor,
        options: Tensor,
        option_mask: Tensor,
        option_features: Tensor,
        pairs: Tensor,
    ) -> tuple[Tensor, ...]:
        """Scores of every item; shapes as `conductor.policy.filling_inputs` builds them, with a batch axis first.

        Returns:
            kind [batch, items, KINDS]; pointers [batch, items, 4, pieces] (start, end, first piece of an item of
            a list, inside of a list); option [batch, items, options]; reference [batch, items, items]; span
            [batch, pieces, pieces]: how well a value that begins at the first ends at the second, whatever asks
            for it; added to the pointer to the end.
        """
        length = states.shape[1]
        offered = self.item_norm(self.item(items)) + self.item_kind(item_kind) + self.item_step(item_step)
        offered = offered + self.item_features(item_features)
        sequence = torch.cat([states + self.piece_features(pieces), self.dropout(offered)], dim=1)
        present = torch.cat([mask, (item_kind > 0).to(mask.dtype)], dim=1)
        read = self.dropout(self.top(sequence, present))
        words, things = read[:, :length], read[:, length:]
        rows = things.shape[1]

        asked = self.pointer_items(things).reshape(-1, rows, 4, _HEAD).transpose(1, 2)
        held = self.pointer_pieces(words).reshape(-1, length, 4, _HEAD).transpose(1, 2)
        pointers = torch.matmul(asked, held.transpose(2, 3)).transpose(1, 2) / _HEAD**0.5
        blocked = (1.0 - mask[:, None, None, :].to(pointers.dtype)) * -1e4
        pointers = pointers + blocked
        looked = torch.softmax(pointers[:, :, 0], dim=-1).to(words.dtype)
        evidence = torch.matmul(looked, words)
        both = torch.cat([things, evidence], dim=-1)
        kind = self.kind(both)

        wanted = self.option_items(both)[:, :, :, None].to(options.dtype)
        option = torch.matmul(options, wanted)[..., 0] / WIDTH**0.5
        option = option + self.option_features(option_features)[..., 0] + (1.0 - option_mask) * -1e4

        asking, giving = self.reference_inputs(things), self.reference_outputs(things)
        reference = torch.matmul(asking, giving.transpose(1, 2)) / _HEAD**0.5
        reference = reference + self.reference_features(pairs)[..., 0]
        reference = reference + (1.0 - pairs[..., 0]) * -1e4

        begins, ends = self.span_begins(words), self.span_ends(words)
        ahead = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        span = torch.matmul(begins, ends.transpose(1, 2)) / _SPAN**0.5
        span = span + self.span_length[ahead.clamp(0, _LONG)][None]
        span = span + ((ahead < 0).to(span.dtype) * -1e4)[None] + blocked[:, 0]
        return kind, pointers, option, reference, span
