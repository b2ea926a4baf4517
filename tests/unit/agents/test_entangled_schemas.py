"""Schemas that name themselves over and over: whoever reads them comes to an end, and soon."""

import time
from typing import Any

import pytest

from agents.drift import drifts
from agents.generation import generate

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
