"""Silence and reconnecting: when one gives up, when one tries again, and how long one waits."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from podium.errors import InternalError, ServerUnavailable
from podium.link import Address
from podium.link.liveness import DEFAULT_HEARTBEATS, Heartbeats, Patience, PeerSilent, ready_or_due
from podium.link.reconnecting import Backoff, Connection, Reconnecting
from tests.contract.bus.scenario import in_loop

BEATS = Heartbeats(interval=timedelta(milliseconds=10))


def test_silence_is_noticed_within_30_s_by_default() -> None:
    assert DEFAULT_HEARTBEATS.silence + DEFAULT_HEARTBEATS.interval / 2 <= timedelta(seconds=30)
    assert DEFAULT_HEARTBEATS.silence >= 3 * DEFAULT_HEARTBEATS.interval


def test_what_fits_into_the_silence_that_is_borne_is_not_announced() -> None:
    beats = DEFAULT_HEARTBEATS
    assert beats.to_announce(100) == 0
    assert beats.to_announce(20_000) == 20_000
    assert beats.announced_from_bytes / beats.slowest_bytes_per_s < beats.silence.total_seconds()


@in_loop
async def test_nothing_heard_is_silence_and_another_timeout_is_not() -> None:
    async def silence() -> None:
        async with Patience(who="the cloud", first=timedelta(milliseconds=20)):
            await asyncio.Event().wait()

    with pytest.raises(PeerSilent, match="nothing was heard of the cloud"):
        await silence()

    async def another() -> None:
        async with Patience(who="the cloud", first=timedelta(seconds=20)), asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await another()


@in_loop
async def test_an_announced_message_is_waited_for_longer() -> None:
    loop = asyncio.get_running_loop()
    async with Patience(who="the cloud", first=timedelta(seconds=1)) as patience:
        patience.heard(DEFAULT_HEARTBEATS, 20_000)
        assert patience._limit.when() == pytest.approx(loop.time() + 25 + 20, abs=0.5)
        patience.heard(DEFAULT_HEARTBEATS, 2**64 - 1)  # a lie: no message is that long
        limit_s = patience._limit.when()
        assert limit_s is not None
        assert limit_s < loop.time() + 2 * 3600
        patience.heard(None)
        assert patience._limit.when() is None


@in_loop
async def test_a_heartbeat_is_due_when_nothing_else_is() -> None:
    event = asyncio.Event()
    assert not await ready_or_due(event, timedelta(milliseconds=5))
    event.set()
    assert await ready_or_due(event, timedelta(milliseconds=5))
    assert await ready_or_due(event, None)


def test_the_wait_is_spread_over_all_of_a_ceiling_that_doubles() -> None:
    backoff, jitter = Backoff(), random.Random(1)
    for failures, ceiling_s in ((1, 0.5), (2, 1), (5, 8), (7, 30), (5_000, 30)):
        waits = [backoff.delay(failures, jitter).total_seconds() for _ in range(500)]
        assert max(waits) <= ceiling_s
        assert max(waits) > 0.9 * ceiling_s
        assert min(waits) < 0.15 * ceiling_s
        assert min(waits) >= 0.05


def _reconnecting(serve, addresses, states):
    return Reconnecting(
        lambda: addresses[-1],
        serve,
        jitter=random.Random(1),
        on_state=states.append,
        backoff=Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=5)),
    )


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


HERE = Address(target="127.0.0.1:1", ca_pem=None)
THERE = Address(target="127.0.0.1:2", ca_pem=None)


@in_loop
async def test_a_new_address_counts_at_once_also_in_the_middle_of_a_long_wait() -> None:
    addresses, states, tried = [HERE], [], []
    arrived = asyncio.Event()

    async def serve(connection: Connection) -> None:
        tried.append(connection.address)
        if connection.address == THERE:
            arrived.set()
            await asyncio.Event().wait()
        raise ServerUnavailable("nobody there")

    link = Reconnecting(
        lambda: addresses[-1],
        serve,
        jitter=random.Random(1),
        on_state=states.append,
        backoff=Backoff(first=timedelta(hours=1), longest=timedelta(hours=1), least=timedelta(hours=1)),
    )
    running = asyncio.create_task(link.run())
    await _until(lambda: bool(states))
    addresses.append(THERE)
    link.connect_anew()
    await asyncio.wait_for(arrived.wait(), 10)
    addresses.append(HERE)
    link.connect_anew()  # also while a connection is up
    await _until(lambda: len(tried) == 3)
    assert tried == [HERE, THERE, HERE]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@in_loop
async def test_failures_count_anew_after_a_connection_that_was_of_use() -> None:
    calls = 0

    async def serve(connection: Connection) -> None:
        nonlocal calls
        calls += 1
        connection.welcomed = True
        connection.progressed = calls == 3
        raise ServerUnavailable("it ended")

    with pytest.raises(ServerUnavailable, match="cannot be reached: it ended"):
        await _reconnecting(serve, [HERE], []).run(attempts=2)
    assert calls == 3 + 3  # two fail, the third was of use and counts as the first of four


@in_loop
async def test_a_defect_is_not_taken_for_a_broken_line() -> None:
    async def serve(connection: Connection) -> None:
        raise InternalError("a defect")

    with pytest.raises(InternalError):
        await _reconnecting(serve, [HERE], []).run()


@in_loop
async def test_being_cancelled_ends_the_connection() -> None:
    connections: list[Connection] = []

    async def serve(connection: Connection) -> None:
        connections.append(connection)
        await asyncio.Event().wait()

    running = asyncio.create_task(_reconnecting(serve, [HERE], []).run())
    await _until(lambda: bool(connections))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert connections[0].ended


@in_loop
async def test_being_cancelled_counts_also_in_the_moment_of_another_certificate() -> None:
    connections: list[Connection] = []

    async def serve(connection: Connection) -> None:
        connections.append(connection)
        await asyncio.Event().wait()

    link = _reconnecting(serve, [HERE], [])
    running = asyncio.create_task(link.run())
    await _until(lambda: bool(connections))
    link.connect_anew()
    running.cancel()
    await _until(running.done)
    assert running.cancelled()
    assert len(connections) == 1
