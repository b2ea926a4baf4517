"""The queue and the effects: one worker a task, nothing forgotten, nothing done twice."""

import asyncio
import random
import sys
from collections import Counter
from datetime import timedelta

import pytest

from conductor.bus import EventBus, Lease
from podium.errors import VersionConflict
from podium.v1 import status_pb2
from tests.contract.bus.conftest import OpenBus
from tests.contract.bus.scenario import LEASE, RUNNING, SUCCEEDED, WAITING, Clock, accepted, in_loop, step


async def _leased(bus: EventBus, worker_id: str) -> Lease:
    lease = await bus.lease(worker_id, duration=LEASE)
    assert lease is not None
    return lease


@in_loop
async def test_a_held_task_is_given_to_nobody_else(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        lease = await _leased(bus, "a")
        assert (lease.task_id, lease.worker_id) == (task_id, "a")
        assert lease.expire_time == clock() + LEASE
        assert await bus.lease("b", duration=LEASE) is None
        assert await bus.lease("a", duration=LEASE) is None


@in_loop
async def test_many_workers_share_many_tasks_without_overlap(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        ids = {(await bus.accept(accepted())).task_id for _ in range(40)}
        leases = await asyncio.gather(*(bus.lease(f"worker{n % 7}", duration=LEASE) for n in range(60)))
        held = [lease.task_id for lease in leases if lease is not None]
        assert len(held) == 40
        assert set(held) == ids


@in_loop
async def test_a_lapsed_lease_passes_on_and_the_first_holder_learns_it(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        await bus.accept(accepted())
        first = await _leased(bus, "a")
        clock.advance(seconds=29)
        first = await bus.renew(first, duration=LEASE)
        clock.advance(seconds=29)
        assert await bus.lease("b", duration=LEASE) is None
        clock.advance(seconds=2)
        second = await _leased(bus, "b")
        assert second.task_id == first.task_id
        with pytest.raises(VersionConflict):
            await bus.renew(first, duration=LEASE)
        await bus.release(first)  # not the holder: changes nothing
        assert await bus.lease("c", duration=LEASE) is None


@in_loop
async def test_a_lapsed_lease_can_be_renewed_while_nobody_took_the_task(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        await bus.accept(accepted())
        lease = await _leased(bus, "a")
        clock.advance(hours=1)
        await bus.renew(lease, duration=LEASE)
        assert await bus.lease("b", duration=LEASE) is None


@in_loop
async def test_a_clock_that_jumps_back_neither_loses_nor_doubles_a_task(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        await bus.accept(accepted())
        await _leased(bus, "a")
        clock.advance(hours=-3)
        assert await bus.lease("b", duration=LEASE) is None
        clock.advance(seconds=31)  # the lease has been held for its 30 s, whatever the wall clock says
        assert await bus.lease("b", duration=LEASE) is not None
        assert await bus.lease("c", duration=LEASE) is None


@in_loop
async def test_a_released_task_is_leased_again_only_while_it_is_runnable(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        lease = await _leased(bus, "a")
        await bus.append(task_id, [step(task_id)], expected_sequence=1, status=RUNNING)
        await bus.release(lease)
        lease = await _leased(bus, "b")
        await bus.append(task_id, [step(task_id)], expected_sequence=2, status=WAITING)
        await bus.release(lease)
        assert await bus.lease("c", duration=LEASE) is None
        await bus.append(task_id, [step(task_id)], expected_sequence=3, status=RUNNING)
        lease = await _leased(bus, "c")
        await bus.append(task_id, [step(task_id)], expected_sequence=4, status=SUCCEEDED)
        await bus.release(lease)
        assert await bus.lease("d", duration=LEASE) is None


@in_loop
async def test_urgent_tasks_go_first_then_the_oldest(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        low = (await bus.accept(accepted(priority=status_pb2.PRIORITY_LOW))).task_id
        first = (await bus.accept(accepted())).task_id
        second = (await bus.accept(accepted(priority=status_pb2.PRIORITY_UNSPECIFIED))).task_id
        high = (await bus.accept(accepted(priority=status_pb2.PRIORITY_HIGH))).task_id
        order = [(await _leased(bus, "a")).task_id for _ in range(4)]
        assert order == [high, first, second, low]


@in_loop
async def test_a_caller_with_many_tasks_does_not_starve_another(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        many = [(await bus.accept(accepted(caller="ann"))).task_id for _ in range(100)]
        one = (await bus.accept(accepted(caller="bob"))).task_id
        # Both have nothing running, so the oldest goes first; then the one who has nothing running.
        assert [(await _leased(bus, "a")).task_id for _ in range(2)] == [many[0], one]
        another = (await bus.accept(accepted(caller="carl"))).task_id
        assert (await _leased(bus, "a")).task_id == another
        assert [(await _leased(bus, "a")).task_id for _ in range(3)] == many[1:4]
        # Four of hers run and one of his: his next ones go before hers until he has as many.
        his = [(await bus.accept(accepted(caller="bob"))).task_id for _ in range(5)]
        assert [(await _leased(bus, "a")).task_id for _ in range(3)] == his[:3]
        assert (await _leased(bus, "a")).task_id == many[4]


@in_loop
async def test_urgency_goes_before_fairness(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        urgent = [
            (await bus.accept(accepted(caller="ann", priority=status_pb2.PRIORITY_HIGH))).task_id for _ in range(3)
        ]
        other = (await bus.accept(accepted(caller="bob"))).task_id
        assert [(await _leased(bus, "a")).task_id for _ in range(4)] == [*urgent, other]


@in_loop
async def test_only_what_runs_counts_against_a_caller(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        hers = [(await bus.accept(accepted(caller="ann"))).task_id for _ in range(6)]
        leases = [await _leased(bus, "a") for _ in range(4)]
        his = [(await bus.accept(accepted(caller="bob"))).task_id for _ in range(3)]
        # One of hers ends without being given back, one waits for somebody, one is given back.
        await bus.append(hers[0], [step(hers[0])], expected_sequence=1, status=SUCCEEDED)
        await bus.append(hers[1], [step(hers[1])], expected_sequence=1, status=WAITING)
        await bus.append(hers[2], [step(hers[2])], expected_sequence=1, status=SUCCEEDED)
        await bus.release(leases[2])
        assert (await _leased(bus, "a")).task_id == his[0]
        # Now one of each runs: the oldest goes first.
        assert (await _leased(bus, "a")).task_id == hers[4]
        clock.advance(seconds=31)
        # Every lease has lapsed, so nothing runs, and the tasks of the dead wait in their old places.
        assert [(await _leased(bus, "b")).task_id for _ in range(3)] == [hers[3], his[0], hers[4]]


@in_loop
async def test_whatever_comes_and_goes_the_turn_is_kept(open_bus: OpenBus) -> None:
    """Against a model: every lease given is one that the rule allows."""
    seed = random.randrange(1 << 32)
    sys.stdout.write(f"seed {seed}\n")
    draw = random.Random(seed)
    async with open_bus() as bus:
        waiting: list[tuple[str, str, int]] = []
        held: dict[str, tuple[str, Lease]] = {}
        for _ in range(400):
            match draw.randrange(3):
                case 0:
                    caller, priority = draw.choice("abcde"), draw.choice((1, 2, 2, 2, 3))
                    task_id = (await bus.accept(accepted(caller=caller, priority=priority))).task_id
                    waiting.append((task_id, caller, priority))
                case 1 if waiting:
                    lease = await _leased(bus, "w")
                    running = Counter(caller for caller, _ in held.values())
                    due = min(waiting, key=lambda task: (-task[2], running[task[1]]))  # the first of equals
                    assert lease.task_id == due[0]
                    waiting.remove(due)
                    held[due[0]] = (due[1], lease)
                case 2 if held:
                    task_id, (_, lease) = draw.choice(list(held.items()))
                    await bus.append(task_id, [step(task_id)], expected_sequence=1, status=SUCCEEDED)
                    await bus.release(lease)
                    del held[task_id]


@in_loop
async def test_waiting_ends_when_there_is_work_and_after_the_timeout(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        assert await bus.lease("a", duration=LEASE) is None
        await bus.wait_for_work(timeout=timedelta(milliseconds=1))
        waiting = asyncio.create_task(bus.wait_for_work(timeout=timedelta(seconds=50)))
        task_id = (await bus.accept(accepted())).task_id
        await waiting

        lease = await _leased(bus, "a")
        await bus.append(task_id, [step(task_id)], expected_sequence=1, status=WAITING)
        await bus.release(lease)
        assert await bus.lease("a", duration=LEASE) is None
        await bus.append(task_id, [step(task_id)], expected_sequence=2, status=RUNNING)
        await bus.wait_for_work(timeout=timedelta(seconds=50))  # told before it waited, and not forgotten
        assert await bus.lease("a", duration=LEASE) is not None


@in_loop
async def test_work_that_comes_while_others_look_wakes_somebody(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        done: list[str] = []

        async def work(worker_id: str) -> None:
            while len(done) < 60:
                lease = await bus.lease(worker_id, duration=LEASE)
                if lease is None:
                    await bus.wait_for_work(timeout=timedelta(seconds=50))
                    continue
                await bus.append(lease.task_id, [step(lease.task_id)], expected_sequence=1, status=SUCCEEDED)
                done.append(lease.task_id)
                await bus.release(lease)

        async def hand_in() -> None:
            for _ in range(60):
                await bus.accept(accepted())

        await asyncio.gather(hand_in(), *(work(f"worker{n}") for n in range(4)))
        assert len(set(done)) == len(done) == 60


@in_loop
async def test_an_effect_is_recorded_once(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        assert await bus.effect("task/3") is None
        assert await bus.record_effect("task/3", b"first") == b"first"
        assert await bus.record_effect("task/3", b"second") == b"first"
        assert await bus.effect("task/3") == b"first"
        outcomes = await asyncio.gather(*(bus.record_effect("other", str(n).encode()) for n in range(20)))
        assert len(set(outcomes)) == 1
        assert await bus.record_effect("empty", b"") == b""
        assert await bus.effect("empty") == b""
