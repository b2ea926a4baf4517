"""Dotted paths into JSON values, e.g. `entities.region.0.name`; '' is the whole value."""

from collections.abc import Mapping, Sequence
from typing import Any


class PathMissing(LookupError):
    """A path leads nowhere; the message names the first part that does not exist."""


def lookup(value: Any, path: str) -> Any:
    """The value at a path; a number picks an entry of a list.

    Raises:
        PathMissing: there is nothing at the path.
    """
    if not path:
        return value
    walked: list[str] = []
    for part in path.split("."):
        walked.append(part)
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif _indexable(value) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise PathMissing(f"there is no {'.'.join(walked)!r}")
    return value


def _indexable(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
