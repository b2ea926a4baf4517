"""The requests that the filler learns from: labelled once, drawn by source, varied on the way."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conductor.training.datasets import read_bfcl, read_nestools, read_sealtools
from conductor.training.examples import Example
from conductor.training.filler_labels import Labelled, labelled
from conductor.training.filler_variation import (
    Values,
    joined_requests,
    parallel_calls,
    shuffled,
    with_a_stranger,
    with_other_values,
    without_a_step,
)
from conductor.training.splits import Part, members, part_of
from conductor.training.written import FOLDER, read_written

WRITTEN = ("calls", "nested", "agents")
"""Files of `written/` whose requests have arguments that the filler gives."""


def filling_examples(data: Path, *parts: Part, written: Sequence[str] = WRITTEN) -> dict[str, tuple[Example, ...]]:
    """Examples with arguments by group: nestools, sealtools, bfcl and what was written.

    BFCL repeats requests from file to file; one that stands in several parts is used in the strictest only.
    """
    found = {
        "nestools": members(read_nestools(data), *parts),
        "sealtools": members(read_sealtools(data), *parts),
        "bfcl": members(_without_repeats(read_bfcl(data)), *parts),
    }
    names = [name for name in written if (FOLDER / f"{name}.jsonl").exists()]
    for name in names:
        rows = members(read_written(name, data), *parts)
        kept = tuple(example for example in rows if _has_arguments(example))
        if kept:
            found[name] = kept
    return found


def _without_repeats(examples: Sequence[Example]) -> tuple[Example, ...]:
    order: tuple[Part, ...] = ("dev_disjoint", "dev", "select_disjoint", "select", "train")
    strictest: dict[str, int] = {}
    for example in examples:
        words = _words(example)
        strictest[words] = min(order.index(part_of(example)), strictest.get(words, len(order)))
    return tuple(example for example in examples if order.index(part_of(example)) == strictest[_words(example)])


def _words(example: Example) -> str:
    return " ".join(re.findall(r"\w+", example.request.lower()))


def _has_arguments(example: Example) -> bool:
    return any(step.arguments or step.accept for step in example.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How often what is drawn."""

    shares: Mapping[str, float]
    """By group, relative to each other; groups without an entry share `rest`."""
    rest: float
    other_values: float
    """Requests whose values are replaced by others of their kind."""
    parallel: float
    """Single calls that become two or three calls of the same tool."""
    joined: float
    """Requests that another one is appended to."""
    shuffled: float
    """Several calls that are handed over in another order than that of the plan."""
    forgotten: float
    """Three or more calls of which one is left out."""
    strangers: float
    """Several calls among which there is one that does not belong there."""


class Draw:
    """Draws varied requests without end."""

    def __init__(self, groups: Mapping[str, Sequence[Example]], mix: Mix) -> None:
        self._groups = {name: [labelled(example) for example in group] for name, group in groups.items() if group}
        self._mix = mix
        self._values = Values.of(item for group in self._groups.values() for item in group)
        self._names = list(self._groups)
        weights = np.array([mix.shares.get(name, mix.rest) for name in self._names])
        self._weights = weights / weights.sum()

    @property
    def groups(self) -> Mapping[str, Sequence[Labelled]]:
        """What is drawn from."""
        return self._groups

    def batch(self, size: int, hardness: float, rng: np.random.Generator) -> list[Labelled]:
        """`size` requests.

        Args:
            size: How many.
            hardness: 0 for single calls only, 1 for the whole mix.
            rng: Where chance comes from.
        """
        return [self._one(hardness, rng) for _ in range(size)]

    def _one(self, hardness: float, rng: np.random.Generator) -> Labelled:
        mix = self._mix
        drawn = self._drawn(hardness, rng)
        if rng.random() < mix.other_values:
            drawn = with_other_values(drawn, self._values, rng)
        if len(drawn.steps) == 1 and rng.random() < mix.parallel * hardness:
            drawn = parallel_calls(drawn, self._values, rng)
        if rng.random() < mix.joined * hardness:
            other = self._drawn(hardness, rng)
            if len(drawn.request) + len(other.request) < 700:
                drawn = joined_requests(drawn, other, rng)
        if len(drawn.steps) > 1:
            return self._as_selected(drawn, hardness, rng)
        return drawn

    def _as_selected(self, drawn: Labelled, hardness: float, rng: np.random.Generator) -> Labelled:
        """The calls as a selection might hand them over: in another order, one too few, one too many."""
        mix = self._mix
        if len(drawn.steps) > 2 and rng.random() < mix.forgotten:
            drawn = without_a_step(drawn, rng)
        if rng.random() < mix.strangers:
            steps = self._drawn(hardness, rng).steps
            card = steps[int(rng.integers(len(steps)))].card
            if all(card.key != step.card.key for step in drawn.steps):
                drawn = with_a_stranger(drawn, card, rng)
        return shuffled(drawn, rng) if rng.random() < mix.shuffled else drawn

    def _drawn(self, hardness: float, rng: np.random.Generator) -> Labelled:
        name = self._names[int(rng.choice(len(self._names), p=self._weights))]
        group = self._groups[name]
        found = group[int(rng.integers(len(group)))]
        for _ in range(4):
            if len(found.steps) == 1 or rng.random() < hardness:
                break
            found = group[int(rng.integers(len(group)))]
        return found
