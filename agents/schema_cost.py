"""How often a schema looks at the same value: what takes for ever is refused before it is ever used.

`allOf` of two references, each to an `allOf` of two references, doubles with every line; so do two branches that
both descend into a schema that refers to itself, with every level of the value. Twenty lines of such a schema keep
a validator busy for longer than anybody waits, and with it everything else in the process.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_VISITS = 1_000_000
"""About a twentieth of a second."""

_MAX_COUNTED = 400_000
_DEPTHS_AT_LEAST = 32
"""Of values, however large the schema is: enough for what doubles with each level."""

_SAME_ONE = ("not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties")
_SAME_LIST = ("allOf", "anyOf", "oneOf")
_BELOW_ONE = ("items", "contains", "additionalProperties", "propertyNames", "contentSchema")


def costs_too_much(schema: Mapping[str, Any], *, max_depth: int) -> bool:
    """Whether a value could make a validator look more than `MAX_VISITS` times.

    Args:
        schema: JSON Schema 2020-12; references to other places than `#...` count as nothing.
        max_depth: of the values that are held against it.
    """
    count = _Count(schema)
    parts = count.parts()
    depths = min(max_depth, max(_DEPTHS_AT_LEAST, _MAX_COUNTED // len(parts)))
    before: list[int] = []
    try:
        for depth in range(depths + 1):
            visits = [count.visits(part, depth) for part in parts]
            if max(visits) > MAX_VISITS:
                return True
            if visits == before:
                return False
            before = visits
    except RecursionError:
        # Hundreds of references behind each other; nobody writes that.
        return True
    return False


class _Count:
    """Counts from shallow values to deep ones, so that what is below is known already."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._under_way: set[tuple[int, int]] = set()

    def parts(self) -> list[Mapping[str, Any]]:
        """The schema and everything in it that could be one, each once."""
        found: dict[int, Mapping[str, Any]] = {}
        waiting: list[Any] = [self._root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Mapping) and id(part) not in found:
                found[id(part)] = part
                waiting.extend(part.values())
            elif isinstance(part, list | tuple):
                waiting.extend(part)
        return list(found.values())

    def visits(self, schema: Any, depth: int) -> int:
        """Of one value of at most this depth, and of its costliest part."""
        if not isinstance(schema, Mapping) or depth < 0:
            return 1
        key = (id(schema), depth)
        if key in self._known:
            return self._known[key]
        if key in self._under_way:
            return 1  # a schema that refers to itself at the same value: validators notice
        self._under_way.add(key)
        total = 1 + sum([self.visits(part, depth) for part in self._same(schema)])
        # Different parts of a value are looked at once each; what counts is the part that is looked at most.
        total += max([self.visits(part, depth - 1) for part in _below(schema)], default=0)
        self._under_way.discard(key)
        # Beyond the bound it does not matter by how much.
        self._known[key] = min(total, MAX_VISITS + 1)
        return self._known[key]

    def _same(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Schemas that the same value is held against."""
        for key in ("$ref", "$dynamicRef"):
            if isinstance(schema.get(key), str):
                yield self._referred(schema[key])
        for key in _SAME_ONE:
            if key in schema:
                yield schema[key]
        for key in _SAME_LIST:
            if isinstance(schema.get(key), list | tuple):
                yield from schema[key]
        if isinstance(schema.get("dependentSchemas"), Mapping):
            yield from schema["dependentSchemas"].values()

    def _referred(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        return found


def _below(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Schemas that parts of the value are held against."""
    for key in _BELOW_ONE:
        if key in schema:
            yield schema[key]
    if isinstance(schema.get("prefixItems"), list | tuple):
        yield from schema["prefixItems"]
    for key in ("properties", "patternProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from schema[key].values()
