"""`podium plan --batch`: who can plan a file, and what it writes beside the plans."""

import json
from pathlib import Path
from typing import Any

import pytest

from conductor.policy.cards import ToolCard
from tests.fakes.drafting import ScriptedDrafter
from tests.integration.command_line import Ran, podium

TOOLS = [{"name": "find_flight", "description": "Finds a flight."}, {"name": "book_flight"}]
KEYS = [ToolCard.from_json(tool).key for tool in TOOLS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two requests and two tools."""
    rows = [{"id": "a", "request": "Find a flight and book it."}, {"id": 2, "request": "Sing."}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "tools.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    return tmp_path


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that wants both tools for whatever is to be found, and nothing for the rest."""

    def drafter(*_: Any) -> ScriptedDrafter:
        return ScriptedDrafter(lambda text, _: [["find_flight", "book_flight"] if "Find" in text else []])

    monkeypatch.setattr("conductor.policy.drafting.Drafter", drafter)


def _plan(folder: Path, *more: str) -> Ran:
    return podium(
        *("plan", "--batch", str(folder / "in.jsonl"), "--tools", str(folder / "tools.json")),
        *("--out", str(folder / "out.jsonl"), "--data", str(folder / "var"), "--json", *more),
    )


@pytest.mark.usefixtures("scripted")
def test_decisions_are_written_beside_the_plans_where_they_are_asked_for(folder: Path) -> None:
    plain = _plan(folder)
    assert (plain.status, plain.json["plans"], "decisions" in plain.json) == (0, 2, False), plain.err
    plans = (folder / "out.jsonl").read_bytes()
    beside = folder / "decisions.jsonl"

    ran = _plan(folder, "--decisions", str(beside))

    assert (ran.status, ran.json["decisions"]) == (0, str(beside)), ran.err
    assert (folder / "out.jsonl").read_bytes() == plans
    rows = [json.loads(line) for line in beside.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["request"]) for row in rows] == [("a", "Find a flight and book it."), (2, "Sing.")]
    assert [[one["action"] for one in row["decisions"]] for row in rows] == [[*KEYS, None], [None]]
    assert [one["chosen"] for one in rows[0]["decisions"]] == [[], KEYS[:1], KEYS]
    assert all(one["log_probability"] <= 0 for row in rows for one in row["decisions"])


def test_decisions_do_not_take_the_place_of_what_is_read_or_written(folder: Path) -> None:
    before = (folder / "in.jsonl").read_bytes()
    for name in ("in.jsonl", "tools.json", "out.jsonl"):
        refused = _plan(folder, "--decisions", str(folder / name))
        assert (refused.status, refused.error["code"]) == (1, "BATCH_INVALID")
        assert name in refused.error["message"]
    assert (folder / "in.jsonl").read_bytes() == before
    assert not (folder / "out.jsonl").exists()


def test_who_cannot_plan_a_file_or_takes_no_decisions_says_what_to_do_instead(folder: Path) -> None:
    hybrid = _plan(folder, "--planner", "hybrid")
    assert (hybrid.status, hybrid.error["code"]) == (1, "INVALID_REQUEST")
    assert "no rule speaks of tools that only a file describes" in hybrid.error["message"]
    assert "--planner policy" in hybrid.error["next_step"]
    rules = _plan(folder, "--planner", "rules", "--decisions", str(folder / "decisions.jsonl"))
    assert (rules.status, rules.error["code"]) == (1, "INVALID_REQUEST")
    assert "rules takes no decisions" in rules.error["message"]
    alone = podium("plan", "sing", "--decisions", str(folder / "decisions.jsonl"), "--json")
    assert (alone.status, alone.error["code"]) == (1, "INVALID_REQUEST")
    assert sorted(path.name for path in folder.glob("*.json*")) == ["in.jsonl", "tools.json"]
