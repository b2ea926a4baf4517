"""Whether what one JSON Schema describes fits where another one is asked for, without any data.

A fit is judged by types, required and allowed fields, list entries and enumerations. `Misfit.certain` tells what
can never fit (a text where a list is asked for) from what may or may not (a field that is optional on one side
and required on the other): the first refuses a plan, the second is a warning, and the input check at run time
has the last word.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MAX_DEPTH = 16


class FieldUnknown(LookupError):
    """A path names a field that the schema does not have; the message says which part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """One place where two schemas do not fit."""

    place: str
    message: str
    certain: bool
    """True when no value can fit."""


def field_schema(root: Schema, path: str) -> Schema:
    """The schema of a field by dotted path; a number is an entry of a list, '' the whole.

    Raises:
        FieldUnknown: there is no such field.
    """
    schema = _resolved(root, root)
    walked: list[str] = []
    for part in path.split(".") if path else ():
        walked.append(part)
        found = [child for option in _options(root, schema) if (child := _child(root, option, part)) is not None]
        if not found:
            raise FieldUnknown(f"there is no field {'.'.join(walked)!r}")
        schema = found[0] if len(found) == 1 else {"anyOf": found}
    return schema


def misfits(produced: Schema, produced_root: Schema, asked: Schema, asked_root: Schema) -> tuple[Misfit, ...]:
    """Where values of `produced` do not fit into `asked`; the roots hold their `$defs`."""
    return tuple(_compare(produced, produced_root, asked, asked_root, "$", 0))


def _compare(
    produced: Schema, p_root: Schema, asked: Schema, a_root: Schema, place: str, depth: int
) -> Iterator[Misfit]:
    if depth > _MAX_DEPTH or asked is produced:
        return
    given, wanted = list(_options(p_root, produced)), list(_options(a_root, asked))
    outcomes = [_best(option, p_root, wanted, a_root, place, depth) for option in given]
    bad = [outcome for outcome in outcomes if outcome]
    if not bad:
        return
    # Some alternative of the producer fits: what the others lack is only a possibility.
    all_certain = all(outcome and outcome[0].certain for outcome in outcomes)
    for outcome in bad:
        for misfit in outcome:
            yield Misfit(place=misfit.place, message=misfit.message, certain=misfit.certain and all_certain)


def _best(
    option: Schema, p_root: Schema, wanted: Sequence[Schema], a_root: Schema, place: str, depth: int
) -> list[Misfit]:
    best: list[Misfit] | None = None
    for candidate in wanted:
        found = sorted(
            _one(option, p_root, candidate, a_root, place, depth), key=lambda misfit: not misfit.certain
        )
        if not found:
            return []
        if best is None or (best[0].certain and not found[0].certain):
            best = found
    return best or []


def _one(
    produced: Schema, p_root: Schema, asked: Schema, a_root: Schema, place: str, depth: int
) -> Iterator[Misfit]:
    given, wanted = _types(produced), _types(asked)
    accepted = {kind for kind in given if kind in wanted or (kind == "integer" and "number" in wanted)}
    if not accepted and not ("number" in given and "integer" in wanted):
        yield Misfit(place=place, message=f"{_names(given)} where {_names(wanted)} is asked for", certain=True)
        return
    if given - accepted and produced.get("type") is not None:
        yield Misfit(
            place=place, message=f"may be {_names(given - accepted)}, {_names(wanted)} is asked for", certain=False
        )
    yield from _values(produced, asked, place)
    if "object" in accepted:
        yield from _objects(produced, p_root, asked, a_root, place, depth)
    if "array" in accepted:
        items, asked_items = produced.get("items"), asked.get("items")
        if isinstance(items, Mapping) and isinstance(asked_items, Mapping):
            yield from _compare(items, p_root, asked_items, a_root, f"{place}[]", depth + 1)


def _values(produced: Schema, asked: Schema, place: str) -> Iterator[Misfit]:
    wanted = _enumerated(asked)
    given = _enumerated(produced)
    if wanted is None:
        return
    if given is None:
        yield Misfit(place=place, message=f"any value, one of {wanted!r} is asked for", certain=False)
    elif not any(value in wanted for value in given):
        yield Misfit(place=place, message=f"one of {given!r}, one of {wanted!r} is asked for", certain=True)
    elif any(value not in wanted for value in given):
        yield Misfit(place=place, message=f"one of {given!r}, one of {wanted!r} is asked for", certain=False)


def _objects(
    produced: Schema, p_root: Schema, asked: Schema, a_root: Schema, place: str, depth: int
) -> Iterator[Misfit]:
    has, needs = produced.get("properties", {}), asked.get("properties", {})
    always = set(produced.get("required", ()))
    closed = produced.get("additionalProperties", True) is False
    for name in asked.get("required", ()):
        if name not in has:
            yield Misfit(place=f"{place}.{name}", message="is asked for and never produced", certain=closed)
        elif name not in always:
            yield Misfit(place=f"{place}.{name}", message="is asked for and not always produced", certain=False)
    for name, schema in has.items():
        if name in needs:
            inner = _compare(schema, p_root, needs[name], a_root, f"{place}.{name}", depth + 1)
            for misfit in inner:
                yield (
                    misfit if name in always else Misfit(place=misfit.place, message=misfit.message, certain=False)
                )
        elif asked.get("additionalProperties", True) is False:
            yield Misfit(place=f"{place}.{name}", message="is not allowed", certain=name in always)


def _child(root: Schema, schema: Schema, part: str) -> Schema | None:
    properties = schema.get("properties", {})
    if part in properties:
        return _resolved(root, properties[part])
    if part.isdecimal() and "array" in _types(schema):
        prefix = schema.get("prefixItems", ())
        if int(part) < len(prefix):
            return _resolved(root, prefix[int(part)])
        items = schema.get("items")
        if isinstance(items, Mapping):
            return _resolved(root, items)
        return {} if items is None else None
    extra = schema.get("additionalProperties", True)
    if "object" in _types(schema) and extra is not False:
        return _resolved(root, extra) if isinstance(extra, Mapping) else {}
    return None


def _options(root: Schema, schema: Schema, depth: int = 0) -> Iterator[Schema]:
    """The alternatives of a schema: its anyOf or oneOf entries laid over the rest, else itself."""
    schema = _resolved(root, schema)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives and depth < _MAX_DEPTH:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        for option in alternatives:
            yield from _options(root, {**rest, **_resolved(root, option)}, depth + 1)
    else:
        yield schema


def _resolved(root: Schema, schema: Any) -> Schema:
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return {} if schema is not False else {"enum": []}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Any = root
        for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        schema = {**{key: value for key, value in schema.items() if key != "$ref"}, **target}
    return schema  # type: ignore[no-any-return]  # references that go round in circles end here


def _types(schema: Schema) -> frozenset[str]:
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, Sequence):
        return frozenset(declared)
    values = _enumerated(schema)
    if values is not None:
        return frozenset(_type_of(value) for value in values)
    if "properties" in schema:
        return frozenset({"object"})
    if "items" in schema:
        return frozenset({"array"})
    return frozenset(_TYPES)


def _enumerated(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None


def _type_of(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (Mapping, "object"))
    for kind, name in kinds:
        if isinstance(value, kind):
            return name
    return "null" if value is None else "array"


def _names(kinds: frozenset[str] | set[str]) -> str:
    return "any value" if len(kinds) == len(_TYPES) else " or ".join(sorted(kinds)) or "nothing"
