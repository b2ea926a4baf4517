"""Which of several possible plans to take: the one that is expected to share most with the right one.

The likeliest plan is mostly a short one of tools that were often seen together: a long plan has many forms that
share its probability. So each plan gets a score out of what the search found (`Ranking`, a conditional logit
fitted on requests the model was not trained on), and is then weighed by how well it would do if each of the
others were right (minimum Bayes risk).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

_EXACT = 1.0
"""What the whole collection of tools being right is worth besides the F1 of the tools. Chosen on `select`."""
_NOTHING = 0.5
"""Probability of stopping at once from which nothing here serves the request."""
_LEAST = -12.0
"""Logarithms are cut here: below it nothing less is meant."""
RANKING_FEATURES = (
    "log_probability",
    "tools",
    "single",
    "relevance",
    "least_relevance",
    "worst_choice",
    "stop",
    "repeats",
)
"""What a plan's score is computed from."""


class Choosable(Protocol):
    """What is looked at of a plan; see `conductor.policy.selecting.Hypothesis`."""

    @property
    def tools(self) -> tuple[int, ...]:
        """Its tools."""
        ...

    @property
    def log_probability(self) -> float:
        """Of its collection of tools."""
        ...

    @property
    def step_log_probabilities(self) -> tuple[float, ...]:
        """Of each choice, STOP's at the end."""
        ...

    @property
    def stop_probabilities(self) -> tuple[float, ...]:
        """How sure it was at each step that the plan is complete."""
        ...

    @property
    def relevance(self) -> tuple[float, ...]:
        """For each step the logit that its tool is in the plan at all."""
        ...


Plan = TypeVar("Plan", bound=Choosable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A score for plans, in nats: differences are log-odds that one is right and not the other."""

    weights: Mapping[str, float]
    """By the feature's name; features that are not named count nothing."""

    def score(self, plan: Choosable) -> float:
        """The score of one plan."""
        features = ranking_features(plan)
        return math.fsum(weight * features[name] for name, weight in self.weights.items())


SEARCHED = Ranking(weights={"log_probability": 0.7, "tools": 0.4})
"""For a model without a fitted ranking: its own probabilities, less sharp, with length in favour."""


def ranking_features(plan: Choosable) -> dict[str, float]:
    """See `RANKING_FEATURES`."""
    likely = [max(_LEAST, -_softplus(-logit)) for logit in plan.relevance]
    choices = plan.step_log_probabilities[: len(plan.tools)]
    stop = plan.stop_probabilities[-1] if plan.stop_probabilities else 1.0
    return {
        "log_probability": max(plan.log_probability, 5 * _LEAST),
        "tools": float(len(plan.tools)),
        "single": float(len(plan.tools) == 1),
        "relevance": math.fsum(likely),
        "least_relevance": min(likely, default=0.0),
        "worst_choice": max(_LEAST, min(choices, default=0.0)),
        "stop": max(_LEAST, math.log(max(stop, 1e-9))),
        "repeats": float(len(plan.tools) - len(set(plan.tools))),
    }


def best_first(plans: Sequence[Plan], ranking: Ranking = SEARCHED) -> tuple[Plan, ...]:
    """The plans by what is expected of them; an empty one comes first or last."""
    if not plans:
        return ()
    nothing = plans[0].stop_probabilities[0] >= _NOTHING if plans[0].stop_probabilities else False
    scores = [ranking.score(plan) for plan in plans]
    most = max(scores)
    weights = [math.exp(score - most) for score in scores]
    gains = [
        math.fsum(weight * _gain(plan.tools, other.tools) for weight, other in zip(weights, plans, strict=True))
        for plan in plans
    ]
    keys = [
        (not plan.tools and not nothing, not (nothing and not plan.tools), -gain, -score)
        for plan, gain, score in zip(plans, gains, scores, strict=True)
    ]
    order = sorted(range(len(plans)), key=keys.__getitem__)
    return tuple(plans[at] for at in order)


def _gain(tools: tuple[int, ...], right: tuple[int, ...]) -> float:
    first, second = set(tools), set(right)
    shared = 2 * len(first & second) / (len(first) + len(second)) if first or second else 1.0
    return shared + _EXACT * (sorted(tools) == sorted(right))


def _softplus(value: float) -> float:
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))
