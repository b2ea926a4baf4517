"""The log of one task while it runs: decide on a tentative state, commit once, start over on a conflict."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from conductor.bus import Durability, EventBus
from conductor.progress import TaskState
from conductor.state import apply, fold
from podium.errors import VersionConflict
from podium.v1 import event_pb2

SCHEMA_VERSION = 1


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_of(moment: datetime) -> Timestamp:
    """A moment with its time zone, as it travels."""
    since = moment - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1_000)


class Journal:
    """Events are recorded one by one and written together.

    `state` is the fold over everything recorded, also what is not yet written; when somebody else has written
    first, what was recorded is dropped, and the caller decides again over the newer state.
    """

    def __init__(self, bus: EventBus, state: TaskState, clock: Callable[[], datetime]) -> None:
        """Continue from a state that was folded from the log."""
        self.state = state
        self._written = state
        self._bus = bus
        self._clock = clock
        self._events: list[event_pb2.Event] = []
        self._durability = Durability.WRITTEN

    @classmethod
    async def open(cls, bus: EventBus, task_id: str, clock: Callable[[], datetime]) -> "Journal":
        """Read and fold a task's log.

        Raises:
            NotFound: there is no such task.
            DataCorrupt: the log is out of order.
        """
        return cls(bus, fold(await bus.read(task_id)), clock)

    def record(self, payload: Any, *, step: int | None = None, synced: bool = False, **header: Any) -> None:
        """Record that something happened.

        Args:
            payload: A message that is one of the payloads of `podium.v1.Event`.
            step: Index of the step concerned.
            synced: Press it to disk when it is written: write effects and the end of a task.
            **header: More header fields, e.g. `retry_count`.
        """
        event = event_pb2.Event(
            header=event_pb2.EventHeader(
                task_id=self.state.task_id,
                sequence=self.state.last_sequence + 1,
                schema_version=SCHEMA_VERSION,
                time=timestamp_of(self._clock()),
                trace_id=self.state.trace_id,
                **header,
            ),
            **{_FIELDS[type(payload)]: payload},
        )
        if step is not None:
            event.header.step = step
        self.state = apply(self.state, event)
        self._events.append(event)
        if synced:
            self._durability = Durability.SYNCED

    async def commit(self) -> bool:
        """Write what was recorded; False when somebody else wrote first and it was dropped."""
        if not self._events:
            return True
        try:
            await self._bus.append(
                self.state.task_id,
                self._events,
                expected_sequence=self._written.last_sequence,
                status=self.state.status,
                durability=self._durability,
            )
        except VersionConflict:
            await self.refresh()
            return False
        self._written = self.state
        self._clear()
        return True

    async def refresh(self) -> bool:
        """Drop what is not written and read what others wrote; whether there was anything."""
        events = await self._bus.read(self._written.task_id, after_sequence=self._written.last_sequence)
        self._written = self.state = fold(events, self._written)
        self._clear()
        return bool(events)

    def _clear(self) -> None:
        self._events = []
        self._durability = Durability.WRITTEN


_FIELDS: dict[type, str] = {
    getattr(event_pb2, "".join(part.capitalize() for part in field.name.split("_"))): field.name
    for field in event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"].fields
}
