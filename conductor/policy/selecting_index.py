"""What the selection keeps of each tool: vectors of its text, computed once when it is registered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conductor.policy.cards import ToolCard
from conductor.policy.parts import BOTTOM, WIDTH, Floats, PartRunner
from conductor.policy.selecting_flows import FieldWords
from conductor.policy.tokens import TokenBatch, Tokens

TOOL_PIECES = 48
"""Word pieces of a tool's text that are read; the rest of a long description is left out."""
KEPT_TOKENS = 24
"""Token vectors kept of each tool."""
TOKEN = 96
"""Length of a token vector."""
_NAMED_FIELDS = 8
_BATCH = 16
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolVectors:
    """One tool as the selection sees it."""

    vector: Floats
    """[WIDTH], unit length."""
    tokens: Floats
    """[KEPT_TOKENS, TOKEN], rows of zeros at the end of a short text."""
    mask: Floats
    """[KEPT_TOKENS], 1 where there is a token."""
    fields: FieldWords


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolIndex:
    """The tools that can be chosen from; a tool's number is its place here."""

    cards: tuple[ToolCard, ...]
    vectors: Floats
    """[tools, WIDTH]."""
    tokens: Floats
    """[tools, KEPT_TOKENS, TOKEN]."""
    mask: Floats
    """[tools, KEPT_TOKENS]."""
    fields: tuple[FieldWords, ...]
    """The words of what each takes and returns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names in their order."""
        return tuple(card.name for card in self.cards)


def words_of(name: str) -> str:
    """An identifier as words: `bookHotel.v2_now` reads "book hotel v2 now"."""
    spaced = _CAMEL.sub(" ", name)
    return " ".join(_SEPARATORS.sub(" ", spaced).split()).lower()


def tool_text(card: ToolCard) -> str:
    """What is read of a tool: its name in words, its description, the names of what it takes and returns."""
    text = f"{words_of(card.name)}: {' '.join(card.description.split())}"
    if card.inputs:
        text += " | " + _fields(card.inputs)
    if card.outputs:
        text += " > " + _fields(card.outputs)
    return text


def _fields(properties: Mapping[str, Any]) -> str:
    return ", ".join(words_of(name) for name in list(properties)[:_NAMED_FIELDS])


def cut(batch: TokenBatch, pieces: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and mask of the first `pieces` of each row; the end marker of a cut row goes with the rest."""
    return batch.ids[:, :pieces], batch.mask[:, :pieces]


def kept_tokens(tokens: Floats, mask: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The token vectors that are kept: without the markers at both ends.

    Args:
        tokens: [n, length, TOKEN].
        mask: [n, length].

    Returns:
        Tokens [n, KEPT_TOKENS, TOKEN] and their mask.
    """
    n, length, _ = tokens.shape
    found = np.zeros((n, KEPT_TOKENS, TOKEN), dtype=np.float32)
    on = np.zeros((n, KEPT_TOKENS), dtype=np.float32)
    ends = mask.sum(axis=1)
    size = min(KEPT_TOKENS, length - 1)
    places = np.arange(1, size + 1)
    on[:, :size] = (places[None] < np.maximum(ends - 1, 2)[:, None]) & (places[None] < ends[:, None])
    found[:, :size] = tokens[:, 1 : size + 1] * on[:, :size, None]
    return found, on


class Indexer:
    """Computes and keeps the vectors of tools by the content of their cards."""

    def __init__(self, parts: PartRunner, tokens: Tokens, *, kept: int = 20_000) -> None:
        """Begin with nothing kept.

        Args:
            parts: the model.
            tokens: the vocabulary.
            kept: how many tools are kept; the oldest go first.
        """
        self._parts = parts
        self._tokens = tokens
        self._kept = kept
        self._vectors: dict[str, ToolVectors] = {}

    def index(self, cards: Sequence[ToolCard]) -> ToolIndex:
        """The index of `cards`; only those are computed that were not seen before.

        Raises:
            OnnxError: the runtime failed.
        """
        missing = {card.key: card for card in cards if card.key not in self._vectors}
        ordered = sorted(missing.values(), key=lambda card: len(card.description))
        for start in range(0, len(ordered), _BATCH):
            self._compute(ordered[start : start + _BATCH])
        found = [self._vectors[card.key] for card in cards]
        index = ToolIndex(
            cards=tuple(cards),
            vectors=_stacked([item.vector for item in found], (WIDTH,)),
            tokens=_stacked([item.tokens for item in found], (KEPT_TOKENS, TOKEN)),
            mask=_stacked([item.mask for item in found], (KEPT_TOKENS,)),
            fields=tuple(item.fields for item in found),
        )
        for key in list(self._vectors)[: max(0, len(self._vectors) - self._kept)]:
            del self._vectors[key]
        return index

    def _compute(self, cards: Sequence[ToolCard]) -> None:
        ids, mask = cut(self._tokens.batch([tool_text(card) for card in cards]), TOOL_PIECES)
        states = self._parts.run(BOTTOM, {"ids": ids, "mask": mask})["states"]
        read = self._parts.run("select_reader", {"states": states, "mask": mask})
        tokens, on = kept_tokens(read["tokens"], mask)
        for row, card in enumerate(cards):
            self._vectors[card.key] = ToolVectors(
                vector=np.asarray(read["vector"][row], dtype=np.float32),
                tokens=tokens[row],
                mask=on[row],
                fields=FieldWords.of(card),
            )


def _stacked(rows: Sequence[Floats], shape: tuple[int, ...]) -> Floats:
    return np.stack(rows).astype(np.float32, copy=False) if rows else np.zeros((0, *shape), dtype=np.float32)
