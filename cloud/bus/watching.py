"""One watch of a task's log: what is appended is handed over in memory; the log is read where that fails."""

import asyncio
from collections.abc import Sequence

from podium.v1 import event_pb2

MAX_WAITING_EVENTS = 256
"""Events kept for a watcher that is slow; it reads the log when it has fallen further behind."""


class Watch:
    """What one watcher has not been given yet. All methods are called on the bus's event loop."""

    def __init__(self, after_sequence: int) -> None:
        """Watch what comes after a sequence number; the log is read first."""
        self._last = after_sequence
        self._waiting: list[event_pb2.Event] = []
        self._must_read = True
        self._signal = asyncio.Event()

    @property
    def last(self) -> int:
        """Sequence number of the last event given out; reading the log goes on after it."""
        return self._last

    def tell(self, events: Sequence[event_pb2.Event]) -> None:
        """Events were appended by this process, in commit order; they are shared and must not be changed."""
        if len(self._waiting) + len(events) > MAX_WAITING_EVENTS:
            self.look_again()
            return
        self._waiting.extend(events)
        self._signal.set()

    def look_again(self) -> None:
        """The log may hold what nobody told of: another process wrote, or too much was waiting."""
        self._waiting.clear()
        self._must_read = True
        self._signal.set()

    async def wait(self) -> None:
        """Return when there is something to give out or to read."""
        await self._signal.wait()

    def take(self) -> Sequence[event_pb2.Event] | None:
        """What is waiting, in order and without a gap; None when the log has to be read."""
        self._signal.clear()
        waiting, self._waiting = self._waiting, []
        must_read, self._must_read = self._must_read, False
        fresh = [event for event in waiting if event.header.sequence > self._last]
        # Events of another process are not told of: they leave a gap before those that came after them.
        gap = bool(fresh) and fresh[-1].header.sequence != self._last + len(fresh)
        return None if must_read or gap else fresh

    def given(self, event: event_pb2.Event) -> None:
        """An event has been handed to the watcher."""
        self._last = event.header.sequence
