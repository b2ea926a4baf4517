"""What predicted plans look like, apart from whether they are right: length, parallelism, time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conductor.evaluation.rows import PredictedStep, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Averages over the usable predictions."""

    plans: int
    empty: int
    """Plans without steps: nothing here can serve the request."""
    steps: float | None
    """Steps of a plan that has any."""
    parallelism: float | None
    """Steps divided by the longest chain of them; 1 means that nothing can run side by side."""
    latency_ms: Mapping[str, float] | None
    """p50 and p95 of `ms` of the predictions that carry it."""

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {
            "plans": self.plans,
            "empty": self.empty,
            "steps": None if self.steps is None else round(self.steps, 3),
            "parallelism": None if self.parallelism is None else round(self.parallelism, 3),
            "latency_ms": self.latency_ms,
        }


def shape(predictions: Mapping[str, Prediction], ids: Sequence[str]) -> Shape:
    """The shape of the predictions for `ids`."""
    plans = [predictions[key] for key in ids if key in predictions]
    filled = [plan.steps for plan in plans if plan.steps]
    times = [plan.latency_ms for plan in plans if plan.latency_ms is not None and np.isfinite(plan.latency_ms)]
    return Shape(
        plans=len(plans),
        empty=len(plans) - len(filled),
        steps=sum(map(len, filled)) / len(filled) if filled else None,
        parallelism=sum(len(steps) / longest_chain(steps) for steps in filled) / len(filled) if filled else None,
        latency_ms={f"p{share}": round(float(np.percentile(times, share)), 2) for share in (50, 95)}
        if times
        else None,
    )


def longest_chain(steps: Sequence[PredictedStep]) -> int:
    """Number of steps on the longest path of dependencies; the steps of a cycle count as one chain."""
    count = len(steps)
    before = [
        {index for index in step.depends_on if isinstance(index, int) and 0 <= index < count} for step in steps
    ]
    length = [1] * count
    # Each pass settles one more link of the longest path; what still grows after `count` passes is a cycle.
    for _ in range(count):
        grown = [1 + max((length[index] for index in needed), default=0) for needed in before]
        if grown == length:
            return max(length)
        length = grown
    return count
