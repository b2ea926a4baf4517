"""Whether checking a value against a schema stays in proportion to the value.

A schema of a few lines can make every validator work for ever: where two alternatives of one place lead back to
that place, each level of a value is checked twice as often as the one above it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MAX_PATHS = 100_000
"""Ways from the top of a schema to its parts, references followed; each may be gone for one value."""

_HERE = ("if", "then", "else", "not")
_HERE_LISTS = ("anyOf", "oneOf", "allOf")
_ENTRIES = ("items", "contains", "unevaluatedItems")
_OTHERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")

Part = Mapping[str, Any]


def growth_problem(root: Part) -> str:
    """What is wrong with a schema, in words; empty when a check takes its time once.

    Args:
        root: The schema, as JSON: no part of it is there twice as one object.
    """
    graph = _Graph(root)
    if any(graph.leads_back_twice(part) for part in graph.parts.values()):
        return "two alternatives of one place lead back to it, so that a check takes twice as long at every level"
    if graph.paths() > MAX_PATHS:
        return f"its references lead to its parts in more than {MAX_PATHS} ways; name parts less often"
    return ""


class _Graph:
    """Every part of a schema with the parts it applies, and which of them come back to each other."""

    def __init__(self, root: Part) -> None:
        self._root = root
        self.parts: dict[int, Part] = {}
        finished = self._finished()
        self._circle = self._circles(finished)

    def leads_back_twice(self, part: Part) -> bool:
        """Whether one place of a value is checked twice on the way round."""
        return any(sum(self._together(part, child) for child in group) > 1 for group in _groups(part, self._root))

    def paths(self) -> int:
        """Ways from the top to all parts; parts that come back to each other count as one."""
        ways: dict[int, int] = {}
        # Circles are numbered from the top, so that what a circle leads to has its number later.
        for key in sorted(self.parts, key=lambda key: -self._circle[key]):
            part, own = self.parts[key], self._circle[key]
            further = (self._circle[id(child)] for child in _children(part, self._root))
            ways[own] = min(ways.get(own, 0) + 1 + sum(ways[one] for one in further if one != own), MAX_PATHS + 1)
        return ways[self._circle[id(self._root)]]

    def _together(self, part: Part, child: Part) -> bool:
        return self._circle[id(part)] == self._circle[id(child)]

    def _finished(self) -> list[int]:
        """The parts in the order in which a walk is through with them (Kosaraju's first half)."""
        self.parts[id(self._root)] = self._root
        order: list[int] = []
        walk = [(id(self._root), _children(self._root, self._root))]
        while walk:
            key, children = walk[-1]
            for child in children:
                if id(child) not in self.parts:
                    self.parts[id(child)] = child
                    walk.append((id(child), _children(child, self._root)))
                    break
            else:
                order.append(key)
                walk.pop()
        return order

    def _circles(self, finished: list[int]) -> dict[int, int]:
        """Which parts come back to each other, by a number (Kosaraju's second half)."""
        parents: dict[int, list[int]] = {key: [] for key in self.parts}
        for key, part in self.parts.items():
            for child in _children(part, self._root):
                parents[id(child)].append(key)
        circle: dict[int, int] = {}
        for number, start in enumerate(reversed(finished)):
            waiting = [] if start in circle else [start]
            while waiting:
                key = waiting.pop()
                if key not in circle:
                    circle[key] = number
                    waiting.extend(parents[key])
        return circle


def _children(part: Part, root: Part) -> Iterator[Part]:
    for group in _groups(part, root):
        yield from group


def _groups(part: Part, root: Part) -> Iterator[list[Part]]:
    """The parts that a part applies; those of one group may all be applied to one place of a value."""
    here = [part[key] for key in _HERE if key in part]
    here += [entry for key in _HERE_LISTS for entry in _list(part, key)]
    here += list(_mapping(part, "dependentSchemas").values())
    if isinstance(reference := part.get("$ref"), str):
        here.append(_target(reference, root))
    yield [child for child in here if isinstance(child, Mapping)]
    patterns = list(_mapping(part, "patternProperties").values())
    for child in (*_mapping(part, "properties").values(), *(part[key] for key in _OTHERS if key in part)):
        yield [one for one in (child, *patterns) if isinstance(one, Mapping)]
    yield [one for one in patterns if isinstance(one, Mapping)]
    entries = [part[key] for key in _ENTRIES if key in part]
    yield [one for one in (*entries, *_list(part, "prefixItems")) if isinstance(one, Mapping)]


def _target(reference: str, root: Part) -> Any:
    target: Any = root
    for name in reference.removeprefix("#").split("/")[1:]:
        plain = name.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping):
            target = target.get(plain)
        elif isinstance(target, list) and plain.isdecimal() and int(plain) < len(target):
            target = target[int(plain)]
        else:
            return None
    return target


def _list(part: Part, key: str) -> list[Any]:
    value = part.get(key)
    return value if isinstance(value, list) else []


def _mapping(part: Part, key: str) -> Part:
    value = part.get(key)
    return value if isinstance(value, Mapping) else {}
