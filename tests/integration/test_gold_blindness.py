"""Plans are made without a look at the right ones: shuffled or taken away, these change no byte of a plan."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from conductor.evaluation.rows import read_predictions
from tests.integration.command_line import podium

PLANNERS = ("rules", "policy")
TOOLS = [
    {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": {argument: {"type": "string", "description": argument}}},
        "output_schema": {"type": "object", "properties": {result: {"type": "string"}}},
    }
    for name, description, argument, result in (
        ("find_flight", "Search for flights to a city", "city", "flight_id"),
        ("book_flight", "Book a flight that was found", "flight_id", "ticket"),
        ("find_hotel", "Search for hotels in a city", "city", "hotel_id"),
        ("send_mail", "Send a mail with a text", "text", "receipt"),
    )
]
REQUESTS = (
    "Find me a flight to Paris and book it.",
    "Which hotels are there in Lisbon?",
    "Find a hotel in Rome, then send it to me by mail.",
    "Send a mail that says hello.",
    "Book the flight with the id LH 123.",
)
GOLD = (
    ["find_flight", "book_flight"],
    ["find_hotel"],
    ["find_hotel", "send_mail"],
    ["send_mail"],
    ["book_flight"],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Requests, tools and gold in one folder, as public data come."""
    _write(tmp_path / "requests.jsonl", [{"id": at, "request": text} for at, text in enumerate(REQUESTS)])
    (tmp_path / "tools.json").write_text(json.dumps({"tools": TOOLS}), encoding="utf-8")
    _write_gold(tmp_path, GOLD)
    return tmp_path


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_gold(folder: Path, plans: Any) -> None:
    _write(
        folder / "gold.jsonl",
        [{"id": at, "steps": [{"tool": name} for name in names]} for at, names in enumerate(plans)],
    )


def _planned(folder: Path, planner: str, name: str) -> bytes:
    out = folder / name
    ran = podium(
        *("plan", "--batch", str(folder / "requests.jsonl"), "--tools", str(folder / "tools.json")),
        *("--out", str(out), "--planner", planner, "--threads", "1", "--data", str(folder / "var"), "--json"),
    )
    assert ran.status == 0, ran.err
    assert ran.json["plans"] == len(REQUESTS)
    return out.read_bytes()


@pytest.mark.parametrize("planner", PLANNERS)
def test_gold_that_is_shuffled_or_gone_changes_nothing(folder: Path, planner: str) -> None:
    before = _planned(folder, planner, "before.jsonl")
    for seed in range(2):
        shuffled = list(GOLD)
        random.Random(seed).shuffle(shuffled)
        assert shuffled != list(GOLD)
        _write_gold(folder, shuffled)
        assert _planned(folder, planner, "shuffled.jsonl") == before
    (folder / "gold.jsonl").unlink()
    assert _planned(folder, planner, "without.jsonl") == before
    found = read_predictions(folder / "before.jsonl")
    assert (len(found.by_id), found.invalid) == (len(REQUESTS), 0)
    if planner == "policy":
        assert any(plan.steps for plan in found.by_id.values())


@pytest.mark.parametrize("key", ["steps", "gold", "text", "plan", "accept", "depends_on"])
def test_a_batch_that_carries_more_than_requests_is_refused_before_anything_is_planned(
    folder: Path, key: str
) -> None:
    rows: list[dict[str, Any]] = [{"id": at, "request": text} for at, text in enumerate(REQUESTS)]
    rows[3][key] = [{"tool": "send_mail"}]
    _write(folder / "requests.jsonl", rows)
    out = folder / "out.jsonl"
    ran = podium(
        *("plan", "--batch", str(folder / "requests.jsonl"), "--tools", str(folder / "tools.json")),
        *("--out", str(out), "--planner", "rules", "--data", str(folder / "var"), "--json"),
    )
    assert ran.error["code"] == "BATCH_INVALID"
    assert key in ran.error["message"]
    assert ":4" in ran.error["message"]
    assert not out.exists()
