"""How sure the planner is, in words that can be believed: of plans with confidence 0.8 about 80 in 100 are right.

The model is too sure of itself on tools it never saw, so a small logistic regression over what the search found
(probability, margin to the next collection of tools, doubts at each step) replaces its own probabilities. It is
fitted on requests the model was not trained on (`python -m conductor.training.calibrate`), and its parameters are
stored with the model under `METADATA_KEY`.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conductor.policy.selecting import Hypothesis
from conductor.policy.selecting_choice import RANKING_FEATURES, SEARCHED, Ranking, best_first
from podium.errors import DataCorrupt

METADATA_KEY = "confidence"
_LARGEST = 12.0
"""Log-odds and margins are cut here: beyond it nothing more is meant."""


class ConfidenceParametersInvalid(DataCorrupt):
    """The parameters stored with a planner's model are not those of a confidence."""

    code = "CONFIDENCE_PARAMETERS_INVALID"
    advice = "Fit them again with `python -m conductor.training.calibrate` and export the model again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """A logistic regression over named features."""

    weights: Mapping[str, float]
    """By the feature's name; features that are not named count nothing."""
    bias: float

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability in (0, 1) for one set of features."""
        odds = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return _logistic(odds)

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON-ready values."""
        return {"weights": dict(self.weights), "bias": self.bias}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], known: Iterable[str]) -> "Logistic":
        """Read `to_json`; `known` are the features there are.

        Raises:
            ConfidenceParametersInvalid: something is missing, no finite number, or about an unknown feature.
        """
        try:
            weights = {str(name): float(weight) for name, weight in value["weights"].items()}
            bias = float(value["bias"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfidenceParametersInvalid(f"not a logistic regression: {error!r}") from error
        if unknown := sorted(set(weights) - set(known)):
            raise ConfidenceParametersInvalid(f"there is no feature {unknown[0]}")
        if not all(map(math.isfinite, (bias, *weights.values()))):
            raise ConfidenceParametersInvalid("a parameter is no finite number")
        return cls(weights=weights, bias=bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Calibrated probabilities for a plan and for each decision in it."""

    plan: Logistic
    """That the plan has the right set of tools (for an empty plan: that nothing here can serve the request)."""
    step: Logistic
    """That a step's tool belongs into the plan."""
    argument: Logistic
    """That an argument's value is right, given the right tool."""
    nothing: Logistic
    """That nothing here can serve the request, whatever plan was found."""
    refuse_at: float | None
    """From this probability of it on, the plan is empty, and below it is not; None: the search decides."""
    ranking: Ranking
    """By which the possible plans are ordered."""
    accept_at: float
    """Plans at least this sure had the right set of tools in 95 of 100 cases when the parameters were fitted."""

    @classmethod
    def uncalibrated(cls) -> "Confidence":
        """The model's own probabilities, for a model that has no parameters yet; nothing is accepted by itself."""
        same = {"log_odds": 1.0}
        return cls(
            plan=Logistic(weights=same, bias=0.0),
            step=Logistic(weights=same, bias=0.0),
            argument=Logistic(weights=same, bias=0.0),
            nothing=Logistic(weights={"refusal_log_odds": 1.0}, bias=0.0),
            refuse_at=None,
            ranking=SEARCHED,
            accept_at=1.0,
        )

    def settled(self, hypotheses: Sequence[Hypothesis], *, tools: int) -> tuple[Hypothesis, ...]:
        """What was found, best first; the empty plan only if nothing here can likely serve the request."""
        hypotheses = best_first(hypotheses, self.ranking)
        serving = best_serving(hypotheses)
        if serving is None or self.refuse_at is None:
            return tuple(hypotheses)
        if self.of_nothing(hypotheses, tools=tools) >= self.refuse_at:
            return refused(hypotheses)
        return preferred(hypotheses, serving)

    def of_nothing(self, hypotheses: Sequence[Hypothesis], *, tools: int) -> float:
        """The probability that nothing here can serve the request."""
        return self.nothing.probability(nothing_features(hypotheses, tools=tools))

    def of_plan(self, hypotheses: Sequence[Hypothesis], chosen: int, *, tools: int) -> float:
        """How sure it is of `hypotheses[chosen]`.

        Args:
            hypotheses: Everything that the search found.
            chosen: Which of them becomes the plan.
            tools: How many tools there were to choose from.
        """
        return self.plan.probability(plan_features(hypotheses, chosen, tools=tools))

    def of_steps(self, hypotheses: Sequence[Hypothesis], chosen: int, *, tools: int) -> tuple[float, ...]:
        """How sure it is of each step's tool."""
        plan = plan_features(hypotheses, chosen, tools=tools)
        hypothesis = hypotheses[chosen]
        return tuple(
            self.step.probability(step_features(hypotheses, chosen, place, plan=plan))
            for place in range(len(hypothesis.tools))
        )

    def of_argument(self, confidence: float) -> float:
        """How sure it is of an argument that the Filler gave this confidence."""
        return self.argument.probability(argument_features(confidence))

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON-ready values."""
        return {
            "plan": self.plan.to_json(),
            "step": self.step.to_json(),
            "argument": self.argument.to_json(),
            "nothing": self.nothing.to_json(),
            "refuse_at": self.refuse_at,
            "ranking": dict(self.ranking.weights),
            "accept_at": self.accept_at,
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> "Confidence":
        """What a model's metadata hold under `METADATA_KEY`; the model's own probabilities if they hold nothing.

        Raises:
            ConfidenceParametersInvalid: what they hold are no parameters.
        """
        written = metadata.get(METADATA_KEY)
        if not written:
            return cls.uncalibrated()
        try:
            value = json.loads(written)
        except ValueError as error:
            raise ConfidenceParametersInvalid(f"no JSON: {error}") from error
        return cls.from_json(value)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Confidence":
        """Read `to_json`.

        Raises:
            ConfidenceParametersInvalid: something is missing or of another form.
        """
        try:
            plan, step, argument, nothing = (value[name] for name in ("plan", "step", "argument", "nothing"))
            refuse_at = None if value["refuse_at"] is None else float(value["refuse_at"])
            accept_at = float(value["accept_at"])
            ranking = {str(name): float(weight) for name, weight in value["ranking"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfidenceParametersInvalid(f"no parameters of a confidence: {error!r}") from error
        if not (0 <= accept_at <= 1 and 0 <= (refuse_at or 0.0) <= 1):
            raise ConfidenceParametersInvalid(f"thresholds are in [0, 1], got {accept_at} and {refuse_at}")
        if set(ranking) - set(RANKING_FEATURES) or not all(map(math.isfinite, ranking.values())):
            raise ConfidenceParametersInvalid(f"not the weights of a ranking: {ranking}")
        return cls(
            plan=Logistic.from_json(plan, PLAN_FEATURES),
            step=Logistic.from_json(step, STEP_FEATURES),
            argument=Logistic.from_json(argument, ARGUMENT_FEATURES),
            nothing=Logistic.from_json(nothing, PLAN_FEATURES),
            refuse_at=refuse_at,
            ranking=Ranking(weights=ranking),
            accept_at=accept_at,
        )


PLAN_FEATURES = (
    "log_odds",
    "margin",
    "share_log_odds",
    "entropy",
    "steps",
    "worst_step",
    "stop_log_odds",
    "earlier_stop",
    "refusal_log_odds",
    "agreement",
    "weighed_share_log_odds",
    "least_relevance",
    "closest_rival",
    "repeats",
    "empty",
    "log_tools",
)
"""What the plan's confidence is computed from."""
STEP_FEATURES = ("log_odds", "relevance", "rival", "plan_log_odds", "plan_margin", "place")
"""What a step's confidence is computed from."""
ARGUMENT_FEATURES = ("log_odds",)
"""What an argument's confidence is computed from."""


def best_serving(hypotheses: Sequence[Hypothesis]) -> int | None:
    """Which is the best that has any tool."""
    return next((place for place, found in enumerate(hypotheses) if found.tools), None)


def nothing_features(hypotheses: Sequence[Hypothesis], *, tools: int) -> dict[str, float]:
    """What tells whether nothing here can serve: the features of the best plan that has any tool."""
    return plan_features(hypotheses, best_serving(hypotheses) or 0, tools=tools)


def preferred(hypotheses: Sequence[Hypothesis], place: int) -> tuple[Hypothesis, ...]:
    """`hypotheses` with one of them first."""
    return (hypotheses[place], *hypotheses[:place], *hypotheses[place + 1 :])


def refused(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """`hypotheses` with the empty plan first, which is made where the search did not find it."""
    for place, hypothesis in enumerate(hypotheses):
        if not hypothesis.tools:
            return preferred(hypotheses, place)
    stops = next((found.stop_probabilities[0] for found in hypotheses if found.stop_probabilities), 1e-9)
    log_probability = math.log(max(stops, 1e-9))
    empty = Hypothesis(
        tools=(),
        log_probability=log_probability,
        candidates=(),
        step_log_probabilities=(log_probability,),
        stop_probabilities=(stops,),
        relevance=(),
    )
    return (empty, *hypotheses)


def plan_features(hypotheses: Sequence[Hypothesis], chosen: int, *, tools: int) -> dict[str, float]:
    """Features of `hypotheses[chosen]` among `hypotheses` over `tools` tools; see `PLAN_FEATURES`."""
    ours = hypotheses[chosen]
    by_set: dict[frozenset[int], float] = {}
    for hypothesis in hypotheses:
        key = frozenset(hypothesis.tools)
        by_set[key] = float(np.logaddexp(by_set.get(key, -math.inf), hypothesis.log_probability))
    own = by_set[frozenset(ours.tools)]
    total = float(np.logaddexp.reduce(list(by_set.values())))
    others = [value for key, value in by_set.items() if key != frozenset(ours.tools)]
    shares = np.exp(np.array(list(by_set.values())) - total)
    steps = ours.step_log_probabilities or (0.0,)
    agreement, weighed = _agreement(hypotheses, ours)
    return {
        "log_odds": _log_odds(math.exp(min(own, 0.0))),
        "margin": _cut(own - max(others)) if others else _LARGEST,
        "share_log_odds": _log_odds(math.exp(own - total)),
        "entropy": float(-(shares * np.log(np.maximum(shares, 1e-12))).sum()),
        "steps": float(len(ours.tools)),
        "worst_step": _cut(min(steps)),
        "stop_log_odds": _log_odds(ours.stop_probabilities[-1] if ours.stop_probabilities else 1.0),
        "earlier_stop": max(ours.stop_probabilities[:-1], default=0.0),
        "refusal_log_odds": _log_odds(
            max((one.stop_probabilities[0] for one in hypotheses if one.stop_probabilities), default=0.0)
        ),
        "agreement": agreement,
        "weighed_share_log_odds": _log_odds(weighed),
        "least_relevance": _cut(min(ours.relevance, default=0.0)),
        "closest_rival": min((_rival(row) for row in ours.candidates), default=_LARGEST),
        "repeats": float(len(ours.tools) - len(set(ours.tools))),
        "empty": float(not ours.tools),
        "log_tools": math.log(max(tools, 1)),
    }


def step_features(
    hypotheses: Sequence[Hypothesis], chosen: int, place: int, *, plan: Mapping[str, float]
) -> dict[str, float]:
    """Features of one step of `hypotheses[chosen]`; `plan` are those of its plan. See `STEP_FEATURES`."""
    ours = hypotheses[chosen]
    return {
        "log_odds": _log_odds(math.exp(min(ours.step_log_probabilities[place], 0.0))),
        "relevance": _cut(ours.relevance[place]),
        "rival": _rival(ours.candidates[place]),
        "plan_log_odds": plan["log_odds"],
        "plan_margin": plan["margin"],
        "place": float(place),
    }


def argument_features(confidence: float) -> dict[str, float]:
    """Features of an argument with the Filler's confidence; see `ARGUMENT_FEATURES`."""
    return {"log_odds": _log_odds(confidence)}


def _agreement(hypotheses: Sequence[Hypothesis], ours: Hypothesis) -> tuple[float, float]:
    """How much of our tools the others share, and the share of those with just our tools.

    A long plan has many forms that divide its probability, so length counts in its favour; see `SEARCHED`.
    """
    tools = frozenset(ours.tools)
    weighed = [SEARCHED.score(one) for one in hypotheses]
    most = max(weighed)
    shares = [math.exp(value - most) for value in weighed]
    total = math.fsum(shares)
    same = shared = 0.0
    for one, share in zip(hypotheses, shares, strict=True):
        other = frozenset(one.tools)
        both = len(tools) + len(other)
        shared += share * (2 * len(tools & other) / both if both else 1.0)
        same += share * (other == tools)
    return shared / total, same / total


def _rival(candidates: Sequence[tuple[int, float]]) -> float:
    """How much likelier the first candidate of a step is than the second, in log."""
    if len(candidates) < 2:
        return _LARGEST
    first, second = (max(share, 1e-9) for _, share in candidates[:2])
    return _cut(math.log(first / second))


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-9), 1 - 1e-9)
    return _cut(math.log(bounded / (1 - bounded)))


def _cut(value: float) -> float:
    return max(-_LARGEST, min(_LARGEST, value)) if math.isfinite(value) else -_LARGEST


def _logistic(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, odds))))
