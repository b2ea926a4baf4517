"""Schemas and values that would keep a validator busy for ever; they are noticed, or answered at once."""

import time
from typing import Any

import pytest

from agents.contract import Contract
from agents.schema_cost import costs_too_much
from agents.spec import ManifestInvalid
from tests.unit.agents.specs import output_schema, spec

SECONDS = 3.0


def chain(length: int, branches: int = 2, key: str = "allOf") -> dict[str, Any]:
    """Each definition leads to the next one, several times over."""
    defs: dict[str, Any] = {f"d{n}": {key: [{"$ref": f"#/$defs/d{n + 1}"}] * branches} for n in range(length)}
    return {"$defs": {**defs, f"d{length}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


def tree(key: str) -> dict[str, Any]:
    """Two branches that both descend into the schema itself, in the same part of the value."""
    branch = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    return {key: [branch, dict(branch)]}


def items(key: str) -> dict[str, Any]:
    return {key: [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "prefixItems": [{"$ref": "#"}]}]}


@pytest.mark.parametrize(
    "schema",
    [
        *(chain(40, key=key) for key in ("allOf", "anyOf", "oneOf")),
        chain(15, branches=4),
        chain(5_000, branches=1),
        *(tree(key) for key in ("allOf", "anyOf", "oneOf")),
        items("anyOf"),
        {"not": chain(40), "$defs": chain(40)["$defs"]},
    ],
    ids=lambda schema: str(schema)[-40:],
)
def test_a_schema_that_takes_for_ever_is_noticed_at_once(schema: dict[str, Any]) -> None:
    begun = time.perf_counter()
    assert costs_too_much(schema, max_depth=24)
    assert costs_too_much(schema, max_depth=200)
    assert time.perf_counter() - begun < SECONDS


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]},
        chain(30, branches=1),
        {"properties": {f"p{n}": {"type": "string"} for n in range(500)}},
        {"$ref": "#"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere/1"},
        {},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_an_honest_schema_passes(schema: dict[str, Any]) -> None:
    begun = time.perf_counter()
    assert not costs_too_much(schema, max_depth=200)
    assert time.perf_counter() - begun < SECONDS


def test_a_manifest_with_such_a_schema_is_refused() -> None:
    busy = chain(40)["$defs"]
    with pytest.raises(ManifestInvalid, match="could take for ever"):
        Contract.compile(spec(output_schema={**output_schema({"v": {"$ref": "#/$defs/d0"}}), "$defs": busy}))


def test_half_a_million_faults_are_told_of_at_once() -> None:
    contract = Contract.compile(
        spec(output_schema=output_schema({"v": {"type": "array", "items": {"type": "string"}}}))
    )
    output = {"v": [1] * 490_000, "confidence_score": 1, "sources": []}
    begun = time.perf_counter()
    assert len(contract.output_violations(output)) == 1
    assert time.perf_counter() - begun < SECONDS
    assert len(contract.output_violations({**output, "v": [1] * 19})) == 19


def test_a_fault_that_many_rules_find_is_not_quoted_by_each() -> None:
    many = {"allOf": [{"type": "integer"}] * 3000}
    contract = Contract.compile(spec(output_schema=output_schema({"v": many})))
    begun = time.perf_counter()
    found = contract.output_violations({"v": "x" * 900_000, "confidence_score": 1, "sources": []})
    assert len(found) == 1
    assert len(found[0]) < 1000
    assert time.perf_counter() - begun < SECONDS
