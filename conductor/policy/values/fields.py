"""What an argument may hold, read off its schema once: type, options, form of dates, units."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conductor.policy.values.dates import Moment, moment_of
from conductor.policy.values.numbers import units_named

MAX_OPTIONS = 24
"""No more options of one argument than this are offered to the model."""
MAX_DEPTH = 3
"""Objects inside objects are filled to this depth."""
_TYPES = {
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "str": "string",
}
_QUOTED = re.compile(r"['\"\u2018\u201c]([^'\"\u2019\u201d]{1,40})['\"\u2019\u201d]")
_LISTED = re.compile(
    r"(?:e\.g\.,?|such as|options?(?: are| include)?:?|one of:?|i\.e\.,?|either|can be|like)\s*([^().;]{3,160})",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Option:
    """One value that the schema names for an argument."""

    value: Any
    text: str
    strict: bool
    """From `enum`: nothing else is valid."""

    @cached_property
    def plain(self) -> str:
        """Its words in lower case."""
        return re.sub(r"[\W_]+", " ", self.text.lower()).strip()


@dataclass(frozen=True, kw_only=True)
class InputField:
    """One argument, or one field of an argument that is an object."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]
    required: bool
    type: str
    """string, integer, number, boolean, array, object or any."""
    item_type: str
    """Of an array's items; '' otherwise."""
    options: tuple[Option, ...]
    moment: Moment | None
    units: tuple[str, ...]
    """Units of measure that the description names."""
    words: str
    """Its name in words."""

    @cached_property
    def strict(self) -> bool:
        """Only the options are valid."""
        return any(option.strict for option in self.options)

    @cached_property
    def bag(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(self.words.split())

    @cached_property
    def description(self) -> str:
        """What the schema says about it."""
        return str(self.schema.get("description", ""))


def input_fields(schema: Mapping[str, Any]) -> tuple[InputField, ...]:
    """The arguments of an `input_schema` in its order; an object is followed by its own fields."""
    return tuple(_fields(schema, (), required=True))


def _fields(schema: Mapping[str, Any], path: tuple[str, ...], *, required: bool) -> Sequence[InputField]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    listed = schema.get("required", ())
    needed = listed if isinstance(listed, list | tuple) else ()
    found: list[InputField] = []
    for name, value in properties.items():
        field = value if isinstance(value, Mapping) else {}
        must = required and name in needed
        inner: Sequence[InputField] = ()
        if type_of(field) == "object" and len(path) + 1 < MAX_DEPTH:
            inner = _fields(field, (*path, name), required=must)
        found += [input_field((*path, name), field, required=must), *inner]
    return found


def input_field(path: tuple[str, ...], schema: Mapping[str, Any], *, required: bool) -> InputField:
    """One argument by its path and schema."""
    kind = type_of(schema)
    items = schema.get("items")
    item_schema = items if isinstance(items, Mapping) else {}
    item_type = type_of(item_schema) if kind == "array" else ""
    name = path[-1]
    about = {**schema, "description": f"{schema.get('description', '')} {item_schema.get('description', '')}"}
    textual = kind in ("string", "any") or item_type in ("string", "any")
    return InputField(
        path=path,
        schema=schema,
        required=required,
        type=kind,
        item_type=item_type,
        options=_options(schema, item_schema, kind),
        moment=moment_of(name, about) if textual else None,
        units=units_named(f"{words_of(name)} {schema.get('description', '')}"),
        words=" ".join(words_of(part) for part in path),
    )


def type_of(schema: Mapping[str, Any]) -> str:
    """The type a schema names, "any" where it names none or several."""
    named = schema.get("type")
    if isinstance(named, Sequence) and not isinstance(named, str):
        left = [item for item in named if item != "null"]
        named = left[0] if len(left) == 1 else None
    if named is None and isinstance(schema.get("enum"), Sequence):
        named = "string"
    found = _TYPES.get(str(named), str(named))
    return found if found in ("string", "integer", "number", "boolean", "array", "object") else "any"


def words_of(name: str) -> str:
    """A name in words: "getUserInfo_v2" is "get user info v2"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_.\-/:]+", " ", name)
    return " ".join(spaced.lower().split())


def _options(schema: Mapping[str, Any], items: Mapping[str, Any], kind: str) -> tuple[Option, ...]:
    enum = schema.get("enum") or items.get("enum")
    if isinstance(enum, Sequence) and not isinstance(enum, str) and enum:
        values = [value for value in enum if isinstance(value, str | int | float)]
        return tuple(Option(value=value, text=str(value), strict=True) for value in values[:MAX_OPTIONS])
    if kind not in ("string", "any", "array"):
        return ()
    description = str(schema.get("description", ""))
    quoted = [match[1] for match in _QUOTED.finditer(description)]
    listed = [
        item
        for match in _LISTED.finditer(description)
        for item in re.split(r",\s*|\s+or\s+|\s+and\s+", match[1])
        if len(quoted) < 2
    ]
    found: dict[str, Option] = {}
    default = schema.get("default")
    for text in (*quoted, *listed, *([default] if isinstance(default, str) else [])):
        plain = re.sub(r"^(?:or|and|either)\s+", "", text.strip(" '\"`.:"))
        if 0 < len(plain) <= 40 and len(plain.split()) <= 4 and re.search(r"\w", plain):
            found.setdefault(plain.lower(), Option(value=plain, text=plain, strict=False))
    return tuple(found.values())[:8]
