"""Time for leases: it follows the clock forward and never goes back."""

from collections.abc import Callable
from datetime import datetime


class LeaseClock:
    """A clock in microseconds for lease expiry.

    Wall clocks jump back (NTP, a board without a battery). Were leases compared with the wall clock itself, a
    jump of an hour back would keep a dead worker's task from everybody for an hour. So lease time adds up only
    the forward steps of the clock: a jump back costs nothing, and what follows counts again. A jump forward lets
    leases lapse early, which is safe: the holder may renew unless somebody else took the task, and then its
    appends are refused by their expected sequence number.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._wall_us = _microseconds(clock())
        self._now_us = self._wall_us

    def read(self, floor_us: int) -> int:
        """Lease time now, at least `floor_us` (the highest reading stored by anybody)."""
        wall_us = _microseconds(self._clock())
        self._now_us = max(self._now_us + max(0, wall_us - self._wall_us), floor_us)
        self._wall_us = wall_us
        return self._now_us


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)
