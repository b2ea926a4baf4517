"""Fits and misfits between schemas, without data."""

import time
from copy import deepcopy
from typing import Any

import pytest

from conductor.schema_fit import FieldUnknown, field_schema, misfits

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


def closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def verdict(produced: Any, asked: Any) -> str:
    found = misfits(produced, produced, asked, asked)
    return "no" if any(item.certain for item in found) else "maybe" if found else "yes"


@pytest.mark.parametrize(
    ("produced", "asked", "expected"),
    [
        (TEXT, TEXT, "yes"),
        (TEXT, NUMBER, "no"),
        (INTEGER, NUMBER, "yes"),
        (NUMBER, INTEGER, "maybe"),
        ({"type": ["string", "null"]}, TEXT, "maybe"),
        (TEXT, {"type": ["string", "null"]}, "yes"),
        ({}, TEXT, "yes"),
        (TEXT, {}, "yes"),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, "yes"),
        ({"enum": ["a", "z"]}, {"enum": ["a"]}, "maybe"),
        ({"enum": ["z"]}, {"enum": ["a"]}, "no"),
        (TEXT, {"enum": ["a"]}, "maybe"),
        ({"const": 1}, NUMBER, "yes"),
        ({"const": "x"}, NUMBER, "no"),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}, "no"),
        ({"type": "array", "items": INTEGER}, {"type": "array", "items": NUMBER}, "yes"),
        (closed(a=TEXT), closed(a=TEXT), "yes"),
        (closed(a=TEXT), closed(a=TEXT, b=TEXT), "no"),
        (closed([], a=TEXT), closed(a=TEXT), "maybe"),
        (closed(a=TEXT, b=TEXT), closed(a=TEXT), "no"),
        (closed(["a"], a=TEXT, b=TEXT), closed(a=TEXT), "maybe"),
        (closed(a=closed(b=TEXT)), closed(a=closed(b=NUMBER)), "no"),
        ({"anyOf": [TEXT, NUMBER]}, NUMBER, "maybe"),
        ({"anyOf": [TEXT, {"type": "boolean"}]}, NUMBER, "no"),
        (NUMBER, {"oneOf": [TEXT, NUMBER]}, "yes"),
    ],
)
def test_fit(produced: Any, asked: Any, expected: str) -> None:
    assert verdict(produced, asked) == expected


def test_references_are_followed_even_in_circles() -> None:
    tree = {"$defs": {"node": closed(["name"], name=TEXT, child={"$ref": "#/$defs/node"})}, "$ref": "#/$defs/node"}
    assert verdict(tree, tree) == "yes"
    assert field_schema(tree, "child.child.name") == TEXT
    with pytest.raises(FieldUnknown):
        field_schema({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a", **closed()}, "x")


def test_paths_into_lists_maps_and_alternatives() -> None:
    schema = closed(
        rows={"type": "array", "items": closed(city=TEXT)},
        pair={"type": "array", "prefixItems": [TEXT, NUMBER], "items": False},
        named={"type": "object", "additionalProperties": NUMBER},
        either={"anyOf": [closed(a=TEXT), closed(b=NUMBER)]},
    )
    assert field_schema(schema, "rows.0.city") == TEXT
    assert field_schema(schema, "pair.1") == NUMBER
    assert field_schema(schema, "named.anything") == NUMBER
    assert field_schema(schema, "either.b") == NUMBER
    assert field_schema(schema, "") == schema
    for path in ("rows.city", "rows.0.town", "pair.2", "either.c", "rows.x"):
        with pytest.raises(FieldUnknown):
            field_schema(schema, path)


SELF: dict[str, Any] = {"$ref": "#/$defs/self"}


@pytest.mark.parametrize(
    "part",
    [
        SELF,
        {"anyOf": [SELF, SELF]},
        {"anyOf": [SELF, {"type": "string"}, SELF]},
        closed(**{name: {"anyOf": [SELF, SELF]} for name in "abcdef"}),
        {"type": "array", "items": {"oneOf": [SELF, SELF, TEXT]}},
    ],
    ids=["itself", "one of", "one or text", "much", "list"],
)
def test_schemas_that_name_themselves_over_and_over_are_compared_in_time(part: dict[str, Any]) -> None:
    began_s = time.process_time()
    # Copies: one schema beside itself is not compared at all.
    roots = [deepcopy({**closed(x=SELF), "$defs": {"self": part}}) for _ in range(2)]
    found = misfits(roots[0], roots[0], roots[1], roots[1])
    assert not [item for item in found if item.certain]
    assert field_schema(roots[0], "x") is not None
    assert time.process_time() - began_s < 5


def test_what_is_not_compared_is_said() -> None:
    many = {"anyOf": [closed(**{f"p{number}": TEXT}) for number in range(100)]}
    other = {"anyOf": [closed(**{f"q{number}": TEXT}) for number in range(100)]}
    found = misfits(many, many, other, other)
    assert "more than 5000 alternatives" in found[-1].message
    assert not found[-1].certain


def test_of_very_many_alternatives_the_rest_may_be_anything() -> None:
    many = {"anyOf": [{"const": number} for number in range(1_000)]}
    assert verdict({"const": 999}, many) == "yes"
