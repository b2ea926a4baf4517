"""Watching: nothing is missed and nothing comes twice, wherever it starts."""

import asyncio

from conductor.bus import EventBus
from tests.contract.bus.conftest import OpenBus
from tests.contract.bus.scenario import RUNNING, accepted, in_loop, step


async def _take(bus: EventBus, task_id: str, count: int, after_sequence: int = 0) -> list[int]:
    taken = []
    events = bus.watch(task_id, after_sequence=after_sequence)
    async for event in events:
        taken.append(event.header.sequence)
        if len(taken) == count:
            break
    await events.aclose()
    return taken


@in_loop
async def test_a_watcher_sees_what_was_and_what_comes(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        await bus.append(task_id, [step(task_id)], expected_sequence=1, status=RUNNING)
        watching = asyncio.create_task(_take(bus, task_id, 200))
        for sequence in range(2, 200):
            await bus.append(task_id, [step(task_id)], expected_sequence=sequence, status=RUNNING)
        assert await watching == list(range(1, 201))


@in_loop
async def test_watching_resumes_after_a_sequence_number(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        await bus.append(task_id, [step(task_id) for _ in range(9)], expected_sequence=1, status=RUNNING)
        assert await _take(bus, task_id, 4, after_sequence=6) == [7, 8, 9, 10]


@in_loop
async def test_many_watchers_of_many_tasks_each_see_their_own(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        ids = [(await bus.accept(accepted())).task_id for _ in range(5)]
        watching = [asyncio.create_task(_take(bus, task_id, 31)) for task_id in ids for _ in range(4)]

        async def fill(task_id: str) -> None:
            for sequence in range(1, 31):
                await bus.append(task_id, [step(task_id)], expected_sequence=sequence, status=RUNNING)

        await asyncio.gather(*map(fill, ids))
        assert await asyncio.gather(*watching) == [list(range(1, 32))] * 20
