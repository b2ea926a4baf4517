"""Every kept request is a plan that could be carried out: its tools, arguments and references exist."""

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agents.spec import loose_objects
from bench.plans.reading import (
    FOLDER,
    ChineseTask,
    new_agent_cards,
    read_chinese,
    read_new_agents,
    read_parallel,
    read_unservable,
)
from conductor.policy.cards import ToolCard
from conductor.schema_fit import field_schema, misfits
from conductor.training.datasets import DATA_VARIABLE, rows_of
from conductor.training.examples import Example

NOWHERE = Path("/nowhere")
CARDS = {card.name: card for card in new_agent_cards()}


@cache
def _chinese() -> tuple[ChineseTask, ...]:
    return read_chinese()


@cache
def _over_new_agents() -> tuple[Example, ...]:
    return (*read_new_agents(), *(task.example for task in _chinese() if not task.expect))


def _literals(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if not isinstance(value, dict)}


def _without_references(card: ToolCard, names: Iterable[str]) -> dict[str, Any]:
    """The schema of the arguments that are written out."""
    left = set(names)
    return {**card.input_schema, "required": [name for name in card.required if name not in left]}


def test_the_agents_have_strict_schemas_and_names_of_their_own():
    assert len(CARDS) == 30
    for card in CARDS.values():
        assert not loose_objects(card.input_schema, "input")
        assert not loose_objects(card.output_schema, "output")
        assert card.required <= set(card.inputs)
        assert {"confidence_score", "sources"} <= set(card.outputs)
        jsonschema_rs.validator_for(dict(card.input_schema))


@pytest.mark.parametrize("example", _over_new_agents(), ids=lambda example: example.id)
def test_the_steps_of_a_request_could_be_carried_out(example: Example) -> None:
    for index, step in enumerate(example.steps):
        card = CARDS[step.tool]
        references = {name: value for name, value in step.arguments.items() if isinstance(value, dict)}
        schema = _without_references(card, references)
        jsonschema_rs.validator_for(schema, validate_formats=True).validate(_literals(step.arguments))
        assert set(step.arguments) <= set(card.inputs)
        assert {value["step"] for value in references.values()} <= set(step.depends_on)
        assert all(0 <= before < index for before in step.depends_on)
        for name, value in references.items():
            produced = CARDS[example.steps[value["step"]].tool].output_schema
            found = field_schema(produced, value["field"])
            assert not [
                fault for fault in misfits(found, produced, card.inputs[name], card.input_schema) if fault.certain
            ]


def test_there_are_as_many_steps_as_the_readme_says():
    lengths = [len(example.steps) for example in read_new_agents()]
    assert [lengths.count(length) for length in (1, 2, 3)] == [80, 50, 20]
    assert {step.tool for example in read_new_agents() for step in example.steps} == set(CARDS)


def test_values_stand_in_the_request_or_are_a_reading_of_it():
    """Whoever fills it in must be able to find it: only dates, times and choices may be worded otherwise."""
    for example in _over_new_agents():
        for step in example.steps:
            for name, value in _literals(step.arguments).items():
                schema = CARDS[step.tool].inputs[name]
                if isinstance(value, str) and not set(schema) & {"enum", "format", "pattern"}:
                    assert value.casefold() in example.request.casefold(), (example.id, name, value)


def test_what_nobody_serves_has_an_empty_plan():
    rows = tuple(rows_of(FOLDER / "unservable.jsonl"))
    counts = {name: sum(row["tools"] == name for row in rows) for name in ("new_agents", "packs", "ultratool")}
    assert counts == {"new_agents": 40, "packs": 30, "ultratool": 30}
    found = read_unservable(NOWHERE, "new_agents", "packs")
    assert len(found) == 70
    assert all(example.tools and not example.steps for example in found)
    assert "invoice_extractor" in {card.name for card in found[-1].tools}


@pytest.mark.skipif(DATA_VARIABLE not in os.environ, reason=f"needs {DATA_VARIABLE}")
def test_ultratools_registry_is_read_where_it_is():
    found = read_unservable(Path(os.environ[DATA_VARIABLE]), "ultratool")
    assert len(found) == 30
    assert {len(example.tools) for example in found} == {260}


def test_chinese_requests_expect_the_plan_of_a_rule_that_exists():
    tasks = [task for task in _chinese() if task.expect]
    assert len(tasks) == 60
    for task in tasks:
        names = {card.name for card in task.example.tools}
        assert task.example.tool_set <= names
        assert all(index > before for index, step in enumerate(task.example.steps) for before in step.depends_on)
        assert (task.expect == "invoice_from_device") == bool(task.payload_kind)
        assert (task.expect == "invoice_from_attachment") == (len(task.attachments) == 1)
        assert not task.empty_is_right_too or task.expect == "clarify"
    assert len(_chinese()) == 100


@pytest.mark.parametrize("kind", ["parallel", "parallel_multiple"])
def test_accepted_values_fit_the_functions(kind: Any) -> None:
    found = read_parallel(kind)
    assert len(found) == 80
    for example in found:
        cards = {card.name: card for card in example.tools}
        assert len(example.steps) > 1
        assert (len(example.tool_set) == 1) == (kind == "parallel")
        assert kind == "parallel_multiple" or len(cards) == 1
        for step in example.steps:
            card = cards[step.tool]
            assert step.accept is not None
            assert set(step.accept) == set(card.inputs)
            for name, values in step.accept.items():
                assert ("" in values) <= (name not in card.required), (example.id, name)
                written = [value for value in values if value != ""]
                assert written or name not in card.required
                for value in written:
                    jsonschema_rs.validator_for(dict(card.inputs[name])).validate(value)


def test_no_request_comes_twice():
    texts = [row["request"] for path in sorted(FOLDER.glob("*.jsonl")) for row in rows_of(path)]
    again = [text for text in set(texts) if text and texts.count(text) > 1]
    assert not again
    assert len({json.dumps(row["id"]) for path in FOLDER.glob("*.jsonl") for row in rows_of(path)}) == len(texts)
