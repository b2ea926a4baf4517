"""How an output's types differ from the schema's, by name: the habits of models and of hurried programmers.

The classic one is a list that comes back as text with commas in it. A schema refuses all of these; the names say
what to mend.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

_SHOWN_CHARS = 60
_MAX_DEPTH = 40
_MAX_PARTS = 200_000
"""Of schemas that one output is held against: one that names itself often enough would never end."""
_NUMERIC = re.compile(r"\s*[-+]?[0-9][0-9_,.' ]*(?:[eE][-+]?[0-9]+)?\s*%?\s*")
_TRUTHS = frozenset({"true", "false", "yes", "no", "on", "off", "0", "1", "y", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One way in which outputs differ from what was declared."""

    kind: str
    """E.g. "LIST_AS_TEXT"."""
    place: str
    """E.g. "$.cities"; entries of a list share one place."""
    message: str
    """In words, with an example."""
    times: int = 1
    """Outputs in which it was seen."""


def drifts(schema: Mapping[str, Any], output: Mapping[str, Any]) -> Iterator[Drift]:
    """Every drift of one output, each kind at a place once.

    Args:
        schema: Of the output.
        output: What the agent returned, as JSON.
    """
    seen: set[tuple[str, str]] = set()
    for drift in _Comparison(schema).value(output, schema, "$", 0):
        if (drift.kind, drift.place) not in seen:
            seen.add((drift.kind, drift.place))
            yield drift


