"""Checks of request fields; each raises `InvalidRequest` that names the field."""

import json
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from podium.errors import InvalidRequest

MAX_TEXT_CHARACTERS = 4_000
MAX_JSON_DEPTH = 32
_FIRST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MOMENT = datetime(2200, 1, 1, tzinfo=UTC)


def checked_uuid(value: str, field: str) -> str:
    """A UUID in its usual form, in lower case."""
    try:
        parsed = uuid.UUID(value)
    except ValueError:
        parsed = None
    if parsed is None or str(parsed) != value.lower():
        raise InvalidRequest(f"{field} must be a UUID such as {uuid.UUID(int=0)}", field=field)
    return str(parsed)


def checked_text(value: str, field: str, *, max_characters: int, required: bool = False) -> str:
    """Text without NUL, not longer than allowed and, where required, not blank."""
    if len(value) > max_characters:
        raise InvalidRequest(f"{field} has {len(value)} characters; {max_characters} are allowed", field=field)
    if "\0" in value:
        raise InvalidRequest(f"{field} holds a NUL character at {value.index(chr(0))}", field=field)
    if required and not value.strip():
        raise InvalidRequest(f"{field} is empty", field=field)
    return value


def check_enums(message: Message, place: str = "") -> None:
    """Refuse enum values, anywhere in a message, that this version does not know: a newer client may send them."""
    for field, value in message.ListFields():
        if field.enum_type is None and field.message_type is None:
            continue
        repeated = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        for index, item in enumerate(value if repeated else [value]):
            name = f"{place}{field.name}[{index}]" if repeated else f"{place}{field.name}"
            if field.enum_type is not None:
                _check_number(field.enum_type, item, name)
            elif isinstance(item, Message):  # maps of ours hold text only
                check_enums(item, f"{name}.")


def _check_number(kind: EnumDescriptor, number: int, name: str) -> None:
    if number not in kind.values_by_number:
        known = ", ".join(value.name for value in kind.values if value.number)
        raise InvalidRequest(
            f"{name} has the value {number}, which this server does not know",
            next_step=f"Use one of {known}, or a newer server.",
            field=name,
        )


def checked_moment(value: Timestamp, field: str) -> datetime:
    """A point in time that calendars can work with."""
    try:
        moment = value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        moment = _LAST_MOMENT
    if not _FIRST_MOMENT <= moment < _LAST_MOMENT:
        raise InvalidRequest(f"{field} must lie between the years 1970 and 2199", field=field)
    return moment


def checked_duration(value: Duration, field: str, *, longest: timedelta) -> timedelta:
    """A positive length of time up to `longest`."""
    try:
        duration = value.ToTimedelta()
    except (ValueError, OverflowError):
        duration = timedelta(0)
    if not timedelta(0) < duration <= longest:
        raise InvalidRequest(f"{field} must be more than 0 and at most {longest}", field=field)
    return duration


def checked_json(data: bytes, field: str) -> Any:
    """The value of JSON bytes: UTF-8, finite numbers, no lone surrogates, not nested too deep."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # an escaped lone surrogate has no UTF-8
    except RecursionError as error:
        raise InvalidRequest(f"{field} is nested too deep", field=field) from error
    except ValueError as error:
        raise InvalidRequest(f"{field} is not JSON in UTF-8: {error}", field=field) from error
    if _depth_exceeds(value, MAX_JSON_DEPTH):
        raise InvalidRequest(f"{field} is nested deeper than {MAX_JSON_DEPTH}", field=field)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
