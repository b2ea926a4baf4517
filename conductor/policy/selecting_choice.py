"""Which of several possible plans to take: the one that is expected to share most with the right one.

The likeliest plan is mostly a short one: a long plan has many forms that share its probability. So each plan is
weighed by how well it would do if each of the others were right (minimum Bayes risk).
"""

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

_EXACT = 0.5
"""What the whole collection of tools being right is worth besides the F1 of the tools."""
_LONGER = 0.6
"""Nats that each tool adds: the forms of a long plan that the beam did not meet."""
_SHARPNESS = 0.7
"""Of the log-probabilities; the model is surer than it should be. These three were chosen on `select`."""
_NOTHING = 0.5
"""Probability of stopping at once from which nothing here serves the request."""


class Choosable(Protocol):
    """What is looked at of a plan."""

    @property
    def tools(self) -> tuple[int, ...]:
        """Its tools."""
        ...

    @property
    def log_probability(self) -> float:
        """Of its collection of tools."""
        ...

    @property
    def stop_probabilities(self) -> tuple[float, ...]:
        """How sure it was at each step that the plan is complete."""
        ...


Plan = TypeVar("Plan", bound=Choosable)


def best_first(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """The plans by what is expected of them; an empty one comes first or last."""
    if not plans:
        return ()
    nothing = plans[0].stop_probabilities[0] >= _NOTHING
    weights = [math.exp(_SHARPNESS * (plan.log_probability + _LONGER * len(plan.tools))) for plan in plans]
    gains = [
        math.fsum(weight * _gain(plan.tools, other.tools) for weight, other in zip(weights, plans, strict=True))
        for plan in plans
    ]
    keys = [
        (not plan.tools and not nothing, not (nothing and not plan.tools), -gain, -plan.log_probability)
        for plan, gain in zip(plans, gains, strict=True)
    ]
    order = sorted(range(len(plans)), key=keys.__getitem__)
    return tuple(plans[at] for at in order)


def _gain(tools: tuple[int, ...], right: tuple[int, ...]) -> float:
    first, second = set(tools), set(right)
    shared = 2 * len(first & second) / (len(first) + len(second)) if first or second else 1.0
    return shared + _EXACT * (sorted(tools) == sorted(right))
