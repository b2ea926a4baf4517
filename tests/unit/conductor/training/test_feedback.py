"""Feedback as training data: out of corrections, and as rows of the selector's memory."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from conductor.policy.parts import WIDTH
from conductor.policy.selecting import VERDICTS
from conductor.training.datasets import TrainingDataInvalid, read_ultratool
from conductor.training.feedback import FeedbackSamples, read_corrected, read_mistakes, write_mistakes
from conductor.training.feedback_memory import told_about, with_told
from conductor.training.selector import Memory
from conductor.training.selector_batches import batch_of
from conductor.training.selector_samples import Catalogue, Mixture, Samples
from conductor.training.splits import part_of
from tests.unit.conductor.training.planning_data import none_alike

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
    plain, found = read_corrected(written(tmp_path, first, ROW))
    assert (plain.outcomes, plain.example.steps) == ((), found.example.steps)
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
    rows, mask = memory(torch.randn(2, 3, WIDTH), torch.ones(2, 3)), torch.ones(2, 3, dtype=torch.int64)
    told = (((1, VERDICTS.index("ok")), (2, VERDICTS.index("failed"))), ())
    found, on = with_told(memory, rows, mask, tools, told)
    assert found.shape[1] == 5
    assert on.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert torch.equal(found[:, :3], rows)
    other, _ = with_told(memory, rows, mask, tools, (((1, VERDICTS.index("missing")), told[0][1]), ()))
    assert not torch.allclose(other[0, 3], found[0, 3]), "the verdict can be told from the row"
    assert torch.allclose(other[0, 4], found[0, 4])
    torch.autograd.backward(found.sum())
    assert memory.verdict.weight.grad is not None


def test_nothing_told_changes_nothing() -> None:
    memory = Memory()
    rows, mask = torch.zeros(2, 3, 8), torch.ones(2, 3, dtype=torch.int64)
    assert with_told(memory, rows, mask, torch.zeros(1, WIDTH), ((), ()))[0] is rows
    assert with_told(memory, rows, mask, torch.zeros(1, WIDTH), ())[1] is mask


def test_a_tool_that_was_told_of_is_found_on_the_short_list() -> None:
    listed = torch.tensor([[3, 1, 0], [2, 1, 0]])
    assert told_about(listed, (((1, 0), (3, 2)), ())).tolist() == [[True, True, False], [False, False, False]]


def _neutral(folder: Path, rows: list[dict[str, Any]], registry: list[dict[str, Any]] | None = None) -> None:
    """A data set in the neutral form: rows of `request`, `steps` and, without a registry, `tools`."""
    folder.mkdir(parents=True)
    if registry is not None:
        links = [[first["name"], second["name"]] for first in registry for second in registry]
        (folder / "tools.json").write_text(json.dumps({"tools": registry, "links": links}))
    requests = [{name: row[name] for name in ("id", "request", "tools") if name in row} for row in rows]
    for name, found in (
        ("requests", requests),
        ("gold", [{"id": row["id"], "steps": row["steps"]} for row in rows]),
    ):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))


def _data(folder: Path) -> Path:
    """Public data in small: 24 requests over five tools, and a few with tools of their own."""
    registry = [
        {"name": f"{verb}_{noun}", "description": f"{verb} a {noun} for the user"}
        for verb, noun in (
            ("book", "hotel"),
            ("search", "flight"),
            ("send", "mail"),
            ("check", "weather"),
            ("buy", "tea"),
        )
    ]
    names = [tool["name"] for tool in registry]
    chains = [
        {
            "id": f"u{at}",
            "request": f"Do {first} and then {second}.",
            "steps": [{"tool": first}, {"tool": second, "depends_on": [0]}],
        }
        for at, (first, second) in enumerate((a, b) for a in names for b in names if a != b)
    ]
    own = [
        {"id": f"o{at}", "request": f"Number {at}: do {name}.", "tools": registry, "steps": [{"tool": name}]}
        for at, name in enumerate(names * 3)
    ]
    _neutral(folder / "ultratool", chains, registry)
    _neutral(folder / "sealtools", [{**row, "id": f"s{row['id']}"} for row in chains], registry)
    for name in ("nestools", "bfcl/simple_python", "bfcl/multiple", "bfcl/live_simple", "bfcl/live_multiple"):
        _neutral(folder / name, own)
    return folder


def test_samples_with_feedback_use_the_catalogue_and_keep_out_held_sets(tmp_path: Path) -> None:
    data, nothing = _data(tmp_path / "data"), tmp_path / "nothing"
    catalogue = Catalogue()
    samples = Samples(data, catalogue, mixture=Mixture(), folder=nothing)
    before = len(catalogue.cards)
    corrected = read_corrected(written(tmp_path, ROW))
    source = FeedbackSamples(samples, data, folder=nothing, extra=corrected)
    grown = len(catalogue.cards)
    assert before < grown <= before + 5 + len(ROW["tools"]), "a stand-in for each tool of a plan"
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    found = [source.draw(chance) for _ in range(200)]
    again = random.Random(seed)
    assert [source.draw(again) for _ in range(200)] == found, f"seed {seed}"
    assert len(catalogue.cards) == grown, f"nothing is added while drawing; seed {seed}"
    held = {
        frozenset(step.tool for step in row.steps)
        for row in read_ultratool(data)
        if part_of(row) in ("dev_disjoint", "select_disjoint")
    }
    assert held, "the small data has such sets"
    for sample in found:
        assert set(sample.path) <= set(sample.candidates), f"seed {seed}"
        assert all(0 <= verdict < len(VERDICTS) for _, verdict in sample.feedback), f"seed {seed}"
        assert frozenset(catalogue.cards[at].name for at in sample.path) not in held, f"seed {seed}"
    assert any(sample.request == ROW["request"] for sample in found), f"corrections are among them; seed {seed}"
    linked = [sample for sample in found if sample.linked and sample.feedback]
    assert linked, f"seed {seed}"
    stand_ins = {at for at in range(before, grown)}
    assert {first for first, _ in catalogue.links} & stand_ins, "what may follow a tool may follow its stand-in"


def test_a_batch_says_what_was_told_of_its_tools(tmp_path: Path) -> None:
    data, nothing = _data(tmp_path / "data"), tmp_path / "nothing"
    catalogue = Catalogue()
    samples = Samples(data, catalogue, mixture=Mixture(), folder=nothing)
    source = FeedbackSamples(samples, data, folder=nothing)
    chance = random.Random(4)
    drawn = [sample for sample in (source.draw(chance) for _ in range(20)) if sample.feedback][:4]
    batch = batch_of(drawn, catalogue, chance, links_shown=0.5, alike=none_alike)
    assert [len(told) for told in batch.told] == [len(sample.feedback) for sample in drawn]
    for told, sample in zip(batch.told, drawn, strict=True):
        assert [batch.tools[place] for place, _ in told] == [tool for tool, _ in sample.feedback]
