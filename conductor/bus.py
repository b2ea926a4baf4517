"""What a bus is: the durable log of every task's events, the queue of work, and the once-only effects.

Engines implement this port (`cloud.bus.embedded` on SQLite; others later) and pass one contract suite. Payloads
are `podium.v1.Event` messages; a task's state is the fold over its events (`conductor.state`).
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from conductor.progress import TaskState
from podium.status import TaskStatus
from podium.v1 import event_pb2


class Durability(Enum):
    """How hard an append is pressed to disk before it returns."""

    SYNCED = "synced"
    """Survives a power cut: acceptance of a task, write effects, the final answer."""
    WRITTEN = "written"
    """Survives kill -9; after a power cut the last of these may have to be redone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task as lists show it: a projection kept with the log."""

    task_id: str
    request_id: str
    status: TaskStatus
    text: str
    create_time: datetime
    update_time: datetime
    last_sequence: int
    device_id: str = ""
    caller: str = ""
    """Who handed it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The outcome of handing in a task."""

    task_id: str
    duplicate: bool
    """True when the request id had been accepted before; then nothing was written."""
    state: TaskState | None = None
    """The task as it was taken in, where the desk took it in; None for a duplicate, whose log says more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one worker to run one task until it expires or is released."""

    task_id: str
    worker_id: str
    expire_time: datetime


class EventBus(Protocol):
    """The port. All methods may raise `StorageFull` or `InternalError`; nothing accepted is ever lost."""

    async def accept(self, event: event_pb2.Event, *, open_limit: int | None = None) -> Acceptance:
        """Write the first event (`TaskAccepted`), synced, once per caller and request id.

        Two callers may use one request id: each has a task of its own, so that nobody gets another's by its id.

        Args:
            event: with the task id chosen by whoever hands it in.
            open_limit: how many tasks of the caller may be unended, this one included; None sets no limit. What
                was accepted before is returned at any number.

        Raises:
            LimitExceeded: the caller has as many open tasks as allowed; nothing was written.
        """
        ...

    async def append(
        self,
        task_id: str,
        events: Sequence[event_pb2.Event],
        *,
        expected_sequence: int,
        status: TaskStatus,
        durability: Durability = Durability.WRITTEN,
    ) -> int:
        """Append events in one transaction and return the new last sequence number.

        The bus sets each header's sequence. `status` is the task's status after the last event, kept for lists and
        for the queue: a task is runnable while its status is ACCEPTED or RUNNING.

        Raises:
            VersionConflict: the log's last sequence number is not `expected_sequence`.
            NotFound: there is no such task.
        """
        ...

    async def read(self, task_id: str, *, after_sequence: int = 0) -> Sequence[event_pb2.Event]:
        """The events of a task after a sequence number, in order.

        Raises:
            NotFound: there is no such task.
        """
        ...

    def watch(self, task_id: str, *, after_sequence: int = 0) -> AsyncGenerator[event_pb2.Event, None]:
        """The events of a task after a sequence number, then new ones as they come; the caller closes it."""
        ...

    async def find_request(self, caller: str, request_id: str) -> str | None:
        """The task id that a caller's request id was accepted as, or None."""
        ...

    async def caller_of(self, task_id: str) -> str:
        """Who handed a task in.

        Raises:
            NotFound: there is no such task.
        """
        ...

    async def rows(
        self, *, statuses: Sequence[TaskStatus] = (), caller: str | None = None, limit: int, before: str = ""
    ) -> Sequence[TaskRow]:
        """Tasks, newest first, of the given states and, unless it is None, of one caller.

        Raises:
            NotFound: `before`, the task id that the last page ended with, is not one of these tasks.
        """
        ...

    async def lease(self, worker_id: str, *, duration: timedelta) -> Lease | None:
        """Take the runnable task whose turn it is and that nobody holds, or None.

        The most urgent go first; among those, tasks of the caller of whom the fewest are being run; then the
        oldest. So a caller with a thousand tasks does not keep another with one waiting. A lapsed lease counts as
        not held.
        """
        ...

    async def renew(self, lease: Lease, *, duration: timedelta) -> Lease:
        """Hold a task longer.

        Raises:
            VersionConflict: the lease lapsed and somebody else holds the task.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give a task back; it is leased again only if it is still runnable."""
        ...

    async def wait_for_work(self, *, timeout: timedelta) -> None:
        """Return when a task may have become runnable, or after `timeout`."""
        ...

    async def effect(self, key: str) -> bytes | None:
        """The recorded output of a write effect, or None when it has not happened."""
        ...

    async def record_effect(self, key: str, output: bytes) -> bytes:
        """Record a write effect under its idempotency key, synced; the first record wins and is returned."""
        ...

    async def close(self) -> None:
        """Flush and close; the bus cannot be used afterwards."""
        ...
