"""Calibration error, risk and coverage on cases whose answer is known."""

import numpy as np
import pytest

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
from conductor.evaluation.rows import GoldRow, GoldStep, PredictedStep, Prediction


def _judged(confidence: list[float], right: list[int]) -> Judged:
    return Judged(confidence=np.array(confidence), right=np.array(right, dtype=bool))


def _random(count: int, *, too_sure: float = 0.0) -> Judged:
    random = np.random.default_rng(3)
    confidence = random.random(count)
    return Judged(
        confidence=np.clip(confidence + too_sure, 0, 1),
        right=random.random(count) < confidence,
    )


def test_honest_confidence_has_no_error_beyond_chance() -> None:
    honest, boasting = _random(20_000), _random(20_000, too_sure=0.2)
    assert calibration_error(honest) < 0.02
    assert calibration_error(boasting) == pytest.approx(0.18, abs=0.02)
    few = _random(150)
    assert error_by_chance(few) == pytest.approx(0.1, abs=0.04)
    assert error_by_chance(honest) < error_by_chance(few)


def test_bins_hold_the_same_number() -> None:
    bins = bins_of(_random(151), bins=15)
    assert {one.count for one in bins} == {10, 11}
    assert [one.confidence for one in bins] == sorted(one.confidence for one in bins)
    assert len(bins_of(_judged([0.5], [1]))) == 1


def test_risk_grows_as_less_sure_plans_are_accepted() -> None:
    coverage, risk = risk_coverage(_judged([0.9, 0.1, 0.8, 0.4], [1, 0, 1, 0]))
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.tolist() == pytest.approx([0, 0, 1 / 3, 0.5])


def test_the_threshold_is_the_lowest_that_keeps_the_promise() -> None:
    found = _judged([0.9, 0.8, 0.7, 0.6, 0.5], [1, 1, 0, 1, 0])
    assert threshold_for(found, 1.0) == 0.8
    assert threshold_for(found, 0.75) == 0.6
    assert threshold_for(found, 0.0) == 0.5
    assert accepted_at(found, 0.6).precision == 0.75
    assert accepted_at(found, 0.6).coverage == 0.8
    assert threshold_for(_judged([0.9, 0.5], [0, 0]), 0.5) == 1.0
    assert accepted_at(_judged([0.9], [1]), 0.95).precision is None


def test_equal_confidences_are_accepted_together() -> None:
    assert threshold_for(_judged([0.9, 0.9], [1, 0]), 1.0) == 1.0


def test_a_missing_prediction_is_wrong_and_unsure() -> None:
    gold = [GoldRow(id=name, steps=(GoldStep(tool="t"),)) for name in "abc"] + [GoldRow(id="d", steps=())]
    found = judged(
        gold,
        {
            "a": Prediction(steps=(PredictedStep(tool="t"), PredictedStep(tool="t")), confidence=0.9),
            "b": Prediction(steps=(), confidence=7.0),
        },
    )
    assert found.right.tolist() == [True, False, False, False]
    assert found.confidence.tolist() == [0.9, 0.0, 0.0, 0.0]
