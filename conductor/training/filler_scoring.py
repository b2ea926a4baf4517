"""Scores of the filler when the right tools are given, counted as the public scorer counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conductor.plan import Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.filling import FilledStep, Filler
from conductor.policy.parts import PartRunner
from conductor.policy.reading import read
from conductor.policy.tokens import Tokens
from conductor.training.examples import Example, GoldStep
from conductor.training.filler_labels import comparable


@dataclass(frozen=True, slots=True, kw_only=True)
class FillerScores:
    """Percentages; with accepted values in place of arguments, only `calls` says something."""

    requests: int
    argument_f1: float
    dependency_f1: float
    exact: float
    """Requests with every argument right."""
    calls: float
    """Requests whose calls all have accepted arguments."""


def score_filler(parts: PartRunner, tokens: Tokens, examples: Sequence[Example]) -> FillerScores:
    """Fill the right tools of every example and compare."""
    filler = Filler(parts, tokens)
    arguments, dependencies = [0, 0, 0], [0, 0, 0]
    exact = calls = 0
    for example in examples:
        cards = {card.name: card for card in reversed(example.tools)}
        steps = [cards[step.tool] for step in example.steps]
        filled = filler.fill(read(parts, tokens, example.request), steps, filler.index(steps))
        if any(step.accept is not None for step in example.steps):
            calls += accepted(example.steps, filled)
            continue
        right = set(_gold_arguments(example.steps))
        found = set(_filled_arguments(steps, filled))
        _count(arguments, found, right)
        _count(
            dependencies,
            {(a[2][1], a[0]) for a in found if _is_reference(a)},
            {(a[2][1], a[0]) for a in right if _is_reference(a)},
        )
        exact += found == right
    count = max(1, len(examples))
    return FillerScores(
        requests=len(examples),
        argument_f1=_f1(arguments),
        dependency_f1=_f1(dependencies),
        exact=100 * exact / count,
        calls=100 * calls / count,
    )


def accepted(gold: Sequence[GoldStep], filled: Sequence[FilledStep]) -> bool:
    """Whether every call has accepted arguments, in any order of the calls of one tool."""
    left = [(step.tool, _literals(found)) for step, found in zip(gold, filled, strict=True)]
    for step in gold:
        index = next((i for i, call in enumerate(left) if call[0] == step.tool and _fits(call[1], step)), None)
        if index is None:
            return False
        left.pop(index)
    return True


def _fits(arguments: Mapping[str, Any], step: GoldStep) -> bool:
    accept = step.accept or {}
    if set(arguments) - set(accept):
        return False
    for name, values in accept.items():
        if name not in arguments:
            if "" not in values:
                return False
        elif comparable(arguments[name]) not in [comparable(value) for value in values]:
            return False
    return True


def _literals(filled: FilledStep) -> dict[str, Any]:
    return {
        name: value.argument.value
        for name, value in filled.arguments.items()
        if isinstance(value.argument, Literal)
    }


def _gold_arguments(steps: Sequence[GoldStep]) -> list[tuple[str, str, Any]]:
    found = []
    for step in steps:
        for name, value in step.arguments.items():
            if isinstance(value, Mapping) and "step" in value:
                found.append((step.tool, name, ("ref", steps[value["step"]].tool, value.get("field"))))
            else:
                found.append((step.tool, name, comparable(value)))
    return found


def _filled_arguments(cards: Sequence[ToolCard], filled: Sequence[FilledStep]) -> list[tuple[str, str, Any]]:
    found = []
    for card, step in zip(cards, filled, strict=True):
        for name, value in step.arguments.items():
            match value.argument:
                case StepRef(step=index, field=field):
                    found.append((card.name, name, ("ref", cards[index].name, field)))
                case Literal(value=literal):
                    found.append((card.name, name, comparable(literal)))
    return found


def _is_reference(argument: tuple[str, str, Any]) -> bool:
    value = argument[2]
    return isinstance(value, tuple) and len(value) == 3 and value[0] == "ref"


def _count(counts: list[int], found: set[Any], right: set[Any]) -> None:
    counts[0] += len(found & right)
    counts[1] += len(found - right)
    counts[2] += len(right - found)


def _f1(counts: Sequence[int]) -> float:
    return 200 * counts[0] / max(1, 2 * counts[0] + counts[1] + counts[2])
