"""Moments as people write them on a command line."""

from datetime import UTC, datetime

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
