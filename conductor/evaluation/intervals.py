"""Bootstrap: how far a figure would move with another sample of requests of the same size.

Requests are drawn with replacement, whole, and the figure is computed anew from their summed statistics; so a
micro F1 is resampled by request and not by tool. Percentile method (Efron and Tibshirani, An Introduction to the
Bootstrap).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conductor.evaluation.scoring import Scores, Statistics

RESAMPLES = 1_000
SEED = 0
COVERAGE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure over all requests with the interval that holds it in 95 of 100 samples."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """The three numbers, in percent to two places."""
        return {"value": round(self.value, 2), "low": round(self.low, 2), "high": round(self.high, 2)}


def intervals(scores: Scores, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Interval]:
    """Every figure with its interval."""
    drawn = _drawn(scores, resamples=resamples, seed=seed)
    totals = scores.totals()
    return {name: _interval(totals[name], values) for name, values in drawn.items()}


def differences(
    ours: Scores, theirs: Scores, *, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Interval]:
    """How far `ours` is ahead of `theirs` in every figure, on the same requests; both are drawn together."""
    first, second = (_drawn(scores, resamples=resamples, seed=seed) for scores in (ours, theirs))
    ahead, behind = ours.totals(), theirs.totals()
    return {name: _interval(ahead[name] - behind[name], first[name] - second[name]) for name in first}


def _drawn(scores: Scores, *, resamples: int, seed: int) -> Mapping[str, Statistics]:
    count = len(scores.statistics)
    weights = _weights(count, resamples, seed)
    return scores.figures(weights @ scores.statistics, np.full(resamples, float(count)))


def _weights(count: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """How often each sample [resamples, count] holds each request."""
    random = np.random.default_rng(seed)
    return random.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)


def _interval(value: float, drawn: Statistics) -> Interval:
    outside = 100 * (1 - COVERAGE) / 2
    low, high = np.percentile(drawn, [outside, 100 - outside])
    return Interval(value=value, low=float(low), high=float(high))
