"""Whether confidence can be believed: calibration error, risk and coverage, and what a threshold lets through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conductor.evaluation.rows import GoldRow, Prediction

BINS = 15
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How sure a planner was of each request's plan, and whether it was right."""

    confidence: Numbers
    """[requests] in [0, 1]."""
    right: NDArray[np.bool_]
    """[requests]."""

    def __add__(self, other: "Judged") -> "Judged":
        """Both together."""
        return Judged(
            confidence=np.concatenate((self.confidence, other.confidence)),
            right=np.concatenate((self.right, other.right)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Requests of like confidence."""

    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a threshold lets through."""

    threshold: float
    coverage: float
    """Share of the requests that are accepted."""
    precision: float | None
    """Share of the accepted that are right; None when nothing is accepted."""

    def to_json(self) -> dict[str, Any]:
        """The numbers, shares in percent."""
        return {
            "threshold": round(self.threshold, 4),
            "coverage": round(100 * self.coverage, 2),
            "precision": None if self.precision is None else round(100 * self.precision, 2),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """Whether confidence can be believed, in a few numbers."""

    calibration_error: float
    error_by_chance: float
    accepted: Accepted
    """At the lowest threshold, looked for in these very requests, at which 95 % of the accepted are right."""

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {
            "calibration_error": round(self.calibration_error, 4),
            "error_by_chance": round(self.error_by_chance, 4),
            "accepted": self.accepted.to_json(),
        }


def believed(found: Judged, *, precision: float = 0.95) -> Believed:
    """The few numbers."""
    return Believed(
        calibration_error=calibration_error(found),
        error_by_chance=error_by_chance(found),
        accepted=accepted_at(found, threshold_for(found, precision)),
    )


def judged(gold: Sequence[GoldRow], predictions: Mapping[str, Prediction]) -> Judged:
    """Confidence and whether the set of tools is right; a missing prediction is wrong with confidence 0."""
    confidence, right = [], []
    for row in gold:
        found = predictions.get(row.id)
        sure = None if found is None else found.confidence
        confidence.append(0.0 if sure is None or not 0 <= sure <= 1 else sure)
        tools = None if found is None else {step.tool for step in found.steps}
        right.append(tools == {step.tool for step in row.steps})
    return Judged(confidence=np.array(confidence, dtype=np.float64), right=np.array(right, dtype=np.bool_))


def bins_of(found: Judged, *, bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of equal mass, least sure first; requests of exactly one confidence may stand in two bins."""
    order = np.argsort(found.confidence, kind="stable")
    return tuple(
        Bin(
            count=len(part),
            confidence=float(found.confidence[part].mean()),
            right=float(found.right[part].mean()),
        )
        for part in np.array_split(order, bins)
        if len(part)
    )


def calibration_error(found: Judged, *, bins: int = BINS) -> float:
    """Expected calibration error: the mean distance between confidence and share of right plans, over bins."""
    total = max(1, len(found.right))
    return sum(one.count / total * abs(one.confidence - one.right) for one in bins_of(found, bins=bins))


def error_by_chance(found: Judged, *, bins: int = BINS, draws: int = 500, seed: int = 0) -> float:
    """The calibration error that perfectly calibrated confidences of these values would show on so few requests.

    With few requests a bin the error is never 0; what lies below this figure cannot be told from 0.
    """
    random = np.random.default_rng(seed)
    drawn = random.random((draws, len(found.confidence))) < found.confidence
    errors = [calibration_error(Judged(confidence=found.confidence, right=right), bins=bins) for right in drawn]
    return float(np.mean(errors))


def risk_coverage(found: Judged) -> tuple[Numbers, Numbers]:
    """Coverage and the share of wrong plans among the accepted, as the surest, the two surest ... are accepted."""
    order = np.argsort(-found.confidence, kind="stable")
    accepted = np.arange(1, len(order) + 1)
    risk: Numbers = np.cumsum(~found.right[order]) / accepted
    coverage: Numbers = accepted / max(1, len(order))
    return coverage, risk


def accepted_at(found: Judged, threshold: float) -> Accepted:
    """What is accepted when confidence must be at least `threshold`."""
    taken = found.confidence >= threshold
    return Accepted(
        threshold=threshold,
        coverage=float(taken.mean()) if len(taken) else 0.0,
        precision=float(found.right[taken].mean()) if taken.any() else None,
    )


def threshold_for(found: Judged, precision: float) -> float:
    """The lowest threshold at which at least a share `precision` of the accepted is right; 1 if there is none."""
    order = np.argsort(-found.confidence, kind="stable")
    confidence = found.confidence[order]
    share = np.cumsum(found.right[order]) / np.arange(1, len(order) + 1)
    # Only where the next one is less sure: equal confidences are accepted together.
    ends = np.append(confidence[:-1] != confidence[1:], True) if len(order) else np.zeros(0, dtype=bool)
    good = np.flatnonzero(ends & (share >= precision))
    return float(confidence[good[-1]]) if len(good) else 1.0
