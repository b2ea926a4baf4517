"""Training requests for the packs carry the plans that the `rules` planner really makes."""

import asyncio
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cloud.specialists import load_specialists
from conductor.policy.cards import ToolCard
from conductor.training.datasets import TrainingDataInvalid, rows_of
from conductor.training.examples import Example
from conductor.training.packs import PackExamples, PackSetting, pack_cards, pack_examples
from conductor.training.written import FOLDER, PACK_CARDS, read_written

OTHERS = tuple(ToolCard(name=f"other_{number}", description=f"does {number}") for number in range(30))
ASK = "clarify"


@cache
def _setting() -> PackSetting:
    specialists = load_specialists()
    return PackSetting(
        planner=specialists.planner,
        normalise=specialists.normalise,
        registry=specialists.registry,
        vocabularies=[pack.vocabulary for pack in specialists.packs],
        as_of=datetime(2026, 10, 15, tzinfo=UTC),
    )


@cache
def _found(seed: int = 3, count: int = 120) -> PackExamples:
    return asyncio.run(pack_examples(_setting(), count=count, seed=seed, distractors=OTHERS))


def _of(kind: str) -> list[Example]:
    return [example for example in _found().examples if f"-{kind}-" in example.id]


def test_the_same_seed_gives_the_same_and_another_seed_does_not():
    again = asyncio.run(pack_examples(_setting(), count=120, seed=3, distractors=OTHERS))
    assert again.examples == _found().examples
    assert {e.request for e in _found(seed=4).examples} != {e.request for e in _found().examples}


def test_both_languages_have_all_kinds_and_no_request_comes_twice():
    examples = _found().examples
    kinds = {example.id.rsplit("-", 1)[0] for example in examples}
    expected = {"sales", "document", "asked_back", "unservable"}
    assert kinds == {f"{language}-{kind}" for language in ("zh", "en") for kind in expected}
    assert len({example.request for example in examples}) == len(examples) > 100


def test_sales_questions_get_the_chain_of_the_pack_with_its_references():
    for example in _of("sales"):
        tools = [step.tool for step in example.steps]
        assert (tools[0], tools[-1], len(tools)) == ("parser", "reporter", 9)
        assert example.steps[0].arguments["text"] == {"request": "text"}
        assert example.steps[3].arguments["intent"] == {"step": 1, "field": "intent"}
        assert example.steps[3].depends_on == (1,)


def test_documents_get_the_chain_for_how_they_came():
    first = {example.steps[0].tool for example in _of("document")}
    assert {"invoice_extractor", "page_reader"} <= first <= {"invoice_extractor", "page_reader", ASK}
    for example in _of("document"):
        came_by_device = "设备" in example.request or "device" in example.request
        assert came_by_device == (example.steps[0].tool == "invoice_extractor")


def test_what_is_missing_is_asked_and_what_nobody_serves_is_empty():
    assert all([step.tool for step in example.steps] == [ASK] for example in _of("asked_back"))
    assert all(example.steps == () for example in _of("unservable"))


def test_every_step_is_among_the_tools_and_others_stand_beside_them_in_some():
    agents = pack_cards(_setting().registry)
    alone = 0
    for example in _found().examples:
        names = [card.name for card in example.tools]
        assert len(set(names)) == len(names)
        assert {step.tool for step in example.steps} <= set(names)
        assert example.tools[: len(agents)] == agents
        alone += len(names) == len(agents)
    assert 0 < alone < len(_found().examples)


def test_the_committed_requests_fit_the_agents_there_are():
    """When this fails, an agent or a rule changed: run `python -m bench.pack_examples`."""
    agents = {card.name: card for card in pack_cards(_setting().registry)}
    committed = {card["name"]: card for card in json.loads(PACK_CARDS.read_text(encoding="utf-8"))}
    assert {ToolCard.from_json(card).key for card in committed.values()} == {card.key for card in agents.values()}
    rows = list(rows_of(FOLDER / "packs.jsonl"))
    assert len(rows) > 700
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        for step in row["steps"]:
            assert set(step["arguments"]) <= set(agents[step["tool"]].inputs), row["id"]


def _row(**changes: Any) -> str:
    row = {"id": "1", "request": "hello", "registry": "packs", "steps": [{"tool": "parser"}]}
    return json.dumps(row | changes) + "\n"


def test_a_row_over_the_packs_may_have_tools_of_others_beside_it(tmp_path: Path):
    data = tmp_path / "data" / "ultratool"
    data.mkdir(parents=True)
    tools = {"tools": [{"name": "check_weather"}, {"name": "book_flight"}]}
    (data / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    (data / "requests.jsonl").write_text('{"id": 1, "request": "rain?"}\n', encoding="utf-8")
    (data / "gold.jsonl").write_text('{"id": 1, "steps": [{"tool": "check_weather"}]}\n', encoding="utf-8")
    (tmp_path / "mine.jsonl").write_text(
        _row(others={"ultratool": ["book_flight"]}) + _row(id="2"), encoding="utf-8"
    )
    crowded, plain = read_written("mine", tmp_path / "data", tmp_path)
    assert crowded.tools[-1].name == "book_flight"
    assert {card.name for card in plain.tools} == {card.name for card in pack_cards(_setting().registry)}
    (tmp_path / "mine.jsonl").write_text(_row(others={"ultratool": ["no_such"]}), encoding="utf-8")
    with pytest.raises(TrainingDataInvalid, match="no_such"):
        read_written("mine", tmp_path / "data", tmp_path)
