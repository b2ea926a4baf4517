"""A clock that stands still until it is told to move."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """The injected clock of tests."""

    def __init__(self, now: datetime = datetime(2026, 11, 29, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **units: float) -> None:
        self.now += timedelta(**units)
