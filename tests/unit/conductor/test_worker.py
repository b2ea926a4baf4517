"""Workers: many tasks at once, leases, defects, draining."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from conductor.bus import Lease
from conductor.progress import TaskState
from conductor.runner import TaskRunner
from conductor.waiting import Sweeper
from conductor.worker import Worker
from podium.errors import StorageFull
from podium.v1 import status_pb2
from tests.fakes.agents import held, output
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import Stage, stage
from tests.unit.conductor.test_devices import device_stage
from tests.unit.conductor.test_waiting import until


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def worker(show: Stage, runner: Any = None, **fields: Any) -> Worker:
    fields.setdefault("sweep_interval", timedelta(milliseconds=5))
    return Worker(
        show.bus,
        runner or TaskRunner(show.wiring),
        worker_id="w1",
        sweeper=Sweeper(show.wiring),
        **fields,
    )


async def ended(show: Stage, task_ids: list[str]) -> None:
    await until(lambda: all(show.bus.row(name).status == status_pb2.TASK_STATUS_SUCCEEDED for name in task_ids))


def test_runs_everything_that_comes_and_stops_when_told() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        first = [await show.submit() for _ in range(10)]
        crew = worker(show, max_tasks=3)
        running = asyncio.create_task(crew.run())
        await ended(show, first)
        later = await show.submit()
        await ended(show, [later])
        crew.stop()
        await running
        assert crew.running == 0
        assert show.engine.count("report") == 11

    play(scenario())


def test_a_stopped_worker_leaves_its_task_to_the_next() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        show = stage(SPECS, {**SCRIPTS, "code": held(gate, SCRIPTS["report"])}, PLAN)
        task_id = await show.submit()
        crew = worker(show, drain_limit=timedelta(milliseconds=20))
        running = asyncio.create_task(crew.run())
        await until(lambda: show.engine.count("code") == 1)
        crew.stop()
        await running
        assert show.bus.row(task_id).status == status_pb2.TASK_STATUS_RUNNING
        show.engine.scripts["code"] = SCRIPTS["code"]
        second = worker(show)
        running = asyncio.create_task(second.run())
        await ended(show, [task_id])
        second.stop()
        await running
        assert show.engine.count("parse") == 1

    play(scenario())


class Broken:
    """A runner with a defect."""

    def __init__(self, error: Exception, times: int, inner: TaskRunner) -> None:
        self.error, self.left, self.inner, self.runs = error, times, inner, 0

    async def run(self, task_id: str) -> TaskState:
        self.runs += 1
        if self.left:
            self.left -= 1
            raise self.error
        return await self.inner.run(task_id)


def test_a_full_disk_is_survived() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        runner = Broken(StorageFull("no space"), 1, TaskRunner(show.wiring))
        task_id = await show.submit()
        crew = worker(show, runner)
        running = asyncio.create_task(crew.run())
        await ended(show, [task_id])
        crew.stop()
        await running
        assert runner.runs == 2

    play(scenario())


def test_a_lease_that_cannot_be_renewed_just_now_is_renewed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        show = stage(SPECS, {**SCRIPTS, "code": held(gate, output(total=6.5))}, PLAN)
        renew, tries = show.bus.renew, 0

        async def unreliable(lease: Lease, *, duration: timedelta) -> Lease:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise StorageFull("no space")
            return await renew(lease, duration=duration)

        monkeypatch.setattr(show.bus, "renew", unreliable)
        task_id = await show.submit()
        crew = worker(show, lease_duration=timedelta(milliseconds=30))
        running = asyncio.create_task(crew.run())
        await until(lambda: tries > 2)
        gate.set()
        await ended(show, [task_id])
        crew.stop()
        await running
        assert show.engine.count("code") == 1

    play(scenario())


def test_a_defect_that_stays_fails_the_task() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        runner = Broken(RuntimeError("a bug"), 99, TaskRunner(show.wiring))
        task_id = await show.submit()
        crew = worker(show, runner, max_crashes=2)
        running = asyncio.create_task(crew.run())
        await until(lambda: show.bus.row(task_id).status == status_pb2.TASK_STATUS_FAILED)
        crew.stop()
        await running
        state = await show.state(task_id)
        assert state.error is not None
        assert "a bug" in state.error.message

    play(scenario())


def test_a_lost_lease_stops_the_run() -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": held(asyncio.Event(), None)}, PLAN)
        task_id = await show.submit()
        crew = worker(show, lease_duration=timedelta(milliseconds=30))
        running = asyncio.create_task(crew.run())
        await until(lambda: show.engine.count("code") == 1)
        show.clock.advance(minutes=1)
        taken = await show.bus.lease("w2", duration=timedelta(hours=1))
        assert taken is not None
        assert taken.task_id == task_id
        await until(lambda: crew.running == 0)
        assert show.engine.active == 0
        crew.stop()
        await running

    play(scenario())


def test_the_sweeper_wakes_a_task_whose_device_is_back() -> None:
    async def scenario() -> None:
        show, online = device_stage()
        task_id = await show.submit(device_id="pi-1")
        crew = worker(show)
        running = asyncio.create_task(crew.run())
        await until(lambda: show.bus.row(task_id).status == status_pb2.TASK_STATUS_WAITING_DEVICE)
        online.add("pi-1")
        await ended(show, [task_id])
        crew.stop()
        await running

    play(scenario())