class _Comparison:
    """One walk over an output beside its schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MAX_PARTS

    def value(self, value: Any, schema: Any, place: str, depth: int) -> Iterator[Drift]:
        options = list(self._options(schema, depth, set()))
        if self._left < 0:
            return
        fitting = [option for option in options if _type_of(value) in _types(option)]
        if not fitting:
            declared = frozenset().union(*(_types(option) for option in options))
            if declared:
                yield _mismatch(value, declared, place)
            return
        option = fitting[0]
        if isinstance(value, Mapping):
            yield from self._object(value, option, place, depth)
        elif isinstance(value, list):
            for item in value:
                yield from self.value(item, option.get("items", {}), f"{place}[]", depth + 1)
        else:
            yield from _scalar(value, option, place)

    def _object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[Drift]:
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name in schema.get("required", ()):
            if name not in value:
                kind = _MISSING.get(name, "FIELD_MISSING") if depth == 0 else "FIELD_MISSING"
                yield Drift(kind=kind, place=f"{place}.{name}", message="is required and was left out")
        for name, item in value.items():
            if name in properties:
                yield from self.value(item, properties[name], f"{place}.{name}", depth + 1)
            elif extra is False:
                yield Drift(kind="UNKNOWN_FIELD", place=f"{place}.{name[:80]}", message="was never declared")
            else:
                yield from self.value(item, extra, f"{place}.*", depth + 1)

    def _options(self, schema: Any, depth: int, followed: set[str]) -> Iterator[Mapping[str, Any]]:
        """The alternatives of a schema, each reference followed once."""
        self._left -= 1
        if self._left < 0:
            return
        while True:
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            if reference in followed:
                return
            followed.add(reference)
            target: Any = self._root
            for part in reference[2:].split("/"):
                target = target.get(part, {}) if isinstance(target, Mapping) else {}
            schema = target
        if not isinstance(schema, Mapping):
            yield {}
            return
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives and depth < _MAX_DEPTH:
            for option in alternatives:
                yield from self._options(option, depth + 1, followed)
        else:
            yield schema


_MISSING = {"confidence_score": "CONFIDENCE_MISSING", "sources": "SOURCES_MISSING"}
_ALL_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    declared = schema.get("type")
    if declared is None:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is None:
            return _ALL_TYPES
        return _widened(frozenset(map(_type_of, values)))
    return _widened(frozenset({declared} if isinstance(declared, str) else declared))


def _widened(types: frozenset[str]) -> frozenset[str]:
    # In JSON Schema 2.0 is an integer and 2 is a number; that the former is odd is told separately.
    if "number" in types:
        return types | {"integer", "whole number"}
    return types | {"whole number"} if "integer" in types else types


def _type_of(value: Any) -> str:
    if isinstance(value, float):
        return "whole number" if value.is_integer() else "number"
    kinds = ((bool, "boolean"), (int, "integer"), (str, "string"), (Mapping, "object"), (Sequence, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _mismatch(value: Any, declared: frozenset[str], place: str) -> Drift:
    shown = repr(value)[:_SHOWN_CHARS]
    kind = _kind_of_mismatch(value, declared)
    wanted = " or ".join(sorted(declared - {"whole number"}))
    message = f"{_IN_WORDS.get(kind, 'another type came')}: {shown} where {wanted} is declared"
    return Drift(kind=kind, place=place, message=message)


_IN_WORDS: Mapping[str, str] = {
    "LIST_AS_TEXT": "a list came as text",
    "OBJECT_AS_TEXT": "an object came as JSON text",
    "NUMBER_AS_TEXT": "a number came as text",
    "BOOLEAN_AS_TEXT": "true or false came as text",
    "BOOLEAN_AS_NUMBER": "true or false came as a number",
    "TEXT_AS_NUMBER": "text came as a number",
    "NULL_FOR_MISSING": "null came where the field should be left out",
    "FRACTION_FOR_INTEGER": "a fraction came for an integer",
    "ONE_FOR_LIST": "one value came for a list",
    "LIST_FOR_ONE": "a list came for one value",
}


def _kind_of_mismatch(value: Any, declared: frozenset[str]) -> str:
    if value is None:
        return "NULL_FOR_MISSING"
    if isinstance(value, str):
        return _kind_of_text(value, declared)
    if "array" in declared:
        return "ONE_FOR_LIST"
    if isinstance(value, list):
        return "LIST_FOR_ONE"
    if "boolean" in declared and value in (0, 1):
        return "BOOLEAN_AS_NUMBER"
    if isinstance(value, float) and "integer" in declared:
        return "FRACTION_FOR_INTEGER"
    if isinstance(value, int | float) and not isinstance(value, bool) and "string" in declared:
        return "TEXT_AS_NUMBER"
    return "OTHER_TYPE"


def _kind_of_text(value: str, declared: frozenset[str]) -> str:
    if "array" in declared:
        return "LIST_AS_TEXT"
    if "object" in declared and _is_json_object(value):
        return "OBJECT_AS_TEXT"
    if "boolean" in declared and value.strip().lower() in _TRUTHS:
        return "BOOLEAN_AS_TEXT"
    if declared & {"number", "integer"} and _NUMERIC.fullmatch(value):
        return "NUMBER_AS_TEXT"
    return "OTHER_TYPE"


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _scalar(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[Drift]:
    if isinstance(value, float) and value.is_integer() and "number" not in _types(schema):
        # 2.0 satisfies `integer` in JSON Schema and is another thing to most readers of JSON.
        message = f"is declared an integer and came with a decimal point: {value!r}"
        yield Drift(kind="INTEGER_WITH_POINT", place=place, message=message)
    if place == "$.confidence_score" and isinstance(value, int | float) and not 0 <= value <= 1:
        yield Drift(kind="CONFIDENCE_OUT_OF_RANGE", place=place, message=f"{value!r} is not in 0..1")
    if isinstance(value, str) and not _is_moment(value, schema.get("format")):
        message = f"{value[:_SHOWN_CHARS]!r} is not a {schema['format']} of ISO 8601"
        yield Drift(kind="DATE_FORMAT", place=place, message=message)


def _is_moment(text: str, form: Any) -> bool:
    try:
        if form == "date":
            return date.fromisoformat(text).isoformat() == text
        if form == "date-time":
            return datetime.fromisoformat(text).tzinfo is not None and text[10:11] in "Tt "
    except ValueError:
        return False
    return True
