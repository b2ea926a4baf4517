"""The three ways in which public data sets score plans, as `score_plans.py` beside the data computes them.

mean: node F1, link F1 and the right set of tools, averaged over requests (UltraTool). micro: tools, dependencies
and arguments counted over all requests, and whole plans (NesTools, Seal-Tools). accept: all calls right, each
argument among its accepted values, in any order (BFCL).

A missing prediction is scored as a plan without steps. Where the right plan is itself without steps (nobody can
serve the request) it is wrong all the same: silence is no refusal.
"""

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from conductor.evaluation.rows import GoldInvalid, GoldRow, GoldStep, PredictedStep, Prediction

Mode = Literal["mean", "micro", "accept"]
MODES: tuple[Mode, ...] = get_args(Mode)
Statistics = NDArray[np.float64]

_NEARLY_ONE = 0.99
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Statistics of every request, from which the figures of any sample of requests follow."""

    statistics: Statistics
    """[requests, columns]: what is summed over the requests of a sample."""
    figures: Callable[[Statistics, Statistics], Mapping[str, Statistics]]
    """Sums [samples, columns] and sizes [samples] to figures by name, each [samples], in percent."""

    def totals(self) -> dict[str, float]:
        """The figures over all requests, in percent."""
        sums = self.statistics.sum(axis=0, keepdims=True)
        sizes = np.array([len(self.statistics)], dtype=np.float64)
        return {name: float(values[0]) for name, values in self.figures(sums, sizes).items()}


def score(mode: Mode, gold: Sequence[GoldRow], predictions: Mapping[str, Prediction]) -> Scores:
    """Score predictions against the right plans.

    Raises:
        GoldInvalid: the right plans are not made for this mode.
    """
    one, figures = _MODES[mode]
    rows = [one(row, predictions.get(row.id)) for row in gold]
    return Scores(statistics=np.asarray(rows, dtype=np.float64), figures=figures)


def f1(predicted: Collection[Hashable], right: Collection[Hashable]) -> float:
    """Harmonic mean of precision and recall of two sets; 1 when both are empty."""
    ours, theirs = set(predicted), set(right)
    if not ours and not theirs:
        return 1.0
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def normalised(value: Any) -> Hashable:
    """A value as it is compared: numbers and texts that are numbers as float, other texts without case."""
    if isinstance(value, str):
        return _normalised_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _as_float(value)
    if isinstance(value, list):
        return tuple(normalised(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((name, normalised(item)) for name, item in value.items()))
    return value if isinstance(value, Hashable) else repr(value)


def _normalised_text(value: str) -> Hashable:
    text = value.strip().lower().rstrip(".").replace(",", "")
    try:
        return float(text.replace("$", ""))
    except ValueError:
        return {"true": True, "false": False}.get(text, _SPACES.sub(" ", text))


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the floats
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """A plan as sets: its tools, (tool, tool that needs it), and (tool, argument, value)."""

    tools: frozenset[Hashable]
    links: frozenset[Hashable]
    arguments: frozenset[Hashable]

    @classmethod
    def of(cls, steps: Sequence[GoldStep | PredictedStep]) -> "_Facts":
        names = [step.tool for step in steps]

        def known(index: Any) -> bool:
            return isinstance(index, int) and 0 <= index < len(names)

        def compared(value: Any) -> Hashable:
            if isinstance(value, dict) and known(value.get("step")):
                field = value.get("field")
                return ("ref", names[value["step"]], field if isinstance(field, Hashable) else repr(field))
            return normalised(value)

        return cls(
            tools=frozenset(names),
            links=frozenset(
                (names[before], step.tool) for step in steps for before in step.depends_on if known(before)
            ),
            arguments=frozenset(
                (step.tool, name, compared(value)) for step in steps for name, value in step.arguments.items()
            ),
        )

    def parts(self) -> tuple[frozenset[Hashable], ...]:
        return self.tools, self.links, self.arguments


def _mean_row(row: GoldRow, prediction: Prediction | None) -> list[float]:
    if prediction is None and not row.steps:
        return [0.0, 0.0, 0.0]
    right, ours = _Facts.of(row.steps), _Facts.of(prediction.steps if prediction else ())
    nodes = f1(ours.tools, right.tools)
    return [nodes, f1(ours.links, right.links), float(nodes >= _NEARLY_ONE)]


def _mean_figures(sums: Statistics, sizes: Statistics) -> Mapping[str, Statistics]:
    return {name: 100 * sums[:, column] / sizes for column, name in enumerate(("node_f1", "link_f1", "acc"))}


def _micro_row(row: GoldRow, prediction: Prediction | None) -> list[float]:
    right, ours = _Facts.of(row.steps), _Facts.of(prediction.steps if prediction else ())
    counts: list[float] = []
    for predicted, wanted in zip(ours.parts(), right.parts(), strict=True):
        counts += [len(predicted & wanted), len(predicted - wanted), len(wanted - predicted)]
    exact = ours == right and (prediction is not None or bool(row.steps))
    return [*counts, float(exact)]


def _micro_figures(sums: Statistics, sizes: Statistics) -> Mapping[str, Statistics]:
    figures: dict[str, Statistics] = {}
    for place, name in enumerate(("tool_f1", "dep_f1", "arg_f1")):
        both, too_many, too_few = (sums[:, 3 * place + column] for column in range(3))
        figures[name] = 200 * both / np.maximum(1, 2 * both + too_many + too_few)
    return figures | {"exact": 100 * sums[:, 9] / sizes}


def _accept_row(row: GoldRow, prediction: Prediction | None) -> list[float]:
    if any(step.accept is None for step in row.steps):
        raise GoldInvalid(f"{row.id}: mode accept needs accepted values in every step", field="accept")
    return [float(prediction is not None and _accepted(prediction.steps, row.steps))]


def _accepted(steps: Sequence[PredictedStep], right: Sequence[GoldStep]) -> bool:
    """Whether every right call takes a call of its own, in any order, and none is left."""
    left = list(steps)
    if len(left) != len(right):
        return False
    for wanted in right:
        place = next((index for index, step in enumerate(left) if _fits(step, wanted)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _fits(step: PredictedStep, wanted: GoldStep) -> bool:
    accept = wanted.accept or {}
    return (
        step.tool == wanted.tool
        and not set(step.arguments) - set(accept)
        and all(
            _among(step.arguments[name], values) if name in step.arguments else "" in values
            for name, values in accept.items()
        )
    )


def _among(value: Any, accepted: Sequence[Any]) -> bool:
    ours = normalised(value)
    return any(ours == normalised(option) for option in accepted)


def _accept_figures(sums: Statistics, sizes: Statistics) -> Mapping[str, Statistics]:
    return {"acc": 100 * sums[:, 0] / sizes}


_MODES: Mapping[Mode, tuple[Callable[[GoldRow, Prediction | None], list[float]], Any]] = {
    "mean": (_mean_row, _mean_figures),
    "micro": (_micro_row, _micro_figures),
    "accept": (_accept_row, _accept_figures),
}
