"""A worker: leases runnable tasks, runs several at once, and looks after parked ones."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

from conductor.bus import EventBus, Lease
from conductor.progress import TaskState
from conductor.runner import TaskRunner
from conductor.surrender import surrender
from conductor.waiting import Sweeper
from podium.errors import InternalError, PodiumError, StorageFull, VersionConflict

_log = logging.getLogger(__name__)


class Worker:
    """Runs tasks of one bus until it is stopped. Any number of workers may share a bus."""

    def __init__(
        self,
        bus: EventBus,
        runner: TaskRunner,
        *,
        worker_id: str,
        max_tasks: int = 16,
        sweeper: Sweeper | None = None,
        lease_duration: timedelta = timedelta(seconds=30),
        sweep_interval: timedelta = timedelta(seconds=1),
        drain_limit: timedelta = timedelta(seconds=10),
        max_crashes: int = 5,
    ) -> None:
        """Prepare a worker; nothing runs before `run`.

        Args:
            bus: Where tasks come from.
            runner: Runs them.
            worker_id: Names the holder of leases; unique among workers.
            max_tasks: How many tasks run at once.
            sweeper: Looks after parked tasks; at least one worker of a bus needs one.
            lease_duration: How long a task stays with a worker that has died.
            sweep_interval: How often parked tasks are looked at.
            drain_limit: How long running tasks may go on once the worker is stopped.
            max_crashes: After how many defects in a row a task is failed instead of run again.
        """
        self._bus = bus
        self._runner = runner
        self._worker_id = worker_id
        self._max_tasks = max_tasks
        self._sweeper = sweeper
        self._lease_duration = lease_duration
        self._sweep_interval = sweep_interval
        self._drain_limit = drain_limit
        self._max_crashes = max_crashes
        self._stopping = asyncio.Event()
        self._active: set[asyncio.Task[None]] = set()
        self._crashes: dict[str, int] = {}

    @property
    def running(self) -> int:
        """How many tasks are being run."""
        return len(self._active)

    def stop(self) -> None:
        """Take no more tasks; `run` returns once the running ones have ended or the drain limit is over."""
        self._stopping.set()

    async def run(self) -> None:
        """Lease and run tasks until `stop`."""
        sweeping = asyncio.create_task(self._sweep()) if self._sweeper is not None else None
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            while not self._stopping.is_set():
                if len(self._active) >= self._max_tasks:
                    await asyncio.wait({*self._active, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    continue
                lease = await self._bus.lease(self._worker_id, duration=self._lease_duration)
                if lease is None:
                    await self._idle(stopped)
                    continue
                task = asyncio.create_task(self._run_leased(lease), name=f"task {lease.task_id}")
                self._active.add(task)
                task.add_done_callback(self._active.discard)
            await self._drain()
        finally:
            await _end(sweeping, stopped, *self._active)

    async def _idle(self, stopped: asyncio.Task[bool]) -> None:
        work = asyncio.create_task(self._bus.wait_for_work(timeout=self._sweep_interval))
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await _end(work)

    async def _drain(self) -> None:
        if self._active:
            await asyncio.wait(set(self._active), timeout=self._drain_limit.total_seconds())

    async def _run_leased(self, lease: Lease) -> None:
        running = asyncio.create_task(self._runner.run(lease.task_id))
        renewing = asyncio.create_task(self._renew(lease, running))
        ended = False
        try:
            ended = (await running).ended
            self._crashes.pop(lease.task_id, None)
        except asyncio.CancelledError:
            if renewing.done() and not self._stopping.is_set():
                _log.warning("task %s was taken over by another worker", lease.task_id)
                return
            raise
        except Exception as error:  # noqa: BLE001 - a defect in one task must not end the worker
            await self._crashed(lease.task_id, error)
        finally:
            await _end(running, renewing)
            # A task that has ended is never leased again: giving it back would be one commit in eight for nothing.
            if not ended:
                await self._bus.release(lease)

    async def _renew(self, lease: Lease, running: asyncio.Task[TaskState]) -> None:
        while True:
            await asyncio.sleep(self._lease_duration.total_seconds() / 3)
            try:
                lease = await self._bus.renew(lease, duration=self._lease_duration)
            except VersionConflict:
                running.cancel()
                return
            except PodiumError as error:
                # A full disk or the like: the task goes on, and a lease that lapsed may still be renewed.
                _log.error("the lease of task %s was not renewed: %s", lease.task_id, error.code)

    async def _crashed(self, task_id: str, error: Exception) -> None:
        """Wait longer after each defect; give the task up after several, so that it does not spin for ever."""
        if isinstance(error, StorageFull):
            # Not the task's fault and nothing of it is lost; it goes on when there is room again.
            _log.error("running task %s failed: %s", task_id, error.code)
            await asyncio.sleep(1)
            return
        count = self._crashes[task_id] = self._crashes.get(task_id, 0) + 1
        _log.error("running task %s failed (%d of %d)", task_id, count, self._max_crashes, exc_info=error)
        if count >= self._max_crashes:
            del self._crashes[task_id]
            if not isinstance(error, PodiumError):
                error = InternalError(f"running the task raised {type(error).__name__}: {error}")
            try:
                await surrender(self._bus, task_id, error)
            except PodiumError as failure:
                # It stays as it is and is run again: better than a task that nobody holds or ends.
                _log.error("task %s cannot be failed now: %s", task_id, failure.code)
            return
        await asyncio.sleep(min(0.05 * 4**count, 30))

    async def _sweep(self) -> None:
        while self._sweeper is not None:
            try:
                await self._sweeper.sweep()
            except Exception as error:  # noqa: BLE001 - a defect in one task must not leave all others unattended
                _log.error("looking after parked tasks failed", exc_info=error)
            await asyncio.sleep(self._sweep_interval.total_seconds())


async def _end(*tasks: "asyncio.Task[Any] | None") -> None:
    present = [task for task in tasks if task is not None]
    for task in present:
        task.cancel()
    await asyncio.gather(*present, return_exceptions=True)
