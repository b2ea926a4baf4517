"""Confidence is a number in (0, 1) for whatever a search finds, and its parameters survive a file."""

import json
import math
from dataclasses import replace

import pytest

from conductor.policy.confidence import (
    ARGUMENT_FEATURES,
    METADATA_KEY,
    PLAN_FEATURES,
    STEP_FEATURES,
    Confidence,
    ConfidenceParametersInvalid,
    Logistic,
    plan_features,
    step_features,
)
from conductor.policy.selecting import Hypothesis
from conductor.policy.selecting_choice import Ranking


def _hypothesis(*tools: int, log_probability: float) -> Hypothesis:
    return Hypothesis(
        tools=tools,
        log_probability=log_probability,
        candidates=tuple(((tool, 0.7), (tool + 1, 0.2)) for tool in tools),
        step_log_probabilities=(math.log(0.7),) * len(tools) + (math.log(0.9),),
        stop_probabilities=(0.1,) * len(tools) + (0.9,),
        relevance=(2.0,) * len(tools),
    )


BEST, SECOND = _hypothesis(0, 1, log_probability=-0.2), _hypothesis(0, log_probability=-2.0)
SAME_SET = _hypothesis(0, 1, 0, log_probability=-3.0)
NONE = _hypothesis(log_probability=-0.1)


@pytest.mark.parametrize("found", [(BEST, SECOND), (BEST,), (NONE,), (NONE, BEST, SAME_SET)])
def test_every_search_has_all_features_and_they_are_finite(found: tuple[Hypothesis, ...]) -> None:
    for chosen in range(len(found)):
        features = plan_features(found, chosen, tools=5)
        assert tuple(features) == PLAN_FEATURES
        assert all(map(math.isfinite, features.values()))
        for place in range(len(found[chosen].tools)):
            step = step_features(found, chosen, place, plan=features)
            assert tuple(step) == STEP_FEATURES
            assert all(map(math.isfinite, step.values()))


def test_impossible_probabilities_do_not_break_it() -> None:
    odd = _hypothesis(0, log_probability=-math.inf)
    assert all(map(math.isfinite, plan_features((odd, BEST), 0, tools=0).values()))
    assert 0 < Confidence.uncalibrated().of_argument(math.nan) < 1


def test_the_margin_is_to_another_set_of_tools() -> None:
    alone, ahead = plan_features((BEST, SAME_SET), 0, tools=5), plan_features((BEST, SECOND), 0, tools=5)
    assert alone["margin"] > ahead["margin"] == pytest.approx(1.8)
    assert plan_features((BEST, SECOND), 1, tools=5)["margin"] == pytest.approx(-1.8)


def test_without_parameters_it_is_the_models_own_probability_and_accepts_nothing_by_itself() -> None:
    confidence = Confidence.from_metadata({})
    assert confidence.of_plan((BEST, SECOND), 0, tools=5) == pytest.approx(math.exp(-0.2))
    assert confidence.of_steps((BEST, SECOND), 0, tools=5) == pytest.approx((0.7, 0.7))
    assert confidence.accept_at == 1.0


def test_parameters_survive_a_file() -> None:
    confidence = Confidence(
        plan=Logistic(weights={"margin": 0.5, "empty": -1.0}, bias=0.1),
        step=Logistic(weights={"rival": 0.5}, bias=0.0),
        argument=Logistic(weights={"log_odds": 0.9}, bias=-0.2),
        nothing=Logistic(weights={"refusal_log_odds": 1.0, "margin": -0.1}, bias=0.3),
        refuse_at=0.6,
        ranking=Ranking(weights={"log_probability": 0.8, "relevance": 0.2}),
        accept_at=0.83,
    )
    again = Confidence.from_metadata({METADATA_KEY: json.dumps(confidence.to_json())})
    assert again == confidence
    assert again.of_plan((BEST, SECOND), 0, tools=5) > again.of_plan((BEST, SECOND), 1, tools=5)


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"weights": {"beauty": 1.0}, "bias": 0.0}},
        {"plan": {"weights": {"margin": math.inf}, "bias": 0.0}},
        {"plan": {"weights": {"margin": "much"}, "bias": 0.0}},
        {"plan": {"bias": 0.0}},
        {"plan": 5},
        {"step": None},
        {"accept_at": 2},
        {"refuse_at": -1},
        {"nothing": {"weights": {"relevance": 1.0}, "bias": 0.0}},
        {"accept_at": math.nan},
    ],
)
def test_parameters_that_are_none_are_refused(change: dict[str, object]) -> None:
    written = Confidence.uncalibrated().to_json() | change
    with pytest.raises(ConfidenceParametersInvalid):
        Confidence.from_metadata({METADATA_KEY: json.dumps(written)})


@pytest.mark.parametrize("written", ["{", "[]", "{}", "5"])
def test_metadata_that_are_none_are_refused(written: str) -> None:
    with pytest.raises(ConfidenceParametersInvalid):
        Confidence.from_metadata({METADATA_KEY: written})


def test_argument_features_are_named() -> None:
    assert ARGUMENT_FEATURES == ("log_odds",)


def test_the_empty_plan_comes_first_where_nothing_can_serve() -> None:
    never = Confidence.uncalibrated()
    always = replace(never, refuse_at=0.0)
    assert never.settled((BEST, SECOND), tools=5) == (BEST, SECOND)
    settled = always.settled((BEST, SECOND), tools=5)
    assert settled[1:] == (BEST, SECOND)
    assert (settled[0].tools, settled[0].stop_probabilities) == ((), (0.1,))
    assert 0 < always.of_plan(settled, 0, tools=5) < never.of_plan((BEST, SECOND), 0, tools=5)
    assert always.settled((BEST, NONE, SECOND), tools=5) == (NONE, BEST, SECOND)
    assert always.settled((NONE, BEST), tools=5) == (NONE, BEST)
    assert always.settled((), tools=0) == ()
    assert never.settled((NONE, BEST), tools=5) == (NONE, BEST), "without parameters the search decides"


def test_the_empty_plan_does_not_come_first_where_something_can_likely_serve() -> None:
    seldom = replace(Confidence.uncalibrated(), refuse_at=1.0)
    assert seldom.settled((NONE, BEST, SECOND), tools=5) == (BEST, NONE, SECOND)
    assert seldom.settled((NONE,), tools=5) == (NONE,)
