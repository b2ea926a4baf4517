"""`podium eval plans` as people and programs call it."""

import json
from pathlib import Path

import pytest

from tests.integration.command_line import podium

RIGHT = {"id": "a", "steps": [{"tool": "find", "arguments": {"city": "Paris"}, "depends_on": []}]}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    gold, predictions = tmp_path / "gold.jsonl", tmp_path / "predictions.jsonl"
    gold.write_text(json.dumps(RIGHT) + "\n" + json.dumps(RIGHT | {"id": "b"}) + "\n", encoding="utf-8")
    predictions.write_text(json.dumps(RIGHT | {"confidence": 0.9, "ms": 12.5}) + "\nnonsense\n", encoding="utf-8")
    return str(gold), str(predictions)


def test_a_table_for_people(files: tuple[str, str]) -> None:
    gold, predictions = files
    ran = podium(
        "eval",
        "plans",
        "--mode",
        "mean",
        "--gold",
        gold,
        "--predictions",
        predictions,
        "--baseline",
        f"gold={gold}",
    )
    assert ran.status == 0
    assert "node_f1" in ran.out
    assert "100.0" in ran.out
    assert "12.5" in ran.out
    assert "1 unusable lines" in ran.err


def test_one_object_for_programs_and_a_missed_mark_is_no_success(files: tuple[str, str]) -> None:
    gold, predictions = files
    arguments = ("eval", "plans", "--mode", "micro", "--gold", gold, "--predictions", predictions, "--json")
    reached = podium(*arguments, "--mark", "exact=50")
    assert reached.status == 0
    assert reached.json["ok"] is True
    assert reached.json["predictions"]["figures"]["exact"]["value"] == 50.0
    assert reached.json["predictions"]["confidence"]["accepted"]["precision"] == 100.0
    missed = podium(*arguments, "--mark", "exact=50", "--mark", "tool_f1=99")
    assert missed.status == 1
    assert missed.json["missed"] == ["tool_f1 66.7 is below 99"]
    assert "tool_f1 66.7 is below 99" in missed.err


def test_errors_say_what_to_do(files: tuple[str, str], tmp_path: Path) -> None:
    gold, predictions = files
    arguments = ("eval", "plans", "--mode", "mean", "--json", "--gold")
    absent = str(tmp_path / "absent")
    assert podium(*arguments, absent, "--predictions", gold).error["code"] == "EVALUATION_GOLD_INVALID"
    unreadable = podium(*arguments, gold, "--predictions", absent)
    assert unreadable.error["code"] == "EVALUATION_PREDICTIONS_UNREADABLE"
    mark = podium(*arguments, gold, "--predictions", predictions, "--mark", "beauty=5")
    assert mark.error["code"] == "EVALUATION_MARK_INVALID"
