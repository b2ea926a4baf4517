"""Many requests planned from a file: what a row may hold, what comes out, and what is refused before planning."""

import errno
import json
import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conductor.plan import Literal, Plan, Step, StepRef
from conductor.policy.batch import BatchPlan, BatchPlanner, BatchRow, in_order
from conductor.policy.batch_file import (
    LONGEST_REQUEST,
    BatchInvalid,
    read_rows,
    read_tools,
    require_apart,
    write_plans,
)
from conductor.policy.cards import ToolCard
from conductor.verify import find_cycle
from tests.fakes.drafting import ScriptedDrafter, WildDrafter

SEED = 31


def card(name: str, inputs: Mapping[str, Any] | None = None, outputs: Sequence[str] = ()) -> ToolCard:
    return ToolCard(
        name=name,
        input_schema={"type": "object", "properties": dict(inputs)} if inputs is not None else {},
        output_schema={"type": "object", "properties": {item: {} for item in outputs}} if outputs else {},
    )


def rows_file(folder: Path, *lines: Any) -> Path:
    path = folder / "in.jsonl"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def test_tools_without_schemas_make_a_chain_and_those_with_depend_by_reference() -> None:
    plain = (card("a"), card("b"), card("c"))
    typed = (
        card("a", {"x": {"type": "string"}}),
        card("b", {"y": {}, "n": {"type": "integer"}}, ["z"]),
        card("c", {}),
    )
    drafter = ScriptedDrafter(
        lambda text, cards: [["b", "a", "c"]],
        {"a": {"x": StepRef(step=0, field="z")}, "b": {"n": "no number", "y": [1], "other": 1}},
    )
    planner = BatchPlanner(lambda: drafter, tools=plain)

    chain = planner.plan(BatchRow(id=1, request="do it")).plan
    graph = planner.plan(BatchRow(id=1, request="do it", tools=typed)).plan

    assert [step.depends_on for step in chain.steps] == [(), (0,), (1,)]
    assert [step.depends_on for step in graph.steps] == [(), (0,), ()]
    assert graph.to_json()["steps"][0]["arguments"] == {"y": [1]}, "what the schema refuses is left out"
    assert graph.to_json()["steps"][1]["arguments"] == {"x": {"step": 0, "field": "z"}}
    assert graph.to_json()["steps"][2]["candidates"][0]["tool"] == "c"


def test_whatever_a_model_says_plans_are_acyclic_of_known_tools_and_fit_the_schemas() -> None:
    dice = random.Random(SEED)
    drafter = WildDrafter(dice)
    planner = BatchPlanner(lambda: drafter)
    cards = tuple(
        card(f"tool_{number % 9}", {"s": {"type": "string"}, "i": {"type": "integer"}, "a": {}}, ["o"])
        for number in range(12)
    )
    names = {item.name for item in cards}
    for number in range(400):
        tools = tuple(dice.sample(cards, dice.randint(0, len(cards))))
        plan = planner.plan(BatchRow(id=number, request="anything", tools=tools)).plan
        assert Plan.from_json(plan.to_json()) == plan
        assert not find_cycle(plan)
        for place, step in enumerate(plan.steps):
            assert step.tool in names
            assert all(before < place for before in step.depends_on)
            for name, value in step.arguments.items():
                if not isinstance(value, StepRef):
                    kind = {"s": str, "i": int, "a": object}[name]
                    assert isinstance(value.value, kind)  # type: ignore[union-attr]  # literals are what is left


def test_plans_come_in_order_from_several_threads() -> None:
    planner = BatchPlanner(
        lambda: ScriptedDrafter(lambda text, cards: [[text]]),
        tools=tuple(card(f"t{n}") for n in range(50)),
        threads=4,
    )

    plans = list(planner.plans(BatchRow(id=number, request=f"t{number}") for number in range(50)))

    assert [(plan.id, plan.plan.steps[0].tool) for plan in plans] == [(n, f"t{n}") for n in range(50)]


