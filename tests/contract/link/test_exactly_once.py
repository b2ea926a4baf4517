"""5,000 messages over 50 breaks of random kinds, and over servers that are killed: once in effect, in order."""

import asyncio
import os
import random
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

from podium.errors import PodiumError
from podium.link.liveness import Heartbeats
from podium.link.reconnecting import Backoff
from tests.contract.link.faults import BREAKS as BREAKING
from tests.contract.link.faults import HINDRANCES
from tests.contract.link.hub_process import effects_in
from tests.contract.link.processes import HubProcess
from tests.contract.link.users import USERS, Rig
from tests.fakes.proxy import FaultProxy

pytestmark = pytest.mark.slow

MESSAGES = 5_000
BREAKS = 50
KILLS = 8
HURRIED = Heartbeats(interval=timedelta(seconds=0.1))
"""Nothing else differs from what a device does; with 25 s of silence 50 breaks would take 20 minutes."""
QUICK = Backoff(first=timedelta(milliseconds=20), longest=timedelta(milliseconds=200))
WITHIN = timedelta(seconds=30)


def _seed() -> int:
    """One that differs at every run; LINK_SEED repeats one."""
    seed = int(os.environ.get("LINK_SEED", "0")) or time.time_ns() % 1_000_000
    print(f"seed {seed}")  # noqa: T201 - to run the same again
    return seed


async def _break_again_and_again(rig: Rig, proxy: FaultProxy, jitter: random.Random) -> list[str]:
    """50 breaks with 100 messages each, some before the break and some in it; what was done."""
    sending: list[asyncio.Task[None]] = []
    kinds = []
    share = MESSAGES // BREAKS
    loop = asyncio.get_running_loop()
    for number in range(BREAKS):
        await rig.connected(within=WITHIN)
        began_s = loop.time()
        before = jitter.randrange(share + 1)
        first = number * share + 1
        if jitter.random() < 0.3:
            proxy.break_with(jitter.choice(HINDRANCES), bytes_per_s=20_000, delay_s=0.02)
        sending += [loop.create_task(rig.machine.send(one)) for one in range(first, first + before)]
        await asyncio.sleep(jitter.uniform(0, 0.1))
        fault = jitter.choice(BREAKING)
        kinds.append(fault.name)
        proxy.break_with(fault, after_bytes=jitter.randrange(1, 500))
        sending += [loop.create_task(rig.machine.send(one)) for one in range(first + before, first + share)]
        await rig.state_after(began_s, "not connected", within=WITHIN)
        proxy.heal()
    async with asyncio.timeout(WITHIN.total_seconds()):
        await asyncio.gather(*sending)
    return kinds


async def _scenario(user: str, seed: int) -> None:
    jitter = random.Random(seed)
    rig = Rig(user, seed=seed, heartbeats=HURRIED, backoff=QUICK)
    async with rig, FaultProxy(rig.target) as proxy:
        rig.target = proxy.address
        rig.start()
        began_s = time.monotonic()
        kinds = await _break_again_and_again(rig, proxy, jitter)
        lost = sum(state.startswith("not connected") for _, state in rig.states)
        counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        print(  # noqa: T201 - what was done, beside the seed
            f"{user}: {MESSAGES} messages over {lost} breaks, {time.monotonic() - began_s:.0f} s; {counts}"
        )
        assert rig.server.effects == list(range(1, MESSAGES + 1))
        assert lost >= BREAKS


def test_every_message_has_its_effect_once_and_in_order() -> None:
    seed = _seed()

    async def of_all_users() -> None:
        await asyncio.gather(*(_scenario(user, seed + place) for place, user in enumerate(USERS)))

    asyncio.run(of_all_users())


def test_over_servers_that_are_killed_every_message_has_its_effect_once_and_in_order(tmp_path: Path) -> None:
    seed = _seed()
    count = 1_000

    async def scenario() -> None:
        jitter = random.Random(seed)
        loop = asyncio.get_running_loop()
        async with Rig("device", seed=seed, backoff=QUICK) as rig, FaultProxy(rig.target) as proxy:
            rig.target = proxy.address
            sending: list[asyncio.Task[None]] = []
            share = count // (KILLS + 1)
            for number in range(KILLS + 1):
                last = count + 1 if number == KILLS else (number + 1) * share + 1
                async with HubProcess(tmp_path) as server:
                    proxy.target = server.target
                    if number == 0:
                        rig.start()
                    sending += [loop.create_task(rig.machine.send(one)) for one in range(number * share + 1, last)]
                    if number < KILLS:
                        # Anywhere: while it greets, while it applies, while it acknowledges.
                        await asyncio.sleep(jitter.uniform(0, 0.6))
                        server.signal(signal.SIGKILL)
                    else:
                        async with asyncio.timeout(60):
                            await asyncio.gather(*sending)
            assert effects_in(tmp_path) == list(range(1, count + 1))

    asyncio.run(scenario())


def test_of_two_processes_with_one_name_the_replaced_one_is_refused_and_the_other_stays() -> None:
    async def scenario() -> None:
        contested: list[str] = []
        async with Rig("device", seed=1, backoff=QUICK) as one:
            hub = one.server.hub  # type: ignore[attr-defined]
            hub._on_contested = contested.append
            one.start()
            await one.machine.send(1)
            async with Rig("device", seed=2, backoff=QUICK) as two:
                two.target = one.server_target
                two.start()
                await two.machine.send(2)
                assert one._running is not None
                await asyncio.wait({one._running}, timeout=20)
                error = one._running.exception()
                assert isinstance(error, PodiumError)
                assert error.code == "CERTIFICATE_SHARED"
                assert contested == ["machine-1"]
                await two.machine.send(3)
                assert not any(state.startswith("not connected") for _, state in two.states)
                one._running = None
            assert one.server.effects == [1, 2, 3]

    asyncio.run(scenario())
