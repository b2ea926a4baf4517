"""The log: what is accepted stays, in order, once."""

import asyncio

import pytest

from conductor.bus import Durability
from podium.errors import LimitExceeded, NotFound, VersionConflict
from tests.contract.bus.conftest import OpenBus
from tests.contract.bus.scenario import RUNNING, SUCCEEDED, WAITING, Clock, accepted, in_loop, step


@in_loop
async def test_an_accepted_task_can_be_read_and_found(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        event = accepted("compare 华东 and 华南")
        acceptance = await bus.accept(event)

        assert not acceptance.duplicate
        assert acceptance.task_id == event.header.task_id
        assert await bus.find_request("ann", event.task_accepted.request_id) == acceptance.task_id
        assert await bus.find_request("ann", "never seen") is None
        assert await bus.find_request("bob", event.task_accepted.request_id) is None
        (stored,) = await bus.read(acceptance.task_id)
        assert stored.header.sequence == 1
        assert stored.task_accepted == event.task_accepted


@in_loop
async def test_the_same_request_is_the_same_task(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        first = await bus.accept(accepted("once", request_id="r"))
        again = await bus.accept(accepted("twice", request_id="r"))

        assert (again.task_id, again.duplicate) == (first.task_id, True)
        assert [row.task_id for row in await bus.rows(limit=10)] == [first.task_id]
        (stored,) = await bus.read(first.task_id)
        assert stored.task_accepted.text == "once"


@in_loop
async def test_the_same_request_at_the_same_moment_is_one_task(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        outcomes = await asyncio.gather(*(bus.accept(accepted(request_id=f"r{n % 5}")) for n in range(100)))

        assert len({outcome.task_id for outcome in outcomes}) == 5
        assert sum(not outcome.duplicate for outcome in outcomes) == 5
        assert len(await bus.rows(limit=100)) == 5


@in_loop
async def test_one_request_id_of_two_callers_is_two_tasks(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        first = await bus.accept(accepted("hers", request_id="r", caller="ann"))
        second = await bus.accept(accepted("his", request_id="r", caller="bob"))
        again = await bus.accept(accepted("hers again", request_id="r", caller="ann"))

        assert not second.duplicate
        assert second.task_id != first.task_id
        assert (again.task_id, again.duplicate) == (first.task_id, True)
        assert await bus.find_request("bob", "r") == second.task_id
        assert [await bus.caller_of(task.task_id) for task in (first, second)] == ["ann", "bob"]


@in_loop
async def test_a_caller_may_have_so_many_open_tasks_and_no_more(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        outcomes = await asyncio.gather(
            *(bus.accept(accepted(request_id=f"r{n}"), open_limit=7) for n in range(50)), return_exceptions=True
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert [type(outcome) for outcome in refused] == [LimitExceeded] * 43
        assert len(await bus.rows(limit=100)) == 7

        (first, *_) = [row for row in await bus.rows(limit=100) if row.request_id == "r0"]
        assert (await bus.accept(accepted(request_id="r0"), open_limit=7)).duplicate
        assert not (await bus.accept(accepted(caller="bob"), open_limit=7)).duplicate
        await bus.append(first.task_id, [step(first.task_id)], expected_sequence=1, status=WAITING)
        with pytest.raises(LimitExceeded):
            await bus.accept(accepted(), open_limit=7)
        await bus.append(first.task_id, [step(first.task_id)], expected_sequence=2, status=SUCCEEDED)
        assert not (await bus.accept(accepted(), open_limit=7)).duplicate


@in_loop
async def test_appends_number_the_events_without_gaps(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        last = await bus.append(
            task_id, [step(task_id), step(task_id, "coder")], expected_sequence=1, status=RUNNING
        )
        last = await bus.append(
            task_id,
            [step(task_id, "executor")],
            expected_sequence=last,
            status=RUNNING,
            durability=Durability.SYNCED,
        )

        events = await bus.read(task_id)
        assert [event.header.sequence for event in events] == [1, 2, 3, 4]
        assert [event.step_started.agent for event in events[1:]] == ["parser", "coder", "executor"]
        assert [event.header.sequence for event in await bus.read(task_id, after_sequence=2)] == [3, 4]
        assert list(await bus.read(task_id, after_sequence=4)) == []
        assert list(await bus.read(task_id, after_sequence=2**63)) == []


@in_loop
async def test_an_append_to_an_old_version_is_refused_and_writes_nothing(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        await bus.append(task_id, [step(task_id)], expected_sequence=1, status=RUNNING)

        for wrong in (0, 1, 3):
            with pytest.raises(VersionConflict):
                await bus.append(task_id, [step(task_id)], expected_sequence=wrong, status=SUCCEEDED)

        assert len(await bus.read(task_id)) == 2
        assert [row.status for row in await bus.rows(limit=1)] == [RUNNING]


@in_loop
async def test_of_many_appends_to_one_version_exactly_one_wins(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        outcomes = await asyncio.gather(
            *(
                bus.append(task_id, [step(task_id, f"agent{n}")], expected_sequence=1, status=RUNNING)
                for n in range(50)
            ),
            return_exceptions=True,
        )

        assert sum(outcome == 2 for outcome in outcomes) == 1
        assert sum(isinstance(outcome, VersionConflict) for outcome in outcomes) == 49
        assert len(await bus.read(task_id)) == 2


@in_loop
async def test_what_is_not_there_is_not_found(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        with pytest.raises(NotFound):
            await bus.read("nobody")
        with pytest.raises(NotFound):
            await bus.read("nobody", after_sequence=3)
        with pytest.raises(NotFound):
            await bus.append("nobody", [step("nobody")], expected_sequence=0, status=RUNNING)
        with pytest.raises(NotFound):
            await anext(bus.watch("nobody"))
        with pytest.raises(NotFound):
            await bus.rows(limit=3, before="nobody")
        with pytest.raises(NotFound):
            await bus.caller_of("nobody")


@in_loop
async def test_a_status_can_change_without_an_event(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted())).task_id
        assert await bus.append(task_id, [], expected_sequence=1, status=WAITING) == 1
        assert [row.status for row in await bus.rows(limit=1)] == [WAITING]


@in_loop
async def test_lists_are_newest_first_by_page_and_by_status(open_bus: OpenBus, clock: Clock) -> None:
    async with open_bus() as bus:
        ids = [(await bus.accept(accepted(f"question {n}", device_id="pi"))).task_id for n in range(5)]
        clock.advance(seconds=1)
        await bus.append(ids[1], [step(ids[1])], expected_sequence=1, status=SUCCEEDED)
        await bus.append(ids[3], [step(ids[3])], expected_sequence=1, status=WAITING)

        first = await bus.rows(limit=2)
        rest = await bus.rows(limit=10, before=first[-1].task_id)
        assert [row.task_id for row in [*first, *rest]] == ids[::-1]
        assert first[1].last_sequence == 2
        assert first[1].update_time > first[1].create_time
        assert (first[0].text, first[0].device_id) == ("question 4", "pi")
        chosen = await bus.rows(statuses=[SUCCEEDED, WAITING], limit=10)
        assert [row.task_id for row in chosen] == [ids[3], ids[1]]
        assert [row.task_id for row in await bus.rows(statuses=[SUCCEEDED], limit=9, before=ids[3])] == [ids[1]]


@in_loop
async def test_lists_of_one_caller_know_nothing_of_others(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        ids = [(await bus.accept(accepted(caller=("ann", "bob")[n % 2]))).task_id for n in range(6)]
        await bus.append(ids[2], [step(ids[2])], expected_sequence=1, status=SUCCEEDED)

        hers = await bus.rows(caller="ann", limit=2)
        rest = await bus.rows(caller="ann", limit=9, before=hers[-1].task_id)
        assert [row.task_id for row in [*hers, *rest]] == [ids[4], ids[2], ids[0]]
        assert {row.caller for row in hers} == {"ann"}
        chosen = await bus.rows(caller="ann", statuses=[SUCCEEDED], limit=9)
        assert [row.task_id for row in chosen] == [ids[2]]
        assert list(await bus.rows(caller="carl", limit=9)) == []
        assert [row.caller for row in await bus.rows(limit=2)] == ["bob", "ann"]
        with pytest.raises(NotFound):
            await bus.rows(caller="ann", limit=9, before=ids[1])
        with pytest.raises(NotFound):
            await bus.rows(caller="carl", limit=9, before=ids[1])


@pytest.mark.parametrize("text", ["a\0b", "\0", "🧾 发票 🇨🇳", "e\u0301", "x" * 20_000, "'; DROP TABLE events; --"])
@in_loop
async def test_any_text_comes_back_as_it_was(open_bus: OpenBus, text: str) -> None:
    async with open_bus() as bus:
        task_id = (await bus.accept(accepted(text))).task_id
        (stored,) = await bus.read(task_id)
        (row,) = await bus.rows(limit=1)
        assert stored.task_accepted.text == text
        assert row.text == text


@in_loop
async def test_ten_thousand_events_of_many_tasks_stay_apart(open_bus: OpenBus) -> None:
    async with open_bus() as bus:
        ids = [(await bus.accept(accepted())).task_id for _ in range(20)]

        async def fill(task_id: str) -> None:
            last = 1
            for _ in range(50):
                batch = [step(task_id, agent=task_id[:8], index=n) for n in range(10)]
                last = await bus.append(task_id, batch, expected_sequence=last, status=RUNNING)

        await asyncio.gather(*map(fill, ids))
        for task_id in ids:
            events = await bus.read(task_id)
            assert [event.header.sequence for event in events] == list(range(1, 502))
            assert {event.step_started.agent for event in events[1:]} == {task_id[:8]}
