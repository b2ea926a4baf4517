"""The thread that owns a SQLite connection: it takes jobs from an event loop and commits together what waits."""

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from cloud.bus.schema import podium_error
from podium.errors import InternalError, PodiumError, ServerUnavailable

_LOG = logging.getLogger(__name__)

R = TypeVar("R")

_MAX_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCounts:
    """How many transactions a writer committed since it was opened."""

    synced: int
    """With an fsync."""
    written: int
    """Without one."""
    jobs: int
    """Calls that these transactions carried; more than one shares a commit under load."""

    @property
    def all(self) -> int:
        """Both kinds together."""
        return self.synced + self.written


@dataclass(frozen=True, slots=True)
class _Job:
    run: Callable[[sqlite3.Connection], Any]
    synced: bool
    future: "asyncio.Future[Any]"
    then: Callable[[Any], None] | None


class Writer:
    """Runs jobs one after the other on its own thread; jobs that wait together share one transaction.

    A job checks before it writes, and raises a `PodiumError` only before its first write: then the transaction
    it shares with others goes on without it. When SQLite itself fails, the shared transaction is rolled back and
    every job gets one of its own: each caller has its own outcome.

    Durability: in WAL mode `synchronous = NORMAL` writes commits to the log file without an fsync; they survive
    the death of the process because the kernel holds them. `synchronous = FULL` adds an fsync of the log file,
    which presses every earlier commit to disk with it, in order. So a synced job makes all that was written before
    it durable too, and a power cut takes only unsynced commits from the end.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        loop: asyncio.AbstractEventLoop,
        on_foreign_write: Callable[[], None],
        poll_s: float,
    ) -> None:
        """Start the thread.

        Args:
            connection: used by this thread only from now on; closed by `close`.
            path: the file, named in errors.
            loop: where futures are completed.
            on_foreign_write: called on the loop when another process has changed the file.
            poll_s: how often to look for that, in seconds.
        """
        self._connection = connection
        self._path = path
        self._loop = loop
        self._on_foreign_write = on_foreign_write
        self._poll_s = poll_s
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._full_sync = False
        self._synced = self._written = self._jobs = 0
        self._thread = threading.Thread(target=self._work, name=f"podium-writer-{path.name}", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> CommitCounts:
        """Transactions so far."""
        return CommitCounts(synced=self._synced, written=self._written, jobs=self._jobs)

    async def submit(
        self,
        run: Callable[[sqlite3.Connection], R],
        *,
        synced: bool = False,
        then: Callable[[R], None] | None = None,
    ) -> R:
        """Run a job in a transaction and return its result after the commit.

        A caller that is cancelled does not stop the job: it is committed or not, as if the answer had been lost.

        Args:
            run: called on the writer's thread inside a transaction.
            synced: fsync before returning.
            then: called on the loop with the result, in commit order, before the caller resumes.

        Raises:
            PodiumError: what `run` raised, or what SQLite's failure means.
        """
        if self._closed:
            raise ServerUnavailable("the event log is closed: the server is stopping")
        future: asyncio.Future[R] = self._loop.create_future()
        self._queue.put(_Job(run, synced, future, cast("Callable[[Any], None] | None", then)))
        return await future

    async def close(self) -> None:
        """Commit what waits, close the file and end the thread."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        version = self._data_version()
        open_ = True
        while open_:
            try:
                batch = [self._queue.get(timeout=self._poll_s)]
            except queue.Empty:
                if (seen := self._data_version()) != version:
                    version = seen
                    self._loop.call_soon_threadsafe(self._on_foreign_write)
                continue
            with contextlib.suppress(queue.Empty):
                while len(batch) < _MAX_BATCH:
                    batch.append(self._queue.get_nowait())
            open_ = None not in batch
            jobs = [job for job in batch if job is not None]
            if jobs:
                self._commit(jobs)
        self._connection.close()

    def _data_version(self) -> int:
        """Changes only when another connection has written; 0 when it cannot be read just now."""
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return 0

    def _commit(self, jobs: Sequence[_Job]) -> None:
        try:
            outcomes = self._transaction(jobs)
        except Exception as error:  # noqa: BLE001 - every failure becomes its caller's outcome
            if len(jobs) > 1:
                for job in jobs:
                    self._commit([job])
                return
            outcomes = [self._failure(error)]
        self._jobs += len(jobs)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(_deliver, jobs, outcomes)

    def _failure(self, error: Exception) -> PodiumError:
        if isinstance(error, sqlite3.Error):
            told = podium_error(error, self._path)
        else:
            # A defect in a job must reach its caller, and must not end the thread that everybody else waits for.
            _LOG.error("a job of the event log's writer raised", exc_info=error)
            told = InternalError(f"the event log's writer failed: {error!r}")
        told.__cause__ = error
        return told

    def _transaction(self, jobs: Sequence[_Job]) -> list[Any]:
        """The result of every job, or the `PodiumError` it raised; all results are committed when this returns."""
        synced = any(job.synced for job in jobs)
        if synced is not self._full_sync:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._full_sync = synced
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._attempt(job) for job in jobs]
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite has already rolled back after some failures
                self._connection.execute("ROLLBACK")
            raise
        if synced:
            self._synced += 1
        else:
            self._written += 1
        return outcomes

    def _attempt(self, job: _Job) -> Any:
        try:
            return job.run(self._connection)
        except PodiumError as error:
            return error


def _deliver(jobs: Sequence[_Job], outcomes: Sequence[Any]) -> None:
    for job, outcome in zip(jobs, outcomes, strict=True):
        failed = isinstance(outcome, PodiumError)
        if job.then is not None and not failed:
            job.then(outcome)
        if job.future.done():  # the caller was cancelled
            continue
        if failed:
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
