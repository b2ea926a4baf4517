"""Faults that passed every check: outputs that contradict themselves, the request, or the clock.

Each sign is judged on one finished attempt; a diagnosis looks at the attempts that fed the one that failed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.registry import AgentRegistry
from conductor.history import Attempt, History
from conductor.tracing import leaves

_UNITS = ("unit", "currency", "scale", "language")
_COUNTS = ("row_count", "count", "total_rows", "rows_read")
_EXPIRIES = ("expires", "expires_at", "valid_until")
_VERDICTS = ("agrees", "consistent")
_NOT_DATA = frozenset({"sources", "assumptions", "suggestions", "warnings", "contradictions", "differences"})
SURE_ENOUGH = 0.5
"""Confidence below which an output that nobody refused is still suspect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One sign of a fault."""

    code: str
    attempt: Attempt
    evidence: str
    blames_inputs: bool = False
    """The attempt only noticed the fault; it lies in what the attempt was given."""


def signs(history: History, attempt: Attempt, registry: AgentRegistry) -> Iterator[Sign]:
    """Every sign of a fault in a finished attempt, the surest first."""
    if attempt.output is None:
        return
    for judge in (_verdict, _truncated, _unit, _stale, _out_of_range):
        if evidence := judge(history, attempt):
            yield Sign(code=_CODES[judge], attempt=attempt, evidence=evidence, blames_inputs=judge is _verdict)
    if evidence := slow(attempt, registry):
        yield Sign(code="SLOW_STEP", attempt=attempt, evidence=evidence)


def empty_list(attempt: Attempt) -> str:
    """The name of a list in the output that is empty though it should hold data; '' when there is none."""
    output = attempt.output or {}
    if output.get("empty") is True:
        return "empty"
    lists = {name: value for name, value in output.items() if isinstance(value, list) and name not in _NOT_DATA}
    return (
        next((name for name, value in lists.items() if not value), "") if lists and not any(lists.values()) else ""
    )


def slow(attempt: Attempt, registry: AgentRegistry) -> str:
    """In words, when an attempt took more than four fifths of its agent's time limit."""
    agent = registry.find(attempt.agent)
    if agent is None or attempt.ended is None:
        return ""
    taken, limit = attempt.duration(None), agent.spec.sla.timeout
    if taken <= 0.8 * limit:
        return ""
    return f"took {taken.total_seconds():.1f} s of the {limit.total_seconds():g} s that {attempt.agent} may take"


def _verdict(history: History, attempt: Attempt) -> str:
    output = attempt.output or {}
    name = next((name for name in _VERDICTS if output.get(name) is False), "")
    if not name:
        return ""
    said = "; ".join(str(leaf) for key in output if key in _NOT_DATA - {"sources"} for leaf in leaves(output[key]))
    return f"{name} is false" + (f": {said}" if said else "")


def _truncated(history: History, attempt: Attempt) -> str:
    output = attempt.output or {}
    if output.get("truncated") is True:
        return "the output says that it is truncated"
    rows = output.get("rows")
    for name in _COUNTS:
        count = output.get(name)
        if isinstance(rows, list) and isinstance(count, int) and count != len(rows):
            return f"{name} is {count} and there are {len(rows)} rows"
    return ""


def _unit(history: History, attempt: Attempt) -> str:
    output = attempt.output or {}
    request = history.state.request.value if history.state.request is not None else {}
    for name in _UNITS:
        value = output.get(name)
        if not isinstance(value, str):
            continue
        asked = attempt.inputs.get(name, _named(request, name))
        if isinstance(asked, str) and asked and asked != value:
            return f"{name} is {value!r}, asked for was {asked!r}"
    return ""


def _stale(history: History, attempt: Attempt) -> str:
    output = attempt.output or {}
    users = [item for item in history.attempts if any(uid == attempt.uid for uid, _ in item.origins.values())]
    for name in _EXPIRIES:
        expiry = _moment(output.get(name))
        used = next((user for user in users if expiry is not None and user.started >= expiry), None)
        if used is not None:
            return f"{name} is {output[name]}, and step {used.index} ({used.agent}) used it later"
    return ""


def _out_of_range(history: History, attempt: Attempt) -> str:
    for name, value in (attempt.output or {}).items():
        fraction = name.endswith(("_share", "_ratio", "_probability"))
        if fraction and isinstance(value, int | float) and not 0 <= value <= 1:
            return f"{name} is {value}, which is not in [0, 1]"
    return ""


def _named(request: Mapping[str, Any], name: str) -> Any:
    entities = request.get("entities")
    return request.get(name) or (entities.get(name) if isinstance(entities, Mapping) else None)


def _moment(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


_CODES: dict[Callable[[History, Attempt], str], str] = {
    _verdict: "CONTRADICTED",
    _truncated: "TRUNCATED",
    _unit: "WRONG_UNIT",
    _stale: "STALE",
    _out_of_range: "OUT_OF_RANGE",
}
