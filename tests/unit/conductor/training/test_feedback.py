"""Feedback as training data: out of corrections, and as rows of the selector's memory."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from conductor.policy.parts import WIDTH
from conductor.policy.selecting import VERDICTS
from conductor.training.datasets import TrainingDataInvalid
from conductor.training.feedback import read_corrected, read_mistakes, write_mistakes
from conductor.training.feedback_memory import told_about, with_told
from conductor.training.selector import Memory

ROW: dict[str, Any] = {
    "id": "task-1",
    "request": "Book a table and tell Ann.",
    "tools": [{"name": "book_table"}, {"name": "reserve_table"}, {"name": "send_mail"}],
    "steps": [{"tool": "reserve_table"}, {"tool": "send_mail", "depends_on": [0]}],
    "previous": {"steps": [{"tool": "book_table"}, {"tool": "send_mail"}], "verdicts": ["unavailable", ""]},
}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_what_a_person_corrected_is_a_trajectory(tmp_path: Path) -> None:
    first = {name: value for name, value in ROW.items() if name != "previous"}
    (found,) = read_corrected(written(tmp_path, first, ROW))
    assert [(outcome.tool, outcome.verdict) for outcome in found.outcomes] == [("book_table", "unavailable")]
    assert [step.tool for step in found.example.steps] == ["reserve_table", "send_mail"]
    assert found.fails
    assert found.broken == {"book_table"}


@pytest.mark.parametrize(
    "previous",
    [
        {"steps": [{"tool": "book_table"}], "verdicts": ["away"]},
        {"steps": [{"tool": "book_table"}], "verdicts": []},
        {"steps": [{"tool": "book_table"}]},
        {"steps": [{}], "verdicts": ["ok"]},
        {"steps": 3, "verdicts": ["ok"]},
    ],
)
def test_a_row_of_another_form_is_refused(tmp_path: Path, previous: dict[str, Any]) -> None:
    with pytest.raises(TrainingDataInvalid, match="task-1"):
        read_corrected(written(tmp_path, {**ROW, "previous": previous}))


def test_a_correction_to_a_tool_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingDataInvalid, match="call_ann"):
        read_corrected(written(tmp_path, {**ROW, "steps": [{"tool": "call_ann"}]}))


def test_mistakes_are_read_as_they_were_written(tmp_path: Path) -> None:
    mistakes = {("ultratool", "7"): (("a", "b"), ("c",)), ("nestools", "1"): (("d",),)}
    write_mistakes(tmp_path / "mistakes.jsonl", mistakes)
    assert read_mistakes(tmp_path / "mistakes.jsonl") == mistakes
    with pytest.raises(TrainingDataInvalid, match="source"):
        read_mistakes(written(tmp_path, {"id": "7"}))


def test_what_was_told_stands_behind_the_request_in_the_memory() -> None:
    torch.manual_seed(5)
    memory = Memory()
    tools = torch.randn(4, WIDTH)
    rows, mask = memory(torch.randn(2, 3, WIDTH)), torch.ones(2, 3, dtype=torch.int64)
    told = (((1, VERDICTS.index("ok")), (2, VERDICTS.index("failed"))), ())
    found, on = with_told(memory, rows, mask, tools, told)
    assert found.shape[1] == 5
    assert on.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert torch.equal(found[:, :3], rows)
    other, _ = with_told(memory, rows, mask, tools, (((1, VERDICTS.index("missing")), told[0][1]), ()))
    assert not torch.allclose(other[0, 3], found[0, 3]), "the verdict can be told from the row"
    assert torch.allclose(other[0, 4], found[0, 4])
    found.sum().backward()
    assert memory.verdict.weight.grad is not None


def test_nothing_told_changes_nothing() -> None:
    memory = Memory()
    rows, mask = torch.zeros(2, 3, 8), torch.ones(2, 3, dtype=torch.int64)
    assert with_told(memory, rows, mask, torch.zeros(1, WIDTH), ((), ()))[0] is rows
    assert with_told(memory, rows, mask, torch.zeros(1, WIDTH), ())[1] is mask


def test_a_tool_that_was_told_of_is_found_on_the_short_list() -> None:
    listed = torch.tensor([[3, 1, 0], [2, 1, 0]])
    assert told_about(listed, (((1, 0), (3, 2)), ())).tolist() == [[True, True, False], [False, False, False]]