def test_ids_and_tools_of_rows_are_read_as_they_are(tmp_path: Path) -> None:
    tool = {"name": "t", "description": "d", "input_schema": {"properties": {}}}
    rows = read_rows(
        rows_file(tmp_path, {"id": 7, "request": "a"}, "", {"id": "7", "request": "b", "tools": [tool]})
    )

    assert [(row.id, row.request) for row in rows] == [(7, "a"), ("7", "b")]
    assert rows[0].tools is None
    assert rows[1].tools is not None
    assert rows[1].tools[0].description == "d"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"id": 1, "request": "a", "steps": []}, "'steps'"),
        ({"id": 1, "request": "a", "gold": 1}, "'gold'"),
        ({"id": 1}, "no request"),
        ({"id": 1, "request": "  "}, "no request"),
        ({"id": 1, "request": 5}, "no request"),
        ({"request": "a"}, "no id"),
        ({"id": True, "request": "a"}, "no id"),
        ({"id": 1, "request": "a" * (LONGEST_REQUEST + 1)}, "characters"),
        ({"id": 1, "request": "a", "tools": {"name": "x"}}, "no list"),
        ({"id": 1, "request": "a", "tools": [{"description": "x"}]}, "needs a name"),
        ('{"id": NaN, "request": "a"}', "NaN"),
        ('{"id": 1, "request": "\\ud800"}', "no JSON"),
        ('{"id": 1, "request": "a", "request": "b"}', "'request' stands there twice"),
        ("[1]", "no JSON object"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_bad_row_fails_with_its_line_before_anything_is_planned(tmp_path: Path, line: Any, told: str) -> None:
    with pytest.raises(BatchInvalid) as refused:
        read_rows(rows_file(tmp_path, {"id": 0, "request": "fine"}, line))

    assert told in refused.value.message
    assert "in.jsonl:2" in refused.value.message


def test_a_row_of_five_megabytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BatchInvalid, match=r"in\.jsonl:1.*characters"):
        read_rows(rows_file(tmp_path, {"id": 1, "request": "long " * 2**20}))


