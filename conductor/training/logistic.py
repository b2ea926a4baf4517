"""Fits a logistic regression over named features: Newton's method, a penalty on weights, chosen by folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conductor.policy.confidence import Logistic

Numbers = NDArray[np.float64]
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_STEPS = 50
_SETTLED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A regression and what it said of examples it was not fitted on."""

    regression: Logistic
    left_out: Numbers
    """[examples]: the probability of each by a regression that did not see its fold."""
    strength: float
    """Of the penalty on standardised weights."""


def fit(
    names: Sequence[str],
    features: Sequence[Mapping[str, float]],
    right: Sequence[bool],
    groups: Sequence[str],
    *,
    folds: int = 5,
    seed: int = 0,
    strengths: Sequence[float] = STRENGTHS,
) -> Fit:
    """Fit `right` on `features`; examples of one group share a fold.

    Raises:
        ValueError: there are no examples, or they are all right or all wrong.
    """
    if len(set(right)) < 2:
        raise ValueError(f"{len(right)} examples of one kind teach nothing")
    rows = np.array([[found[name] for name in names] for found in features], dtype=np.float64)
    wanted = np.array(right, dtype=np.float64)
    fold = folds_of(groups, folds, seed)
    tried = {strength: _left_out(rows, wanted, fold, strength) for strength in strengths}
    best = min(strengths, key=lambda strength: _log_loss(tried[strength], wanted))
    weights, bias = _regression(rows, wanted, best)
    regression = Logistic(
        weights={name: float(weight) for name, weight in zip(names, weights, strict=True)}, bias=bias
    )
    return Fit(regression=regression, left_out=tried[best], strength=best)


def folds_of(groups: Sequence[str], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each example; those of one group share one."""
    known = sorted(set(groups))
    order = np.random.default_rng(seed).permutation(len(known))
    place = {group: int(order[at]) % folds for at, group in enumerate(known)}
    return np.array([place[group] for group in groups])


def _left_out(rows: Numbers, wanted: Numbers, fold: NDArray[np.int64], strength: float) -> Numbers:
    said = np.full(len(wanted), wanted.mean())
    for one in np.unique(fold):
        learn = fold != one
        if 0 < wanted[learn].sum() < learn.sum():
            weights, bias = _regression(rows[learn], wanted[learn], strength)
            said[~learn] = _logistic(rows[~learn] @ weights + bias)
    return said


def _regression(rows: Numbers, wanted: Numbers, strength: float) -> tuple[Numbers, float]:
    """Weights and bias for features as they are, from a fit to standardised ones; the bias is not held small."""
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread < 1e-9, np.inf, spread)  # a feature that never changes gets no weight
    known = np.column_stack(((rows - centre) / spread, np.ones(len(rows))))
    penalty = np.diag([strength] * rows.shape[1] + [1e-6])
    found = np.zeros(known.shape[1])
    for _ in range(_STEPS):
        said = _logistic(known @ found)
        gradient = known.T @ (said - wanted) + penalty @ found
        curvature = (known * (said * (1 - said))[:, None]).T @ known + penalty
        step = np.linalg.solve(curvature, gradient)
        found = found - step
        if np.abs(step).max() < _SETTLED:
            break
    weights = found[:-1] / spread
    return weights, float(found[-1] - weights @ centre)


def _logistic(odds: Numbers) -> Numbers:
    said: Numbers = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return said


def _log_loss(said: Numbers, wanted: Numbers) -> float:
    bounded = np.clip(said, 1e-9, 1 - 1e-9)
    return float(-(wanted * np.log(bounded) + (1 - wanted) * np.log(1 - bounded)).mean())
