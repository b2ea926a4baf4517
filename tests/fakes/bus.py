"""A bus in memory that obeys the port, and one that dies at a chosen append."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cloud.bus.lease_clock import LeaseClock
from conductor.bus import Acceptance, Durability, Lease, TaskRow
from podium.errors import LimitExceeded, NotFound, VersionConflict
from podium.status import ENDED
from podium.v1 import event_pb2, status_pb2

RUNNABLE = (status_pb2.TASK_STATUS_ACCEPTED, status_pb2.TASK_STATUS_RUNNING)


@dataclass
class _Log:
    events: list[event_pb2.Event] = field(default_factory=list)
    row: TaskRow | None = None
    lease: Lease | None = None
    held_until_us: int = 0
    priority: int = 0


class Killed(BaseException):
    """The process dies here."""


class MemoryBus:
    """Logs, queue and effects in dictionaries. Everything written survives the objects that use it."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._logs: dict[str, _Log] = {}
        self._requests: dict[tuple[str, str], str] = {}
        self.effects: dict[str, bytes] = {}
        self._lease_clock = LeaseClock(clock)
        self._changed = asyncio.Event()
        self._work = asyncio.Event()
        self.appends = 0
        self.synced_appends = 0

    async def accept(self, event: event_pb2.Event, *, open_limit: int | None = None) -> Acceptance:
        request_id, caller = event.task_accepted.request_id, event.task_accepted.caller
        if (caller, request_id) in self._requests:
            return Acceptance(task_id=self._requests[caller, request_id], duplicate=True)
        if open_limit is not None and self._count(caller, ended=False) >= open_limit:
            raise LimitExceeded(f"{caller} has {open_limit} open tasks")
        task_id, now = event.header.task_id, self._clock()
        stored = event_pb2.Event()
        stored.CopyFrom(event)
        stored.header.sequence = 1
        row = TaskRow(
            task_id=task_id,
            request_id=request_id,
            status=status_pb2.TASK_STATUS_ACCEPTED,
            text=event.task_accepted.text,
            create_time=now,
            update_time=now,
            last_sequence=1,
            device_id=event.task_accepted.device_id,
            caller=caller,
        )
        priority = event.task_accepted.priority or status_pb2.PRIORITY_NORMAL
        self._logs[task_id] = _Log(events=[stored], row=row, priority=priority)
        self._requests[caller, request_id] = task_id
        self._notify()
        return Acceptance(task_id=task_id, duplicate=False)

    async def append(
        self,
        task_id: str,
        events: Sequence[event_pb2.Event],
        *,
        expected_sequence: int,
        status: status_pb2.TaskStatus.ValueType,
        durability: Durability = Durability.WRITTEN,
    ) -> int:
        log = self._log(task_id)
        if len(log.events) != expected_sequence:
            raise VersionConflict(f"expected {expected_sequence}, the log is at {len(log.events)}")
        for event in events:
            stored = event_pb2.Event()
            stored.CopyFrom(event)
            stored.header.sequence = len(log.events) + 1
            log.events.append(stored)
        assert log.row is not None
        log.row = replace(log.row, status=status, update_time=self._clock(), last_sequence=len(log.events))
        self.appends += 1
        self.synced_appends += durability is Durability.SYNCED
        self._notify()
        return len(log.events)

    async def read(self, task_id: str, *, after_sequence: int = 0) -> Sequence[event_pb2.Event]:
        return tuple(self._log(task_id).events[after_sequence:])

    async def watch(self, task_id: str, *, after_sequence: int = 0) -> AsyncGenerator[event_pb2.Event, None]:
        while True:
            for event in self._log(task_id).events[after_sequence:]:
                after_sequence = event.header.sequence
                yield event
            await self._changed.wait()

    async def find_request(self, caller: str, request_id: str) -> str | None:
        return self._requests.get((caller, request_id))

    async def caller_of(self, task_id: str) -> str:
        return self.row(task_id).caller

    async def rows(
        self,
        *,
        statuses: Sequence[status_pb2.TaskStatus.ValueType] = (),
        caller: str | None = None,
        limit: int,
        before: str = "",
    ) -> Sequence[TaskRow]:
        rows = [log.row for log in reversed(self._logs.values()) if log.row is not None]
        rows = [row for row in rows if caller in (None, row.caller)]
        if before and before not in {row.task_id for row in rows}:
            raise NotFound(f"there is no task {before}")
        if before:
            rows = rows[[row.task_id for row in rows].index(before) + 1 :]
        return [row for row in rows if not statuses or row.status in statuses][:limit]

    async def lease(self, worker_id: str, *, duration: timedelta) -> Lease | None:
        now_us = self._lease_clock.read(0)
        able = [
            (task_id, log)
            for task_id, log in self._logs.items()
            if log.row is not None
            and log.row.status in RUNNABLE
            and (log.lease is None or log.held_until_us <= now_us)
        ]
        if not able:
            self._work.clear()
            return None
        running = Counter(
            log.row.caller
            for log in self._logs.values()
            if log.row is not None
            and log.row.status in RUNNABLE
            and log.lease is not None
            and log.held_until_us > now_us
        )
        # `max` takes the first of equals, and the logs are in the order of acceptance.
        task_id, log = max(able, key=lambda item: (item[1].priority, -running[self.row(item[0]).caller]))
        return self._hold(log, Lease(task_id=task_id, worker_id=worker_id, expire_time=self._clock()), duration)

    async def renew(self, lease: Lease, *, duration: timedelta) -> Lease:
        log = self._log(lease.task_id)
        if log.lease is None or log.lease.worker_id != lease.worker_id:
            raise VersionConflict("somebody else holds the task")
        return self._hold(log, lease, duration)

    async def release(self, lease: Lease) -> None:
        log = self._log(lease.task_id)
        if log.lease is not None and log.lease.worker_id == lease.worker_id:
            log.lease = None
            self._notify()

    async def wait_for_work(self, *, timeout: timedelta) -> None:
        try:
            await asyncio.wait_for(self._work.wait(), timeout.total_seconds())
        except TimeoutError:
            return

    async def effect(self, key: str) -> bytes | None:
        return self.effects.get(key)

    async def record_effect(self, key: str, output: bytes) -> bytes:
        return self.effects.setdefault(key, output)

    async def close(self) -> None:
        self._notify()

    def row(self, task_id: str) -> TaskRow:
        """The task's row."""
        row = self._log(task_id).row
        assert row is not None
        return row

    def _count(self, caller: str, *, ended: bool) -> int:
        rows = (log.row for log in self._logs.values() if log.row is not None)
        return sum(row.caller == caller and (row.status in ENDED) is ended for row in rows)

    def _log(self, task_id: str) -> _Log:
        if task_id not in self._logs:
            raise NotFound(f"there is no task {task_id}")
        return self._logs[task_id]

    def _hold(self, log: _Log, lease: Lease, duration: timedelta) -> Lease:
        log.held_until_us = self._lease_clock.read(0) + duration // timedelta(microseconds=1)
        log.lease = replace(lease, expire_time=self._clock() + duration)
        return log.lease

    def _notify(self) -> None:
        self._work.set()
        self._changed.set()
        self._changed = asyncio.Event()


class DyingBus(MemoryBus):
    """Dies at the n-th write, before or after it reaches the log."""

    def __init__(self, clock: Callable[[], datetime], *, at: int = 0, after_write: bool = False) -> None:
        super().__init__(clock)
        self.at = at
        self.after_write = after_write
        self._writes = 0

    def _before(self) -> None:
        self._writes += 1
        if self._writes == self.at and not self.after_write:
            raise Killed

    def _after(self) -> None:
        if self._writes == self.at and self.after_write:
            raise Killed

    async def append(
        self,
        task_id: str,
        events: Sequence[event_pb2.Event],
        *,
        expected_sequence: int,
        status: status_pb2.TaskStatus.ValueType,
        durability: Durability = Durability.WRITTEN,
    ) -> int:
        self._before()
        last = await super().append(
            task_id, events, expected_sequence=expected_sequence, status=status, durability=durability
        )
        self._after()
        return last

    async def record_effect(self, key: str, output: bytes) -> bytes:
        self._before()
        kept = await super().record_effect(key, output)
        self._after()
        return kept
