"""Move values between Python and CEL without silent loss."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import cel

from tools.rules.errors import RuleInputError, RuleTooCostly

MAX_VALUES = 100_000
MAX_DEPTH = 32
MAX_TEXT_CHARS = 1_000_000
"""Characters (or bytes) of all texts together: `contains` and `matches` take time in proportion."""

_INT64 = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class CelInput:
    """The variables as CEL takes them, with the sizes that decide what evaluating can cost."""

    variables: dict[str, Any]
    longest_list: int
    """Entries of the longest list or map."""
    longest_text_chars: int


def to_cel(values: Mapping[str, Any], *, expression: str) -> CelInput:
    """Convert the variables of a rule.

    Raises:
        RuleInputError: a value has no counterpart in CEL; names its path.
        RuleTooCostly: more than `MAX_VALUES` values, `MAX_TEXT_CHARS` of text or `MAX_DEPTH` levels.
    """
    conversion = _Conversion(expression)
    variables = {name: conversion.value(value, name, 1) for name, value in values.items()}
    return CelInput(
        variables=variables, longest_list=conversion.longest, longest_text_chars=conversion.longest_text_chars
    )


def from_cel(value: Any) -> Any:
    """Unwrap CEL's optional values; everything else is a Python value already."""
    if isinstance(value, cel.OptionalValue):
        return value.value() if value.has_value() else None
    return value


class _Conversion:
    """One pass over the input, counting as it goes."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._count = 0
        self._chars = 0
        self.longest = 0
        self.longest_text_chars = 0

    def value(self, value: Any, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise RuleTooCostly(
                f"the input has more than {MAX_VALUES} values or {MAX_DEPTH} levels", expression=self._expression
            )
        if isinstance(value, Mapping):
            self.longest = max(self.longest, len(value))
            return {
                self._key(key, path): self.value(item, f"{path}.{key}", depth + 1) for key, item in value.items()
            }
        if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            self.longest = max(self.longest, len(value))
            return [self.value(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        return self._scalar(value, path)

    def _key(self, key: Any, path: str) -> str:
        if not isinstance(key, str):
            raise self._refusal(f"a key is {type(key).__name__}, only text is allowed", path)
        return self._text(key, path)

    def _text(self, value: str, path: str) -> str:
        self._spend(len(value))
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self._refusal("the text is not valid Unicode", path) from error
        return value

    def _spend(self, chars: int) -> None:
        self._chars += chars
        self.longest_text_chars = max(self.longest_text_chars, chars)
        if self._chars > MAX_TEXT_CHARS:
            raise RuleTooCostly(
                f"the input has more than {MAX_TEXT_CHARS} characters of text", expression=self._expression
            )

    def _scalar(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool | float | dt.timedelta):
            return value
        if isinstance(value, str):
            return self._text(str(value), path)
        if isinstance(value, bytes | bytearray):
            self._spend(len(value))
            return bytes(value)
        if isinstance(value, int):
            return self._integer(int(value), path)
        if isinstance(value, Decimal):
            return float(value)
        return self._time(value, path)

    def _integer(self, value: int, path: str) -> int:
        if not -_INT64 <= value < _INT64:
            raise self._refusal("the integer does not fit in 64 bits", path)
        return value

    def _time(self, value: Any, path: str) -> dt.datetime:
        if isinstance(value, dt.datetime):
            if value.tzinfo is None:
                raise self._refusal("the time has no time zone", path)
            return value
        if isinstance(value, dt.date):
            # A day stands for its first instant in UTC, so that dates of one source compare as dates do.
            return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
        raise self._refusal(f"{type(value).__name__} has no counterpart in CEL", path)

    def _refusal(self, message: str, path: str) -> RuleInputError:
        return RuleInputError(message, expression=self._expression, path=path)
