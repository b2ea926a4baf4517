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
_MAX_OPTIONS = 500
"""Alternatives of one schema that are looked at."""
_MAX_PAIRS = 5_000
"""Alternatives that are held against each other: two schemas that name themselves often enough would never end."""


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
    comparison = _Comparison(produced_root, asked_root)
    found = tuple(comparison.compare(produced, asked, "$", 0))
    if comparison.is_cut_short:
        message = f"more than {_MAX_PAIRS} alternatives to compare; the rest is seen when it runs"
        return (*found, Misfit(place="$", message=message, certain=False))
    return found


class _Comparison:
    """One walk over two schemas side by side."""

    def __init__(self, produced_root: Schema, asked_root: Schema) -> None:
        self._produced_root = produced_root
        self._asked_root = asked_root
        self._left = _MAX_PAIRS

    @property
    def is_cut_short(self) -> bool:
        """Whether there was more to compare than is compared."""
        return self._left < 0

    def compare(self, produced: Schema, asked: Schema, place: str, depth: int) -> Iterator[Misfit]:
        """Where values of one schema do not fit into the other."""
        if depth > _MAX_DEPTH or asked is produced:
            return
        given = _options(self._produced_root, produced)
        wanted = _options(self._asked_root, asked)
        outcomes = [self._best(option, wanted, place, depth) for option in given]
        bad = [outcome for outcome in outcomes if outcome]
        if not bad:
            return
        # Some alternative of the producer fits: what the others lack is only a possibility.
        all_certain = all(outcome and outcome[0].certain for outcome in outcomes)
        for outcome in bad:
            for misfit in outcome:
                yield Misfit(place=misfit.place, message=misfit.message, certain=misfit.certain and all_certain)

    def _best(self, option: Schema, wanted: Sequence[Schema], place: str, depth: int) -> list[Misfit]:
        best: list[Misfit] | None = None
        for candidate in wanted:
            self._left -= 1
            if self._left < 0:
                return []
            found = sorted(self._one(option, candidate, place, depth), key=lambda misfit: not misfit.certain)
            if not found:
                return []
            if best is None or (best[0].certain and not found[0].certain):
                best = found
        return best or []

    def _one(self, produced: Schema, asked: Schema, place: str, depth: int) -> Iterator[Misfit]:
        given, wanted = _types(produced), _types(asked)
        accepted = {kind for kind in given if kind in wanted or (kind == "integer" and "number" in wanted)}
        if not accepted and not ("number" in given and "integer" in wanted):
            message = f"{_names(given)} where {_names(wanted)} is asked for"
            yield Misfit(place=place, message=message, certain=True)
            return
        if given - accepted and produced.get("type") is not None:
            message = f"may be {_names(given - accepted)}, {_names(wanted)} is asked for"
            yield Misfit(place=place, message=message, certain=False)
        yield from _values(produced, asked, place)
        if "object" in accepted:
            yield from self._objects(produced, asked, place, depth)
        if "array" in accepted:
            items, asked_items = produced.get("items"), asked.get("items")
            if isinstance(items, Mapping) and isinstance(asked_items, Mapping):
                yield from self.compare(items, asked_items, f"{place}[]", depth + 1)

    def _objects(self, produced: Schema, asked: Schema, place: str, depth: int) -> Iterator[Misfit]:
        has, needs = produced.get("properties", {}), asked.get("properties", {})
        always = set(produced.get("required", ()))
        closed = produced.get("additionalProperties", True) is False
        for name in asked.get("required", ()):
            if name not in has:
                yield Misfit(place=f"{place}.{name}", message="is asked for and never produced", certain=closed)
            elif name not in always:
                message = "is asked for and not always produced"
                yield Misfit(place=f"{place}.{name}", message=message, certain=False)
        for name, schema in has.items():
            if name in needs:
                for misfit in self.compare(schema, needs[name], f"{place}.{name}", depth + 1):
                    certain = misfit.certain and name in always
                    yield Misfit(place=misfit.place, message=misfit.message, certain=certain)
            elif asked.get("additionalProperties", True) is False:
                yield Misfit(place=f"{place}.{name}", message="is not allowed", certain=name in always)


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


def _options(root: Schema, schema: Schema) -> list[Schema]:
    """The alternatives of a schema: its anyOf or oneOf entries laid over the rest, else itself.

    Of very many only the first are given, and `{}`, which is anything, for the others.
    """
    found: list[Schema] = []
    waiting: list[tuple[Schema, int]] = [(schema, 0)]
    for _ in range(_MAX_OPTIONS):
        if not waiting:
            return found
        one, depth = waiting.pop()
        one = _resolved(root, one)
        alternatives = one.get("anyOf") or one.get("oneOf")
        if not alternatives or depth >= _MAX_DEPTH:
            found.append(one)
            continue
        rest = {key: value for key, value in one.items() if key not in ("anyOf", "oneOf")}
        laid = [({**rest, **_resolved(root, option)}, depth + 1) for option in alternatives]
        waiting.extend(reversed(laid))
    return [*found, {}] if waiting else found


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
