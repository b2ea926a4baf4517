"""The bus on one SQLite file: for a cloud on one machine, with nothing else to install."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from cloud.bus import statements
from cloud.bus.lease_clock import LeaseClock
from cloud.bus.schema import connect, podium_error
from cloud.bus.watching import Watch
from cloud.bus.writer import CommitCounts, Writer
from conductor.bus import Acceptance, Durability, Lease, TaskRow
from podium.errors import ServerUnavailable
from podium.status import TaskStatus
from podium.v1 import event_pb2, status_pb2

_LOG = logging.getLogger(__name__)

R = TypeVar("R")

_RUNNABLE = (status_pb2.TASK_STATUS_ACCEPTED, status_pb2.TASK_STATUS_RUNNING)


class EmbeddedBus:
    """`conductor.bus.EventBus` on SQLite (WAL), one writer thread and one reader thread.

    It belongs to the event loop that opened it. Waiters in this process are told at once; what another process
    writes is noticed within half a second.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime], alone: bool, max_pages: int | None) -> None:
        """Use `open`."""
        self._path = path
        self._clock = clock
        self._lease_clock = LeaseClock(clock)
        self._work = asyncio.Event()
        self._watches: dict[str, set[Watch]] = {}
        self._closed = False
        connection = connect(path, max_pages=max_pages)
        if alone:
            with connection:
                statements.drop_leases(connection)
        self._reading = connect(path, read_only=True)
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="podium-reader")
        self._writer = Writer(
            connection,
            path,
            loop=asyncio.get_running_loop(),
            on_foreign_write=self._on_foreign_write,
            poll_s=0.5,
        )

    @classmethod
    async def open(
        cls, path: Path, *, clock: Callable[[], datetime], alone: bool = False, max_pages: int | None = None
    ) -> "EmbeddedBus":
        """Open the event log, making it when it is not there.

        Args:
            path: the file; its folder must exist.
            clock: the time leases are measured by.
            alone: the caller has made sure that no other process uses the file; leases found in it are then those
                of dead workers and are dropped, so that their tasks go on at once.
            max_pages: limit of the file in pages of 4096 bytes.

        Raises:
            DatabaseCorrupt: the file is damaged.
            EventLogTooNew: a newer Podium wrote it.
            InternalError: it cannot be opened.
        """
        return cls(path, clock=clock, alone=alone, max_pages=max_pages)

    @property
    def commits(self) -> CommitCounts:
        """Transactions since the bus was opened."""
        return self._writer.commits

    async def accept(self, event: event_pb2.Event, *, open_limit: int | None = None) -> Acceptance:
        """Write a task's first event, synced, once per caller and request id."""
        event.header.sequence = 1
        accepted = event.task_accepted
        task = statements.NewTask(
            task_id=event.header.task_id,
            caller=accepted.caller,
            request_id=accepted.request_id,
            text=accepted.text,
            device_id=accepted.device_id,
            priority=accepted.priority or status_pb2.PRIORITY_NORMAL,
            time_us=event.header.time.ToMicroseconds(),
            body=event.SerializeToString(),
        )
        return await self._writer.submit(
            lambda connection: statements.accept(connection, task, open_limit),
            synced=True,
            then=lambda _: self._work.set(),
        )

    async def append(
        self,
        task_id: str,
        events: Sequence[event_pb2.Event],
        *,
        expected_sequence: int,
        status: TaskStatus,
        durability: Durability = Durability.WRITTEN,
    ) -> int:
        """Append events in one transaction and return the new last sequence number."""
        bodies: list[bytes] = []
        for sequence, event in enumerate(events, expected_sequence + 1):
            event.header.sequence = sequence
            bodies.append(event.SerializeToString())
        new = statements.NewEvents(
            task_id=task_id,
            expected_sequence=expected_sequence,
            bodies=tuple(bodies),
            status=status,
            time_us=events[-1].header.time.ToMicroseconds() if events else 0,
        )

        def tell(_: int) -> None:
            for watch in self._watches.get(task_id, ()):
                watch.tell(events)
            if status in _RUNNABLE:
                self._work.set()

        return await self._writer.submit(
            lambda connection: statements.append(connection, new),
            synced=durability is Durability.SYNCED,
            then=tell,
        )

    async def read(self, task_id: str, *, after_sequence: int = 0) -> Sequence[event_pb2.Event]:
        """The events of a task after a sequence number, in order."""
        return await self._read(lambda connection: statements.read(connection, task_id, after_sequence))

    async def watch(self, task_id: str, *, after_sequence: int = 0) -> AsyncGenerator[event_pb2.Event, None]:
        """The events of a task after a sequence number, then new ones as they come.

        Raises:
            NotFound: there is no such task.
            ServerUnavailable: the bus was closed meanwhile.
        """
        watch = Watch(after_sequence)
        self._watches.setdefault(task_id, set()).add(watch)
        try:
            while True:
                # Taken before reading: what is appended meanwhile is told of again.
                events = watch.take()
                if events is None:
                    events = await self.read(task_id, after_sequence=watch.last)
                for event in events:
                    watch.given(event)
                    yield event
                await watch.wait()
        finally:
            watches = self._watches[task_id]
            watches.discard(watch)
            if not watches:
                del self._watches[task_id]

    async def find_request(self, caller: str, request_id: str) -> str | None:
        """The task id that a caller's request id was accepted as, or None."""
        return await self._read(lambda connection: statements.find_request(connection, caller, request_id))

    async def caller_of(self, task_id: str) -> str:
        """Who handed a task in."""
        return await self._read(lambda connection: statements.caller_of(connection, task_id))

    async def rows(
        self, *, statuses: Sequence[TaskStatus] = (), caller: str | None = None, limit: int, before: str = ""
    ) -> Sequence[TaskRow]:
        """Tasks, newest first, of all callers or of one."""
        return await self._read(lambda connection: statements.rows(connection, statuses, caller, limit, before))

    async def backlog(self) -> tuple[int, timedelta]:
        """How many runnable tasks nobody holds, and how long the oldest of them has waited."""
        count, oldest_us = await self._read(statements.backlog)
        if oldest_us is None:
            return 0, timedelta(0)
        return count, max(timedelta(0), self._clock() - datetime.fromtimestamp(oldest_us / 1e6, tz=UTC))

    async def lease(self, worker_id: str, *, duration: timedelta) -> Lease | None:
        """Take the runnable task whose turn it is and that nobody holds, or None."""

        def sleep_if_idle(found: str | None) -> None:
            if found is None:  # in commit order: work committed after this look sets the signal again
                self._work.clear()

        task_id = await self._writer.submit(
            lambda connection: statements.lease(connection, self._lease_clock, worker_id, _microseconds(duration)),
            then=sleep_if_idle,
        )
        return None if task_id is None else self._lease(task_id, worker_id, duration)

    async def renew(self, lease: Lease, *, duration: timedelta) -> Lease:
        """Hold a task longer."""
        await self._writer.submit(
            lambda connection: statements.renew(
                connection, self._lease_clock, lease.task_id, lease.worker_id, _microseconds(duration)
            )
        )
        return self._lease(lease.task_id, lease.worker_id, duration)

    async def release(self, lease: Lease) -> None:
        """Give a task back."""

        def tell(held: bool) -> None:
            if held:
                self._work.set()

        await self._writer.submit(
            lambda connection: statements.release(connection, lease.task_id, lease.worker_id), then=tell
        )

    async def wait_for_work(self, *, timeout: timedelta) -> None:
        """Return when a task may have become runnable, or after `timeout`."""
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._work.wait()
        except TimeoutError:
            return

    async def effect(self, key: str) -> bytes | None:
        """The recorded output of a write effect, or None when it has not happened."""
        return await self._read(lambda connection: statements.effect(connection, key))

    async def record_effect(self, key: str, output: bytes) -> bytes:
        """Record a write effect under its idempotency key, synced; the first record wins and is returned."""
        return await self._writer.submit(
            lambda connection: statements.record_effect(connection, key, output), synced=True
        )

    async def close(self) -> None:
        """Flush and close; watchers get `ServerUnavailable`."""
        if self._closed:
            return
        self._closed = True
        self._on_foreign_write()  # wakes every watcher and waiter, which then find the bus closed
        await asyncio.to_thread(self._reader.shutdown)
        self._reading.close()
        await self._writer.close()
        counts = self.commits
        _LOG.info("%s closed after %d commits, %d of them synced", self._path.name, counts.all, counts.synced)

    async def _read(self, run: Callable[[sqlite3.Connection], R]) -> R:
        if self._closed:
            raise ServerUnavailable("the event log is closed: the server is stopping")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader, run, self._reading)
        except sqlite3.Error as error:
            raise podium_error(error, self._path) from error

    def _on_foreign_write(self) -> None:
        self._work.set()
        for watches in self._watches.values():
            for watch in watches:
                watch.look_again()

    def _lease(self, task_id: str, worker_id: str, duration: timedelta) -> Lease:
        return Lease(task_id=task_id, worker_id=worker_id, expire_time=self._clock() + duration)


def _microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)
