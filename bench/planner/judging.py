"""Figures that need a look at single plans: first agents, sets that are right too, refusals, confidence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.planner.suites import CLARIFY, Suite
from conductor.evaluation.calibration import (
    Judged,
    accepted_at,
    bins_of,
    calibration_error,
    error_by_chance,
    judged,
    risk_coverage,
    threshold_for,
)
from conductor.evaluation.intervals import Interval, intervals
from conductor.evaluation.rows import Prediction, read_gold, read_predictions
from conductor.evaluation.scoring import Scores, Statistics
from conductor.training.examples import Example

PRECISION = 0.95
"""Share of the accepted plans that must be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of some requests came out as wanted."""

    right: int
    of: int
    interval: Interval

    def to_json(self) -> dict[str, Any]:
        """The counts and the share in percent."""
        return {"right": self.right, "of": self.of, **self.interval.to_json()}


def share(outcomes: Sequence[bool]) -> Share:
    """The share of true outcomes with its interval."""
    scores = Scores(statistics=np.array(outcomes, dtype=np.float64)[:, None], figures=_figures)
    return Share(right=sum(outcomes), of=len(outcomes), interval=intervals(scores)["share"])


def _figures(sums: Statistics, sizes: Statistics) -> Mapping[str, Statistics]:
    return {"share": 100 * sums[:, 0] / sizes}


def right_sets(suite: Suite, predictions: Path) -> Share:
    """Requests whose plan has a set of tools that is right."""
    found = read_predictions(predictions).by_id
    outcomes = []
    for example in suite.examples:
        plan = found.get(example.id)
        allowed = ((suite.also or {}).get(example.id) or ()) + (example.tool_set,)
        outcomes.append(plan is not None and frozenset(step.tool for step in plan.steps) in allowed)
    return share(outcomes)


def first_agents(suite: Suite, predictions: Path, *, steps: int | None = None) -> Share:
    """Requests whose plan begins with an agent that the right plan can begin with, of those with so many steps."""
    found = read_predictions(predictions).by_id
    chosen = [one for one in suite.examples if steps is None or len(one.steps) == steps]
    return share([_begins_right(example, found.get(example.id)) for example in chosen])


def _begins_right(example: Example, plan: Prediction | None) -> bool:
    if plan is None or not plan.steps:
        return False
    first = next((step for step in plan.steps if not step.depends_on), plan.steps[0])
    return first.tool in {
        step.tool for step in example.steps if not step.depends_on and not _refers(step.arguments)
    }


def _refers(arguments: Mapping[str, Any]) -> bool:
    return any(isinstance(value, dict) and "step" in value for value in arguments.values())


def refused_in(parts: Iterable[tuple[Suite, Path]], *, ask_below: float = 0.0) -> Share:
    """Requests that were answered by no plan or by asking back, or by a plan less sure than `ask_below`."""
    outcomes = []
    for suite, predictions in parts:
        found = read_predictions(predictions).by_id
        plans = [found.get(example.id) for example in suite.examples]
        outcomes += [plan is not None and (_asks(plan) or (plan.confidence or 0.0) < ask_below) for plan in plans]
    return share(outcomes)


def only(suite: Suite, registry: str) -> Suite:
    """The requests of a suite that are about one registry."""
    return replace(suite, examples=tuple(one for one in suite.examples if one.source.endswith(f"/{registry}")))


def _asks(plan: Prediction) -> bool:
    return {step.tool for step in plan.steps} <= {CLARIFY}


def sure_of(files: Iterable[tuple[Path, Path]]) -> Judged:
    """Confidence and rightness over (gold, predictions) pairs together."""
    parts = [judged(read_gold(gold), read_predictions(predictions).by_id) for gold, predictions in files]
    return Judged(
        confidence=np.concatenate([part.confidence for part in parts]),
        right=np.concatenate([part.right for part in parts]),
    )


def calibration(found: Judged, accept_at: float) -> dict[str, Any]:
    """What is told of confidence: its error, what the shipped threshold lets through, curves to draw."""
    coverage, risk = risk_coverage(found)
    taken = found.confidence >= accept_at
    return {
        "requests": len(found.right),
        "right": round(100 * float(found.right.mean()), 2),
        "calibration_error": round(calibration_error(found), 4),
        "error_by_chance": round(error_by_chance(found), 4),
        "accepted": accepted_at(found, accept_at).to_json()
        | {"interval": share(found.right[taken].tolist()).to_json() if taken.any() else None},
        "best_threshold": accepted_at(found, threshold_for(found, PRECISION)).to_json(),
        "area_under_risk": round(float(risk.mean()), 4),
        "bins": [[one.count, round(one.confidence, 4), round(one.right, 4)] for one in bins_of(found)],
        "curve": [[round(float(x), 4), round(float(y), 4)] for x, y in zip(coverage, risk, strict=True)],
    }
