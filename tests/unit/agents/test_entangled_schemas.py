"""Schemas that name themselves over and over: whoever reads them comes to an end, and soon."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agents.drift import drifts
from agents.generation import generate
from agents.manifest_lint import lint
from agents.schema_growth import growth_problem
from agents.spec import load_spec

SELF: dict[str, Any] = {"$ref": "#/$defs/self"}
HOSTILE: dict[str, Any] = {
    "a name of itself": SELF,
    "one of itself": {"anyOf": [SELF, SELF]},
    "one of itself or text": {"oneOf": [SELF, SELF, {"type": "string"}]},
    "much of itself": {
        "type": "object",
        "properties": {name: {"anyOf": [SELF, SELF]} for name in "abcdefghij"},
        "required": list("abcdefghij"),
        "additionalProperties": False,
    },
    "lists of itself": {"type": "array", "items": SELF, "minItems": 50, "maxItems": 50},
    "maps of itself": {"type": "object", "additionalProperties": SELF, "minProperties": 50},
    "a long list": {"type": "array", "items": {"type": "null"}, "minItems": 10**12},
    "a long text": {"type": "string", "minLength": 10**12},
}
LADDER = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(39)} | {"s39": {"type": "null"}}


def rooted(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": SELF}, "required": ["x"], "$defs": {"self": part}}


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
def test_generating_comes_to_an_end(part: dict[str, Any]) -> None:
    began_s = time.process_time()
    made = list(generate(rooted(part), [], count=4, seed=1))
    assert len(made) == 4
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "value", ["text", {"a": {"b": {"c": 1}}}, [[[1] * 100] * 100]], ids=["text", "map", "lists"]
)
def test_comparing_comes_to_an_end(part: dict[str, Any], value: Any) -> None:
    began_s = time.process_time()
    list(drifts(rooted(part), {"x": value}))
    assert time.process_time() - began_s < 5


def test_alternatives_that_double_at_every_step_are_each_seen_once() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/s0"}}, "$defs": LADDER}
    assert [drift.kind for drift in drifts(schema, {"x": "text"})] == ["OTHER_TYPE"]
    assert not list(drifts(schema, {"x": None}))


NOTHING = {"type": "null"}
TWICE = "lead back to it"


def fresh(part: Any) -> Any:
    """As a manifest is read: no part is there twice as one object."""
    return json.loads(json.dumps(part))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"anyOf": [SELF, NOTHING]}, ""),
        ({"type": "array", "items": SELF}, ""),
        ({"type": "object", "properties": {"left": SELF, "right": {"anyOf": [SELF, NOTHING]}}}, ""),
        ({"type": "object", "properties": {"x": SELF}, "patternProperties": {"^a": NOTHING}}, ""),
        ({"anyOf": [SELF, SELF]}, TWICE),
        ({"allOf": [{"properties": {"a": SELF}}, {"properties": {"b": SELF}}]}, TWICE),
        ({"anyOf": [{"items": SELF}], "oneOf": [{"items": SELF}]}, TWICE),
        ({"if": {"properties": {"a": SELF}}, "then": {"properties": {"a": SELF}}}, TWICE),
        ({"type": "object", "properties": {"x": SELF}, "patternProperties": {"^x": SELF}}, TWICE),
        ({"type": "object", "patternProperties": {"^x": SELF, "x$": SELF}}, TWICE),
        ({"type": "array", "items": SELF, "contains": SELF}, TWICE),
        ({"properties": {"a": {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}}}, TWICE),
    ],
)
def test_what_leads_back_to_itself_twice_is_found(part: dict[str, Any], said: str) -> None:
    problem = growth_problem(fresh(rooted(part)))
    assert said in problem
    assert bool(problem) == bool(said)


def test_more_ways_than_anybody_needs_are_found() -> None:
    schema = fresh({"type": "object", "properties": {"x": {"$ref": "#/$defs/s0"}}, "$defs": LADDER})
    assert "more than 100000 ways" in growth_problem(schema)
    short = {name: LADDER[name] for name in ("s36", "s37", "s38", "s39")}
    assert growth_problem(fresh({"properties": {"x": {"$ref": "#/$defs/s36"}}, "$defs": short})) == ""


def test_no_shipped_agent_is_entangled() -> None:
    manifests = sorted((Path(__file__).parents[3] / "agents").rglob("*.yaml"))
    specs = [load_spec(path) for path in manifests if "output_schema:" in path.read_text("utf-8")]
    assert len(specs) > 10
    assert not [one.name for one in specs if growth_problem(one.input_schema) or growth_problem(one.output_schema)]


def test_an_entangled_manifest_is_refused_before_anything_is_compiled() -> None:
    manifest = {"name": "x", "output_schema": rooted({"anyOf": [SELF, SELF]})}
    found = {finding.code: finding for finding in lint(json.dumps(manifest, indent=1)).fatal}
    assert found["SCHEMA_ENTANGLED"].path == "output_schema"
    assert found["SCHEMA_ENTANGLED"].line > 1
