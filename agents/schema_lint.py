"""What is weak about a schema of a manifest: what it lets through although nobody meant it to."""

import random
import string
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs

from agents.manifest_text import Finding, ManifestText, Place
from agents.schema_growth import growth_problem

MAX_PATTERNS = 200
"""In one manifest; compiling a hostile one takes up to a tenth of a second."""
MAX_PATTERN_CHARS = 500
MAX_PROPERTIES = 500
"""Of one object."""

_ONE = ("items", "additionalProperties", "then", "else", "contains", "unevaluatedProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")
_SAYS_SOMETHING = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if", "properties", "items"}
)
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"})
_TEXT_BOUNDS = frozenset({"maxLength", "enum", "const", "format", "pattern"})


def schema_findings(text: ManifestText, schema: Any, at: Place) -> Iterator[Finding]:
    """What is weak about one schema.

    Args:
        text: The manifest it stands in.
        schema: The schema.
        at: Where it stands.
    """
    if isinstance(schema, Mapping) and (problem := growth_problem(schema)):
        yield text.finding("SCHEMA_ENTANGLED", problem, at)
    patterns = 0
    for place, part in _parts(schema, at):
        if not isinstance(part, Mapping):
            if part is True:
                yield text.finding("ANY_VALUE", "any value is taken; say which type", place, fatal=False)
            continue
        patterns += ("pattern" in part) + len(_mapping(part, "patternProperties"))
        if patterns > MAX_PATTERNS:
            yield text.finding("TOO_MANY_PATTERNS", f"more than {MAX_PATTERNS} patterns in one schema", place)
            return
        yield from _pattern_findings(text, part, place)
        yield from _object_findings(text, part, place)
        yield from _bound_findings(text, part, place)


def _parts(schema: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """A schema and every schema in it that values are held against as they are."""
    yield place, schema
    if not isinstance(schema, Mapping):
        return
    for key in _ONE:
        if key in schema and not (key == "additionalProperties" and isinstance(schema[key], bool)):
            yield from _parts(schema[key], (*place, key))
    for key in _LISTS:
        entries = schema.get(key)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            yield from _parts(entry, (*place, key, index))
    for key in _MAPS:
        for name, entry in _mapping(schema, key).items():
            yield from _parts(entry, (*place, key, name))


def _pattern_findings(text: ManifestText, schema: Mapping[str, Any], place: Place) -> Iterator[Finding]:
    found = [((*place, "pattern"), schema["pattern"])] if "pattern" in schema else []
    found += [((*place, "patternProperties", name), name) for name in _mapping(schema, "patternProperties")]
    for where, pattern in found:
        if not isinstance(pattern, str):
            continue  # told by the compiler of schemas
        if len(pattern) > MAX_PATTERN_CHARS:
            message = f"the pattern has {len(pattern)} characters; keep it under {MAX_PATTERN_CHARS}"
            yield text.finding("PATTERN_TOO_LONG", message, where)
        elif accepts_anything(pattern):
            message = (
                f"the pattern {pattern[:60]!r} accepts anything; say what a value looks like, or leave it out"
            )
            yield text.finding("PATTERN_ACCEPTS_ANYTHING", message, where)


def _object_findings(text: ManifestText, schema: Mapping[str, Any], place: Place) -> Iterator[Finding]:
    if "object" not in _types(schema) and "properties" not in schema:
        return
    properties, extra = _mapping(schema, "properties"), schema.get("additionalProperties", True)
    if "$ref" not in schema and extra is True:
        message = "unknown fields are allowed; add `additionalProperties: false`, or say what their values are"
        yield text.finding("UNKNOWN_FIELDS_ALLOWED", message, place)
    if isinstance(extra, Mapping) and "maxProperties" not in schema:
        yield text.finding("MAP_UNBOUNDED", "a map of any size; add `maxProperties`", place, fatal=False)
    if len(properties) > MAX_PROPERTIES:
        message = f"{len(properties)} properties in one object; use a list or a map"
        yield text.finding("TOO_MANY_PROPERTIES", message, (*place, "properties"))
    required = schema.get("required")
    if properties and required is None:
        message = "`required` is missing; list what must be there, or say `required: []` if nothing must"
        yield text.finding("REQUIRED_MISSING", message, place)
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if (
            isinstance(name, str)
            and name not in properties
            and extra is False
            and "patternProperties" not in schema
        ):
            message = f"{name[:60]!r} is required and not declared, so that nothing can ever fit"
            yield text.finding("REQUIRED_UNDECLARED", message, (*place, "required", index))


def _bound_findings(text: ManifestText, schema: Mapping[str, Any], place: Place) -> Iterator[Finding]:
    types, keys = _types(schema), schema.keys()
    if "string" in types and not keys & _TEXT_BOUNDS:
        yield text.finding("STRING_UNBOUNDED", "a text of any length; add `maxLength`", place, fatal=False)
    if "array" in types:
        if "maxItems" not in schema and "const" not in schema and "enum" not in schema:
            yield text.finding("ARRAY_UNBOUNDED", "a list of any length; add `maxItems`", place, fatal=False)
        if not keys & {"items", "prefixItems", "const", "enum"}:
            yield text.finding("ANY_VALUE", "a list of anything; say what `items` are", place, fatal=False)
    if types & {"integer", "number"} and not keys & _BOUNDS and not types & {"string", "boolean"}:
        message = "a number of any size; add `minimum` or `maximum`"
        yield text.finding("NUMBER_UNBOUNDED", message, place, fatal=False)
    if not keys & _SAYS_SOMETHING:
        yield text.finding("ANY_VALUE", "any value is taken; say which type", place, fatal=False)


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    declared = schema.get("type", ())
    entries = [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []
    return frozenset(entry for entry in entries if isinstance(entry, str))


def _mapping(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}


@lru_cache(maxsize=1024)
def accepts_anything(pattern: str) -> bool:
    """Whether a pattern refuses nothing that anybody could write on a line.

    It is tried by the engine that validates, whose time does not explode as that of Python's own would; a pattern
    which that one cannot compile is told of there.
    """
    try:
        validator = jsonschema_rs.Draft202012Validator({"type": "string", "pattern": pattern})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return all(validator.is_valid(line) for line in _LINES)


def _lines() -> tuple[str, ...]:
    """Lines that have nothing in common."""
    chance = random.Random(7)  # noqa: S311 - test texts, not a secret
    alphabets = (
        string.ascii_letters,
        string.digits,
        string.punctuation,
        "华东上季度销售额",
        "éßñøЖשع",
        " ",
        "😀𝔸",
    )
    made = ["".join(chance.choices(letters, k=length)) for letters in alphabets for length in (1, 3, 12, 24)]
    return (*made, "a b", "x'; DROP", "-1", "\t", "<b>", "C:\\x")


_LINES = _lines()