def test_tools_with_and_without_links(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": [{"name": "a"}, {"name": "b"}], "links": [["a", "b"]]}))
    assert read_tools(path).links == {("a", "b")}
    path.write_text(json.dumps({"tools": [{"name": "a"}], "links": []}))
    assert read_tools(path).links is None
    for wrong in ({"tools": []} | {"steps": []}, {"links": []}, {"tools": [], "links": [["a"]]}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(BatchInvalid):
            read_tools(path)
    with pytest.raises(BatchInvalid, match="cannot be read"):
        read_tools(tmp_path / "nothing.json")


def test_plans_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    planner = BatchPlanner(lambda: ScriptedDrafter(lambda text, cards: [["a"]]), tools=[card("a")])
    out = tmp_path / "out.jsonl"
    assert write_plans(out, planner.plans([BatchRow(id="x", request="r")])) == 1
    written = out.read_text(encoding="utf-8")
    assert json.loads(written) == {
        "id": "x",
        "steps": [{"tool": "a", "candidates": [{"tool": "a", "score": 0.9}], "arguments": {}, "depends_on": []}],
        "confidence": 0.9,
    }

    def broken() -> Any:
        yield planner.plan(BatchRow(id="y", request="r"))
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError):
        write_plans(out, broken())
    assert out.read_text(encoding="utf-8") == written
    assert list(tmp_path.iterdir()) == [out]
    with pytest.raises(BatchInvalid, match="cannot be written"):
        write_plans(tmp_path / "no" / "folder.jsonl", ())
    plan = Plan.of([Step(tool="a", arguments={"x": Literal(value=float("inf"))})], 0.5)
    with pytest.raises(BatchInvalid, match="plan of 'z'"):
        write_plans(out, [BatchPlan(id="z", plan=plan)])
    assert list(tmp_path.iterdir()) == [out]


def test_decisions_that_made_a_plan_stand_in_a_file_beside_it_one_request_a_line(tmp_path: Path) -> None:
    cards = (card("a", {}), card("b", {"x": {}}), card("c"))
    # "a" needs what "b" gives: the plan is put into another order than the model chose in.
    drafter = ScriptedDrafter(
        lambda text, tools: [["a", "b"]] if text == "do it" else [[]], {"a": {"x": StepRef(step=1, field="x")}}
    )
    rows = [BatchRow(id="x", request="do it"), BatchRow(id=2.5, request="唱")]
    out, beside = tmp_path / "out.jsonl", tmp_path / "decisions.jsonl"

    planner = BatchPlanner(lambda: drafter, tools=cards, keep_decisions=True)
    assert write_plans(out, planner.plans(rows), decisions=beside) == 2

    first, second = (json.loads(line) for line in beside.read_text(encoding="utf-8").splitlines())
    a, b = cards[0].key, cards[1].key
    assert first == {
        "id": "x",
        "request": "do it",
        "feedback": [],
        "decisions": [
            {"chosen": [], "action": a, "log_probability": -0.1},
            {"chosen": [a], "action": b, "log_probability": -0.1},
            {"chosen": [a, b], "action": None, "log_probability": -0.1},
        ],
    }
    assert (second["id"], second["request"]) == (2.5, rows[1].request)
    assert second["decisions"] == [{"chosen": [], "action": None, "log_probability": -0.1}]
    with_decisions = out.read_bytes()
    write_plans(out, BatchPlanner(lambda: drafter, tools=cards).plans(rows))
    assert out.read_bytes() == with_decisions, "what is kept besides changes no plan"


def test_decisions_and_plans_are_both_there_or_neither(tmp_path: Path) -> None:
    planner = BatchPlanner(
        lambda: ScriptedDrafter(lambda text, cards: [["a"]]), tools=[card("a")], keep_decisions=True
    )
    good = planner.plan(BatchRow(id=1, request="r"))
    nan = replace(good, decisions=(replace(good.decisions[0], log_probability=float("nan")),))
    out, beside = tmp_path / "out.jsonl", tmp_path / "decisions.jsonl"
    for where, plans, field in (
        (beside, [good, nan], "decisions"),
        (tmp_path / "no" / "folder.jsonl", [good], "decisions"),
        (
            beside,
            [replace(good, plan=Plan.of([Step(tool="a", arguments={"x": Literal(value=math.inf)})], 0.5))],
            "out",
        ),
    ):
        with pytest.raises(BatchInvalid) as refused:
            write_plans(out, plans, decisions=where)
        assert refused.value.field == field
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BatchInvalid, match="No space left"):
        write_plans(tmp_path / "out.jsonl", (), decisions=tmp_path / "decisions.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_plans_take_the_place_of_files_only_and_never_of_what_they_are_made_from(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BatchInvalid, match="no file"):
        write_plans(pipe, ())
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("before")
    link.symlink_to(real)
    write_plans(link, ())
    assert link.is_symlink()
    assert real.read_text() == ""
    require_apart(tmp_path / "fresh", real, None)
    for out, other in ((link, real), (tmp_path / "fresh", tmp_path / "." / "fresh")):
        with pytest.raises(BatchInvalid, match="something else") as refused:
            require_apart(out, None, other, field="decisions")
        assert refused.value.field == "decisions"


def test_equal_tools_of_a_row_are_one(tmp_path: Path) -> None:
    tools = [{"name": "a"}, {"name": "a"}, {"name": "a", "description": "another"}]
    rows = read_rows(rows_file(tmp_path, {"id": 1, "request": "r", "tools": tools}))
    assert rows[0].tools is not None
    assert [card.description for card in rows[0].tools] == ["", "another"]


def test_a_plan_is_put_into_the_order_of_its_references() -> None:
    steps = [
        Step(tool="pay", arguments={"id": StepRef(step=2, field="id")}),
        Step(tool="tell", depends_on=(0,)),
        Step(tool="book", arguments={"seat": Literal(value="3A")}),
    ]
    found = in_order(steps)
    assert [step.tool for step in found] == ["book", "pay", "tell"]
    assert found[1].arguments == {"id": StepRef(step=0, field="id")}
    assert found[2].depends_on == (1,)
    assert in_order(found) == found
