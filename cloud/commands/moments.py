"""Moments and lengths of time as people write them on a command line."""

import re
from datetime import UTC, datetime, timedelta

from podium.errors import InvalidRequest


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 moment or day; without a time zone it is UTC. None stays None.

    Raises:
        InvalidRequest: it is not ISO 8601.
    """
    if text is None:
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is not an ISO date or time: {error}", field="now") from error
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def length_of_time(text: str, field: str) -> timedelta:
    """A number with its unit: 30d, 12h, 90m or 45s.

    Args:
        text: as it was written.
        field: the option, for the error.

    Raises:
        InvalidRequest: it is none.
    """
    match = re.fullmatch(r"(\d{1,9})([dhms])", text.strip())
    if match is None:
        raise InvalidRequest(
            f"{text[:50]!r} is no length of time", next_step="Write 30d, 12h or 90m.", field=field
        )
    unit = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}[match[2]]
    try:
        return timedelta(**{unit: int(match[1])})
    except OverflowError as error:
        raise InvalidRequest(f"{text[:50]!r} is too long a time", field=field) from error
