"""What changed between two versions of an agent, and whether those who call it can stay as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conductor.schema_fit import misfits

_UPPER = frozenset({"maxLength", "maxItems", "maximum", "exclusiveMaximum", "maxProperties"})
_LOWER = frozenset({"minLength", "minItems", "minimum", "exclusiveMinimum", "minProperties"})
_FORMS = frozenset({"pattern", "format"})
_PROMISES = ("side_effects", "permission", "requires", "handovers")
"""Fields of a manifest, besides its schemas, that plans rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One place that is different."""

    path: str
    before: Any
    """None when it was not there."""
    after: Any
    """None when it is no longer there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDiff:
    """How two versions differ."""

    changes: tuple[Change, ...]
    breaking: tuple[str, ...]
    """What callers and plans made for the first may stumble over; empty when it is compatible."""


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> AgentDiff:
    """Compare two manifests in their JSON form.

    Input may only become wider and output only narrower: then everybody who works with the first works with the
    second.
    """
    changes = tuple(
        change for change in _changes(old, new, "") if change.path != "version" and ".examples" not in change.path
    )
    breaking = [
        *(f"input_schema{place}: {said}" for place, said in _unfit(old, new, "input_schema")),
        *(f"output_schema{place}: {said}" for place, said in _unfit(new, old, "output_schema")),
        *(f"{change.path}: {_bound(change)}" for change in changes if _breaks_bound(change)),
        *(f"{change.path}: changed" for change in changes if change.path.split(".")[0].split("[")[0] in _PROMISES),
    ]
    return AgentDiff(changes=changes, breaking=tuple(dict.fromkeys(breaking)))


def _unfit(produced: Mapping[str, Any], asked: Mapping[str, Any], part: str) -> Iterator[tuple[str, str]]:
    given, wanted = produced.get(part, {}), asked.get(part, {})
    for misfit in misfits(given, given, wanted, wanted):
        yield misfit.place.removeprefix("$"), misfit.message


def _breaks_bound(change: Change) -> bool:
    keyword = change.path.rpartition(".")[2]
    if change.path.startswith("input_schema"):
        return keyword in _FORMS or _narrower(keyword, change.before, change.after)
    if change.path.startswith("output_schema"):
        return keyword in _FORMS or _narrower(keyword, change.after, change.before)
    return False


def _narrower(keyword: str, before: Any, after: Any) -> bool:
    """Whether a bound lets less through than before; None is no bound."""
    if keyword in _UPPER:
        return after is not None and (before is None or after < before)
    if keyword in _LOWER:
        return after is not None and (before is None or after > before)
    return False


def _bound(change: Change) -> str:
    return f"{_shown(change.before)} became {_shown(change.after)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)


def _changes(old: Any, new: Any, path: str) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _changes(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif old != new:
        yield Change(path=path, before=old, after=new)
