"""An event bus that tells what is committed through it: metrics of tasks and steps, and the spans of tasks.

What is counted is what is on disk, once, whoever wrote it; what was thrown away with a lost race is not. The
span of a task is recorded when its end is committed, under the place that follows from the task's id, so a task
that lived through a dozen processes has one.
"""

import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from conductor.bus import Acceptance, Durability, EventBus, Lease, TaskRow
from podium.errors import PodiumError, VersionConflict
from podium.status import TaskStatus, recovery_name, task_status_name
from podium.telemetry import FinishedSpan, parsed, place_of_task, record, recording
from podium.v1 import event_pb2, status_pb2

if TYPE_CHECKING:
    from cloud.telemetry.metrics import Metrics

_REMEMBERED_TASKS = 10_000
_STEPS_PER_TASK = 200
_ENDS = {
    "task_succeeded": status_pb2.TASK_STATUS_SUCCEEDED,
    "task_failed": status_pb2.TASK_STATUS_FAILED,
    "task_cancelled": status_pb2.TASK_STATUS_CANCELLED,
    "task_expired": status_pb2.TASK_STATUS_EXPIRED,
}


@dataclass(frozen=True, slots=True)
class _Begun:
    start_ns: int
    traceparent: str


class ObservedBus:
    """Passes everything on to a bus."""

    def __init__(self, bus: EventBus, metrics: "Metrics | None") -> None:
        """Observe a bus.

        Args:
            bus: does the work.
            metrics: what is counted; None to record spans only.
        """
        self._bus = bus
        self._metrics = metrics
        self._begun: OrderedDict[str, _Begun] = OrderedDict()
        self._agents: OrderedDict[str, dict[int, str]] = OrderedDict()

    async def accept(self, event: event_pb2.Event, *, open_limit: int | None = None) -> Acceptance:
        """See `EventBus.accept`."""
        acceptance = await self._bus.accept(event, open_limit=open_limit)
        if not acceptance.duplicate:
            self._remember(acceptance.task_id, event)
            if self._metrics is not None:
                self._metrics.task_accepted("device" if event.task_accepted.device_id else "caller")
        return acceptance

    async def append(
        self,
        task_id: str,
        events: Sequence[event_pb2.Event],
        *,
        expected_sequence: int,
        status: TaskStatus,
        durability: Durability = Durability.WRITTEN,
    ) -> int:
        """See `EventBus.append`."""
        begun, outcome = time.perf_counter(), "failed"
        try:
            last = await self._bus.append(
                task_id, events, expected_sequence=expected_sequence, status=status, durability=durability
            )
            outcome = "committed"
        except VersionConflict:
            outcome = "conflict"
            raise
        finally:
            if self._metrics is not None:
                self._metrics.committed(outcome, time.perf_counter() - begun)
        for event in events:
            await self._observe(task_id, event)
        return last

    async def _observe(self, task_id: str, event: event_pb2.Event) -> None:
        kind = event.WhichOneof("payload") or ""
        if self._metrics is not None:
            self._count(task_id, kind, event, self._metrics)
        if (status := _ENDS.get(kind)) is not None:
            await self._end(task_id, event, status)

    def _count(self, task_id: str, kind: str, event: event_pb2.Event, metrics: "Metrics") -> None:
        match kind:
            case "step_started":
                agents = self._agents.setdefault(task_id, {})
                if len(agents) < _STEPS_PER_TASK:
                    agents[event.header.step] = event.step_started.agent
                _bound(self._agents)
            case "step_succeeded":
                agent = self._agents.get(task_id, {}).get(event.header.step, "")
                seconds = event.step_succeeded.duration.ToTimedelta().total_seconds()
                metrics.step_ended(agent, "succeeded", "", seconds)
            case "step_failed":
                failed = event.step_failed
                agent = self._agents.get(task_id, {}).get(event.header.step, failed.error.agent)
                seconds = failed.duration.ToTimedelta().total_seconds()
                metrics.step_ended(agent, "failed", failed.error.code, seconds)
                metrics.recovered(recovery_name(failed.recovery))
            case "plan_adopted":
                metrics.planned(event.plan_adopted.planner, "adopted")
            case "plan_refused":
                metrics.planned(event.plan_refused.planner, "refused")

    async def _end(self, task_id: str, event: event_pb2.Event, status: TaskStatus) -> None:
        self._agents.pop(task_id, None)
        begun = self._begun.pop(task_id, None)
        if begun is None:  # accepted by a process before this one
            try:
                self._remember(task_id, (await self._bus.read(task_id))[0])
            except PodiumError:
                return  # the end is on disk; that nobody can time it is no reason to fail
            begun = self._begun.pop(task_id)
        end_ns = event.header.time.ToNanoseconds()
        if self._metrics is not None:
            self._metrics.task_ended(task_status_name(status), (end_ns - begun.start_ns) / 1e9)
        place = place_of_task(task_id, event.header.trace_id)
        if not recording() or place is None:
            return
        above = parsed(begun.traceparent)
        failure = event.task_failed.error.code if event.HasField("task_failed") else ""
        record(
            FinishedSpan(
                name="podium.task",
                kind="internal",
                context=place,
                parent_span_id=above.span_id if above is not None else "",
                start_ns=begun.start_ns,
                end_ns=max(begun.start_ns, end_ns),
                attributes={"podium.task.id": task_id, "podium.task.status": task_status_name(status)},
                error_code=failure,
            )
        )

    def _remember(self, task_id: str, event: event_pb2.Event) -> None:
        self._begun[task_id] = _Begun(event.header.time.ToNanoseconds(), event.task_accepted.traceparent)
        _bound(self._begun)

    async def read(self, task_id: str, *, after_sequence: int = 0) -> Sequence[event_pb2.Event]:
        """See `EventBus.read`."""
        return await self._bus.read(task_id, after_sequence=after_sequence)

    def watch(self, task_id: str, *, after_sequence: int = 0) -> AsyncGenerator[event_pb2.Event, None]:
        """See `EventBus.watch`."""
        return self._bus.watch(task_id, after_sequence=after_sequence)

    async def find_request(self, caller: str, request_id: str) -> str | None:
        """See `EventBus.find_request`."""
        return await self._bus.find_request(caller, request_id)

    async def caller_of(self, task_id: str) -> str:
        """See `EventBus.caller_of`."""
        return await self._bus.caller_of(task_id)

    async def rows(
        self, *, statuses: Sequence[TaskStatus] = (), caller: str | None = None, limit: int, before: str = ""
    ) -> Sequence[TaskRow]:
        """See `EventBus.rows`."""
        return await self._bus.rows(statuses=statuses, caller=caller, limit=limit, before=before)

    async def lease(self, worker_id: str, *, duration: timedelta) -> Lease | None:
        """See `EventBus.lease`."""
        return await self._bus.lease(worker_id, duration=duration)

    async def renew(self, lease: Lease, *, duration: timedelta) -> Lease:
        """See `EventBus.renew`."""
        return await self._bus.renew(lease, duration=duration)

    async def release(self, lease: Lease) -> None:
        """See `EventBus.release`."""
        await self._bus.release(lease)

    async def wait_for_work(self, *, timeout: timedelta) -> None:
        """See `EventBus.wait_for_work`."""
        await self._bus.wait_for_work(timeout=timeout)

    async def effect(self, key: str) -> bytes | None:
        """See `EventBus.effect`."""
        return await self._bus.effect(key)

    async def record_effect(self, key: str, output: bytes) -> bytes:
        """See `EventBus.record_effect`."""
        return await self._bus.record_effect(key, output)

    async def close(self) -> None:
        """See `EventBus.close`."""
        await self._bus.close()


def _bound(entries: "OrderedDict[str, _Begun] | OrderedDict[str, dict[int, str]]") -> None:
    while len(entries) > _REMEMBERED_TASKS:
        entries.popitem(last=False)
