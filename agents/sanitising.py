"""Make an agent's raw output safe to keep: one JSON object, bounded, without control characters."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.canonical import canonical_json
from agents.spec import Limits
from podium.errors import OutputContractBroken

# C0 without tab and line ends, DEL, C1, and the marks that reorder text so that it reads as something else.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_REPAIRS = 50
_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """An output that is JSON and safe to keep, not yet checked against the schema."""

    output: dict[str, Any]
    data: bytes
    """The output as canonical JSON."""
    repairs: tuple[str, ...] = ()
    """What was changed, in words, with its place."""


def sanitise(raw: object, limits: Limits, hook: Callable[..., Any] | None) -> Sanitised:
    """See `Contract.sanitise`.

    Args:
        raw: What the agent returned.
        limits: Bounds on size and depth.
        hook: `hook(raw) -> (repaired, repairs in words)`, or none.

    Raises:
        OutputContractBroken: the output cannot be kept.
    """
    repairs: list[str] = []
    if hook is not None:
        try:
            raw, said = hook(raw)
            repairs.extend(str(repair) for repair in said)
        except Exception as error:  # the hook is a pack's code and may fail in any way
            raise OutputContractBroken(f"the output hook failed: {type(error).__name__}: {error}") from error
    value = _parsed(raw, limits)
    if not isinstance(value, Mapping):
        raise OutputContractBroken(f"the output is {type(value).__name__}, not an object")
    cleaned = _Cleaning(limits, repairs).value(value, "$", 1)
    try:
        data = canonical_json(cleaned)
    except ValueError as error:  # an integer with too many digits to write
        raise OutputContractBroken(f"the output cannot be written as JSON: {error}") from error
    _refuse_large(len(data), limits)
    return Sanitised(output=cleaned, data=data, repairs=tuple(repairs[:_MAX_REPAIRS]))


def _parsed(raw: object, limits: Limits) -> object:
    if isinstance(raw, bytes | bytearray | memoryview):
        _refuse_large(len(raw), limits)
        try:
            raw = bytes(raw).decode("utf-8")
        except UnicodeDecodeError as error:
            raise OutputContractBroken(f"the output is not UTF-8: {error}") from error
    if not isinstance(raw, str):
        return raw
    _refuse_large(len(raw), limits)
    try:
        return json.loads(raw, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated)
    except RecursionError as error:
        raise OutputContractBroken(f"the output is nested deeper than {limits.max_depth} levels") from error
    except ValueError as error:
        shown = raw[:_SHOWN_CHARS].encode("utf-8", "replace").decode("utf-8")
        raise OutputContractBroken(
            f"the output is text that is not one JSON object: {error}", evidence=[f"it begins with {shown!r}"]
        ) from error


class _Cleaning:
    """One pass over the output, counting what it takes so that a wide, long or cyclic structure ends it."""

    def __init__(self, limits: Limits, repairs: list[str]) -> None:
        self._limits = limits
        self._repairs = repairs
        self._max_depth = limits.max_depth
        # Every node and every character takes at least a byte, so what has more is refused without writing it.
        self._bytes_left = limits.max_output_bytes

    def value(self, value: object, place: str, depth: int) -> Any:
        self._take(1)
        if depth > self._max_depth:
            raise OutputContractBroken(f"the output is nested deeper than {self._max_depth} levels")
        # Scalars first: they are the most, and asking whether something is a Mapping or a Sequence is slow.
        if value is None or isinstance(value, str | bool | int | float):
            return self._scalar(value, place)
        if isinstance(value, dict | Mapping):
            return {
                self._key(key, place): self.value(item, f"{place}.{key}", depth + 1) for key, item in value.items()
            }
        if isinstance(value, list | Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return [self.value(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
        raise OutputContractBroken(f"{place} is {type(value).__name__}, which is not JSON")

    def _scalar(self, value: str | float | None, place: str) -> Any:
        if isinstance(value, str):
            return self._text(value, place)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value)
        if not math.isfinite(value):
            raise OutputContractBroken(f"{place} is {value}, which is not a JSON number")
        return float(value)

    def _take(self, size_bytes: int) -> None:
        self._bytes_left -= size_bytes
        if self._bytes_left < 0:
            raise _too_large(self._limits)

    def _text(self, value: str, place: str) -> str:
        self._take(len(value))
        if value.isprintable():  # no character of the two classes is; a test holds them against each other
            return str(value)
        if _SURROGATE.search(value):
            raise OutputContractBroken(f"{place} holds a lone surrogate, which is not text")
        cleaned, count = _CONTROL.subn("", value)
        if count:
            self._repairs.append(f"removed {count} control characters from {place}")
        return str(cleaned)

    def _key(self, key: object, place: str) -> str:
        if isinstance(key, str) and key.isprintable():
            self._take(len(key))
            return str(key)
        if not isinstance(key, str) or _SURROGATE.search(key) or _CONTROL.search(key):
            raise OutputContractBroken(f"a key of {place} is not plain text: {ascii(key)[:_SHOWN_CHARS]}")
        return str(key)


def _refuse_large(size_bytes: int, limits: Limits) -> None:
    if size_bytes > limits.max_output_bytes:
        raise _too_large(limits)


def _too_large(limits: Limits) -> OutputContractBroken:
    return OutputContractBroken(f"the output is larger than {limits.max_output_bytes} bytes")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found
