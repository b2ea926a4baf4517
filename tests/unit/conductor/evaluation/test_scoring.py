"""What counts as wrong: nothing, nonsense, too much."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conductor.evaluation.intervals import differences, intervals
from conductor.evaluation.report import MarkUnknown, evaluate, marks_of, named_values
from conductor.evaluation.rows import (
    GoldInvalid,
    PredictedStep,
    PredictionsUnreadable,
    read_gold,
    read_predictions,
)
from conductor.evaluation.scoring import MODES, Mode, score
from conductor.evaluation.shape import longest_chain, shape

RIGHT = {"id": 1, "steps": [{"tool": "find"}, {"tool": "book", "depends_on": [0]}]}
NOBODY = {"id": "n", "steps": []}


def _file(path: Path, rows: Sequence[Any]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _totals(tmp_path: Path, mode: Mode, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
    right = read_gold(_file(tmp_path / "gold.jsonl", gold))
    found = read_predictions(_file(tmp_path / "predictions.jsonl", predicted))
    return score(mode, right, found.by_id).totals()


def test_a_missing_prediction_is_wrong(tmp_path: Path) -> None:
    rows = [RIGHT, RIGHT | {"id": 2}]
    assert _totals(tmp_path, "mean", rows, [RIGHT]) == {"node_f1": 50.0, "link_f1": 50.0, "acc": 50.0}
    assert _totals(tmp_path, "micro", rows, [RIGHT])["exact"] == 50.0


@pytest.mark.parametrize("mode", MODES)
def test_saying_nothing_is_no_refusal(tmp_path: Path, mode: Mode) -> None:
    answered = _totals(tmp_path, mode, [NOBODY], [NOBODY])
    silent = _totals(tmp_path, mode, [NOBODY], [RIGHT])
    name = "exact" if mode == "micro" else "acc"
    assert answered[name] == 100.0
    assert silent[name] == 0.0


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        '{"steps": []}',
        '{"id": true, "steps": []}',
        '{"id": 1}',
        '{"id": 1, "steps": {}}',
        '{"id": 1, "steps": ["find"]}',
        '{"id": 1, "steps": [{"tool": 5}]}',
        '{"id": 1, "steps": [{"tool": "find", "arguments": []}]}',
        '{"id": 1, "steps": [{"tool": "find", "depends_on": 0}]}',
        '{"id": 1, "steps": ' + "[" * 100_000 + "}",
    ],
)
def test_an_unusable_prediction_is_wrong_and_counted(tmp_path: Path, line: str) -> None:
    found = read_predictions(_file(tmp_path / "predictions.jsonl", [line]))
    assert (found.by_id, found.invalid) == ({}, 1)


def test_a_later_unusable_line_takes_the_prediction_away(tmp_path: Path) -> None:
    path = _file(tmp_path / "predictions.jsonl", [RIGHT, {"id": "1", "steps": None}])
    found = read_predictions(path)
    assert (found.by_id, found.invalid, found.repeated) == ({}, 1, 1)


def test_foreign_values_are_compared_without_falling(tmp_path: Path) -> None:
    values = [float("nan"), 10**400, {"step": 0, "field": ["x"]}, {"step": True, "field": {}}, [[{}]], "nan", None]
    steps = [
        {"tool": "find", "arguments": {str(at): value for at, value in enumerate(values)}, "depends_on": [{}]}
    ]
    found = _totals(tmp_path, "micro", [{"id": 1, "steps": steps}], [{"id": 1, "steps": steps}])
    assert found["tool_f1"] == 100.0
    assert 0 < found["arg_f1"] < 100.0, "no number is a number that is none"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "holds no plan"),
        ([RIGHT, "{"], ":2:"),
        ([RIGHT, RIGHT], "1 has a plan already"),
        ([{"id": 1, "steps": [{"tool": "find", "accept": {"x": 5}}]}], "accept"),
    ],
)
def test_gold_must_be_whole(tmp_path: Path, rows: Sequence[Any], said: str) -> None:
    with pytest.raises(GoldInvalid, match=said):
        read_gold(_file(tmp_path / "gold.jsonl", rows))


def test_gold_without_accepted_values_is_none_for_that_mode(tmp_path: Path) -> None:
    with pytest.raises(GoldInvalid, match="accepted values"):
        _totals(tmp_path, "accept", [RIGHT], [RIGHT])


def test_files_that_are_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(GoldInvalid):
        read_gold(tmp_path / "absent")
    with pytest.raises(PredictionsUnreadable):
        read_predictions(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(PredictionsUnreadable):
        read_predictions(tmp_path / "binary")


def test_intervals_hold_what_they_promise() -> None:
    """Of many samples of a coin of 70 %, about 95 in 100 give an interval that holds the 70 %."""
    random = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        tosses = random.random(120) < 0.7
        scores = _coin(tosses)
        found = intervals(scores, resamples=300)["acc"]
        assert found.low <= found.value <= found.high
        held += found.low <= 70 <= found.high
    assert 0.88 <= held / 200 <= 0.99
    assert intervals(_coin(tosses)) == intervals(_coin(tosses))
    assert intervals(_coin(tosses), seed=1) != intervals(_coin(tosses), seed=2)


def test_a_difference_is_judged_on_the_same_requests() -> None:
    tosses = np.random.default_rng(1).random(150) < 0.5
    better = tosses.copy()
    better[:30] = True
    ahead = differences(_coin(better), _coin(tosses))["acc"]
    assert ahead.low > 0, "each is uncertain by 8 points, but one is never behind the other"
    same = differences(_coin(tosses), _coin(tosses))["acc"]
    assert (same.low, same.value, same.high) == (0, 0, 0)


def _coin(tosses: Any) -> Any:
    from conductor.evaluation.scoring import Scores, _accept_figures

    return Scores(statistics=np.asarray(tosses, dtype=np.float64)[:, None], figures=_accept_figures)


@pytest.mark.parametrize(
    ("depends_on", "longest"),
    [
        ([(), (), ()], 1),
        ([(), (0,), (1,)], 3),
        ([(1,), (2,), ()], 3),
        ([(), (0,), (0,), (1, 2)], 3),
        ([(), (7,), ("x",)], 1),
        ([(1,), (0,)], 2),
        ([(0,)], 1),
    ],
)
def test_the_longest_chain_of_a_plan(depends_on: Sequence[Any], longest: int) -> None:
    steps = [PredictedStep(tool="t", depends_on=tuple(needed)) for needed in depends_on]
    assert longest_chain(steps) == longest


def test_the_shape_of_plans(tmp_path: Path) -> None:
    rows = [
        RIGHT | {"ms": 10},
        {"id": 2, "steps": [{"tool": "a"}, {"tool": "b"}], "ms": 30},
        {"id": 3, "steps": [], "ms": float("nan")},
    ]
    found = read_predictions(_file(tmp_path / "p.jsonl", rows))
    seen = shape(found.by_id, ["1", "2", "3", "4"])
    assert (seen.plans, seen.empty, seen.steps, seen.parallelism) == (3, 1, 2.0, 1.5)
    assert seen.latency_ms == {"p50": 20.0, "p95": 29.0}


def test_a_report_judges_only_the_predictions(tmp_path: Path) -> None:
    gold = _file(tmp_path / "gold.jsonl", [RIGHT, RIGHT | {"id": 2}])
    ours = _file(tmp_path / "ours.jsonl", [RIGHT, {"id": 9, "steps": []}])
    report = evaluate(
        mode="mean",
        gold=gold,
        predictions=ours,
        baselines={"gold": gold},
        marks={"node_f1": 50, "acc": 50.1},
    )
    assert report.missed == ("acc 50.0 is below 50.1",)
    written = report.to_json()
    assert (written["predictions"]["missing"], written["predictions"]["unknown"]) == (1, 1)
    assert written["baselines"][0]["ahead"]["acc"]["value"] == -50.0
    assert written["predictions"]["confidence"] is None
    json.dumps(written, allow_nan=False)


def test_confidence_is_judged_where_every_prediction_carries_it(tmp_path: Path) -> None:
    gold = _file(tmp_path / "gold.jsonl", [RIGHT | {"id": at} for at in range(20)])
    wrong = {"steps": [{"tool": "find"}]}
    rows = [(RIGHT if at < 16 else wrong) | {"id": at, "confidence": 0.8 - at / 100} for at in range(20)]
    ours = _file(tmp_path / "ours.jsonl", rows)
    found = (
        evaluate(mode="mean", gold=gold, predictions=ours, baselines={}, marks={}).rows[0].to_json()["confidence"]
    )
    assert found["accepted"] == {"threshold": 0.65, "coverage": 80.0, "precision": 100.0}
    assert 0 < found["calibration_error"] < 0.6


@pytest.mark.parametrize("written", ["node_f1", "=5", "node_f1=", "node_f1=x", "node_f1=101", "node_f1=nan"])
def test_marks_that_are_none(written: str) -> None:
    with pytest.raises(MarkUnknown):
        marks_of([written])


def test_a_name_stands_once_and_a_mark_names_a_figure(tmp_path: Path) -> None:
    with pytest.raises(MarkUnknown, match="once"):
        named_values(["a=1", "a=2"], "--baseline")
    with pytest.raises(MarkUnknown, match="once"):
        named_values(["predictions=1"], "--baseline")
    gold = _file(tmp_path / "gold.jsonl", [RIGHT])
    with pytest.raises(MarkUnknown, match="exact"):
        evaluate(mode="mean", gold=gold, predictions=gold, baselines={}, marks={"exact": 5})
