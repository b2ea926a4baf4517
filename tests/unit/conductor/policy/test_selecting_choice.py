"""Which plan is taken of several."""

import math
from dataclasses import dataclass

from conductor.policy.selecting_choice import RANKING_FEATURES, Ranking, best_first, ranking_features


@dataclass(frozen=True)
class Plan:
    """A plan as the choice sees it."""

    tools: tuple[int, ...]
    log_probability: float
    stop_probabilities: tuple[float, ...] = (0.1,)
    step_log_probabilities: tuple[float, ...] = ()
    relevance: tuple[float, ...] = ()


def test_a_plan_that_shares_much_with_the_others_beats_the_likeliest() -> None:
    plans = [
        Plan((9,), math.log(0.30)),
        Plan((1, 2, 3), math.log(0.25)),
        Plan((1, 2, 4), math.log(0.25)),
        Plan((1, 2), math.log(0.20)),
    ]
    assert best_first(plans)[0].tools != (9,)
    assert best_first(plans)[-1].tools == (9,)


def test_a_sure_plan_is_taken() -> None:
    plans = [Plan((1,), math.log(0.9)), Plan((1, 2), math.log(0.1))]
    assert best_first(plans)[0].tools == (1,)


def test_nothing_is_chosen_only_where_stopping_at_once_is_likelier_than_not() -> None:
    unsure = [Plan((), math.log(0.4), (0.4,)), Plan((1, 2), math.log(0.1), (0.4, 0.1, 0.5))]
    assert [plan.tools for plan in best_first(unsure)] == [(1, 2), ()]
    sure = [Plan((1, 2), math.log(0.3), (0.6, 0.1, 0.5)), Plan((), math.log(0.6), (0.6,))]
    assert best_first(sure)[0].tools == ()


def test_of_no_plans_there_is_none() -> None:
    assert best_first([]) == ()


def test_a_ranking_decides_what_each_plan_counts() -> None:
    plans = [Plan((1,), math.log(0.6)), Plan((2, 3), math.log(0.4))]
    assert best_first(plans, Ranking(weights={"log_probability": 1.0}))[0].tools == (1,)
    assert best_first(plans, Ranking(weights={"log_probability": 1.0, "tools": 2.0}))[0].tools == (2, 3)


def test_the_features_of_a_plan_are_finite_whatever_the_model_says() -> None:
    odd = Plan((1, 1), -1e9, (0.0, 0.0, 0.0), (-1e9, -0.1, -1e9), (-1e9, 5.0))
    found = ranking_features(odd)
    assert set(found) == set(RANKING_FEATURES)
    assert all(map(math.isfinite, found.values()))
    assert (found["repeats"], found["tools"], found["single"]) == (1.0, 2.0, 0.0)
