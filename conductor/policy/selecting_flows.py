"""Which tools could feed which: how much the names of what one returns are like those of what another takes.

A registry seldom says which tool may follow which, but its schemas do: in NesTools three of four pairs of tools
that feed each other (training rows) have fields that share half of their words, and one in fifty of the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from conductor.policy.cards import ToolCard
from conductor.policy.parts import Floats

FLOWS = 2
"""Of two tools: the best likeness (Jaccard) of an output and an input, and whether two have the same words."""
_FIELDS = 12
"""Inputs, and outputs, of a tool that are looked at."""

Words = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWords:
    """The words in the names of a tool's fields."""

    takes: tuple[Words, ...]
    gives: tuple[Words, ...]

    @classmethod
    def of(cls, card: ToolCard) -> "FieldWords":
        """Those of a tool."""
        return cls(takes=_words(card.inputs), gives=_words(card.outputs))


def _words(names: Iterable[str]) -> tuple[Words, ...]:
    from conductor.policy.selecting_index import words_of

    found = [frozenset(words_of(name).split()) for name in list(names)[:_FIELDS]]
    return tuple(words for words in found if words)


def flows(tools: Sequence[FieldWords]) -> Floats:
    """[tools, tools, FLOWS] from what the first returns to what the second takes; none from a tool to itself."""
    found = np.zeros((len(tools), len(tools), FLOWS), dtype=np.float32)
    giving = [at for at, tool in enumerate(tools) if tool.gives]
    taking = [at for at, tool in enumerate(tools) if tool.takes]
    if not giving or not taking:
        return found
    place: dict[str, int] = {}
    for tool in tools:
        for words in (*tool.gives, *tool.takes):
            for word in words:
                place.setdefault(word, len(place))
    gives, gives_from = _bags([tools[at].gives for at in giving], place)
    takes, takes_from = _bags([tools[at].takes for at in taking], place)
    shared = gives @ takes.T
    alike = shared / (gives.sum(1)[:, None] + takes.sum(1)[None] - shared)
    best = np.maximum.reduceat(np.maximum.reduceat(alike, gives_from, axis=0), takes_from, axis=1)
    pairs = np.ix_(giving, taking)
    found[pairs] = np.stack((best, (best > 0.999).astype(np.float32)), axis=-1)
    found[np.arange(len(tools)), np.arange(len(tools))] = 0.0
    return found


def _bags(tools: Sequence[tuple[Words, ...]], place: dict[str, int]) -> tuple[Floats, list[int]]:
    """Fields as rows of ones and zeros, and the first row of each tool."""
    starts, rows = [], 0
    for fields in tools:
        starts.append(rows)
        rows += len(fields)
    bags = np.zeros((rows, len(place)), dtype=np.float32)
    for row, words in enumerate(words for fields in tools for words in fields):
        for word in words:
            bags[row, place[word]] = 1.0
    return bags, starts
