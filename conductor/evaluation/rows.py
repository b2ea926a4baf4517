"""Reads gold and predictions; what was predicted is foreign input and is checked before it is scored.

Gold must be whole: a fault in it is an error. A prediction that cannot be used is a wrong one, and is counted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from podium.errors import InvalidRequest


class GoldInvalid(InvalidRequest):
    """The right plans cannot be read; the message names file and line."""

    code = "EVALUATION_GOLD_INVALID"
    advice = 'Give a file with {"id", "steps": [{"tool", ...}]} a line, each id once, and the --mode it is for.'


class PredictionsUnreadable(InvalidRequest):
    """The file of predictions cannot be read at all."""

    code = "EVALUATION_PREDICTIONS_UNREADABLE"
    advice = "Give the file that `podium plan --batch` wrote with --out."


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldStep:
    """One right call: its arguments, or for each argument the accepted values."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    accept: Mapping[str, Sequence[Any]] | None = None
    depends_on: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRow:
    """A request's right plan."""

    id: str
    steps: tuple[GoldStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStep:
    """One predicted call."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    depends_on: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A usable prediction."""

    steps: tuple[PredictedStep, ...]
    confidence: float | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """What a planner wrote, by the id of the request."""

    by_id: Mapping[str, Prediction]
    invalid: int
    """Lines that are no prediction: no JSON, no id, or steps of another form."""
    repeated: int
    """Lines about an id that an earlier line is about; the last one counts."""


def read_gold(path: Path) -> tuple[GoldRow, ...]:
    """The right plans, in the order of the file.

    Raises:
        GoldInvalid: the file, or a line in it, is not what it should be.
    """
    found: dict[str, GoldRow] = {}
    for number, line in _numbered(path, GoldInvalid):
        try:
            row = _gold_row(_object(line))
        except _Malformed as error:
            raise GoldInvalid(f"{path}:{number}: {error}", field=f"line {number}") from error
        if row.id in found:
            raise GoldInvalid(f"{path}:{number}: {row.id} has a plan already", field=f"line {number}")
        found[row.id] = row
    if not found:
        raise GoldInvalid(f"{path} holds no plan")
    return tuple(found.values())


def read_predictions(path: Path) -> Predictions:
    """What was predicted; a line that cannot be used takes its id's prediction away, so that it counts as wrong.

    Raises:
        PredictionsUnreadable: there is no such file, or it is no text.
    """
    found: dict[str, Prediction] = {}
    seen: set[str] = set()
    invalid = repeated = 0
    for _, line in _numbered(path, PredictionsUnreadable):
        try:
            row = _object(line)
            key = _id(row)
        except _Malformed:
            invalid += 1
            continue
        repeated += key in seen
        seen.add(key)
        found.pop(key, None)
        try:
            found[key] = _prediction(row)
        except _Malformed:
            invalid += 1
    return Predictions(by_id=MappingProxyType(found), invalid=invalid, repeated=repeated)


class _Malformed(ValueError):
    """A row that has not the documented form."""


def _numbered(path: Path, error: type[InvalidRequest]) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers; only line feeds end a line."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"{path}: {cause}") from cause
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise _Malformed("nested too deeply") from error
    except ValueError as error:
        raise _Malformed(f"no JSON: {error}") from error
    if not isinstance(row, dict):
        raise _Malformed("a JSON object is expected")
    return row


def _id(row: Mapping[str, Any]) -> str:
    key = row.get("id")
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise _Malformed("id must be a text or a whole number")
    return str(key)


def _gold_row(row: Mapping[str, Any]) -> GoldRow:
    key = _id(row)
    return GoldRow(id=key, steps=tuple(_gold_step(step) for step in _steps(row)))


def _gold_step(step: Mapping[str, Any]) -> GoldStep:
    accept = step.get("accept")
    if accept is not None and not (
        isinstance(accept, dict) and all(isinstance(values, list) for values in accept.values())
    ):
        raise _Malformed("accept must map every argument to a list of values")
    return GoldStep(tool=step["tool"], arguments=_arguments(step), accept=accept, depends_on=_depends_on(step))


def _prediction(row: Mapping[str, Any]) -> Prediction:
    steps = tuple(
        PredictedStep(tool=step["tool"], arguments=_arguments(step), depends_on=_depends_on(step))
        for step in _steps(row)
    )
    return Prediction(steps=steps, confidence=_number(row.get("confidence")), latency_ms=_number(row.get("ms")))


def _steps(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    steps = row.get("steps")
    if not isinstance(steps, list):
        raise _Malformed("steps must be a list")
    for step in steps:
        if not isinstance(step, dict) or not isinstance(step.get("tool"), str):
            raise _Malformed("every step needs a tool")
    return steps


def _arguments(step: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = step.get("arguments")
    if arguments is None:
        return MappingProxyType({})
    if not isinstance(arguments, dict):
        raise _Malformed("arguments must be an object")
    return arguments


def _depends_on(step: Mapping[str, Any]) -> tuple[Any, ...]:
    named = step.get("depends_on", [])
    if not isinstance(named, list):
        raise _Malformed("depends_on must be a list")
    return tuple(named)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
