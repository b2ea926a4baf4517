"""What can happen to a way between a machine and its server, played through the proxy."""

import asyncio
import signal
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from podium.link.liveness import DEFAULT_HEARTBEATS
from tests.contract.link.hub_process import effects_in
from tests.contract.link.processes import HubProcess
from tests.contract.link.users import Rig, until
from tests.fakes.proxy import Fault, FaultProxy

NOTICED_WITHIN = timedelta(seconds=30)
RECOVERED_WITHIN = timedelta(seconds=60)
BREAKS = (Fault.BLACK_HOLE, Fault.SILENT, Fault.RESET, Fault.REFUSE, Fault.CUT, Fault.HALF_CLOSE)
HINDRANCES = (Fault.DELAY, Fault.THROTTLE)
MESSAGES = 6


@dataclass(kw_only=True)
class Outcome:
    """How one fault went."""

    name: str
    machine_noticed_s: float = 0.0
    server_noticed_s: float = 0.0
    recovered_s: float = 0.0
    took_s: float = 0.0
    effects: list[int] = field(default_factory=list)
    breaks: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name}: noticed by the machine after {self.machine_noticed_s:.1f} s, by the server after "
            f"{self.server_noticed_s:.1f} s; back {self.recovered_s:.1f} s after the end of it; "
            f"{self.breaks} connections lost"
        )


async def break_off(user: str, fault: Fault) -> Outcome:
    """Break a connection that messages are on, wait until both sides know, mend it, wait for what was sent."""
    outcome = Outcome(name=f"{user}, {fault.value}")
    loop = asyncio.get_running_loop()
    async with Rig(user) as rig, FaultProxy(rig.target) as proxy:
        rig.target = proxy.address
        rig.start()
        half = MESSAGES // 2
        await asyncio.gather(*(rig.machine.send(number) for number in range(1, half + 1)))
        began_s = loop.time()
        proxy.break_with(fault, after_bytes=1)
        sending = [asyncio.create_task(rig.machine.send(number)) for number in range(half + 1, MESSAGES + 1)]
        accepted = proxy.accepted

        def server_noticed() -> bool:
            return not rig.server.online() or proxy.accepted > accepted

        limit = RECOVERED_WITHIN  # the figures are judged by the test, which names them
        outcome.machine_noticed_s, outcome.server_noticed_s = await asyncio.gather(
            rig.state_after(began_s, "not connected", within=limit), until(server_noticed, within=limit)
        )
        proxy.heal()
        healed_s = loop.time()
        async with asyncio.timeout(RECOVERED_WITHIN.total_seconds()):
            await asyncio.gather(*sending)
        outcome.recovered_s = loop.time() - healed_s
        outcome.breaks = sum(state.startswith("not connected") for _, state in rig.states)
        outcome.effects = list(rig.server.effects)
    return outcome


async def hinder(user: str, fault: Fault, *, size_bytes: int, seconds: float) -> Outcome:
    """Send a large message over a bad way and stay on it for a while: it must arrive over one connection."""
    outcome = Outcome(name=f"{user}, {fault.value}")
    loop = asyncio.get_running_loop()
    async with Rig(user) as rig, FaultProxy(rig.target) as proxy:
        rig.target = proxy.address
        proxy.break_with(fault, bytes_per_s=2000, delay_s=0.5)
        rig.start()
        began_s = loop.time()
        async with asyncio.timeout(100):
            for number in range(1, MESSAGES + 1):
                await rig.machine.send(number, size_bytes if number == 1 else 0)
                if number == 1:
                    outcome.took_s = loop.time() - began_s
            await asyncio.sleep(max(0.0, began_s + seconds - loop.time()))  # idle, longer than silence is borne
        outcome.breaks = sum(state.startswith("not connected") for _, state in rig.states)
        outcome.effects = list(rig.server.effects)
    return outcome


async def stopped_server() -> Outcome:
    """A server that is stopped behind a live kernel: TCP acknowledges, and nothing answers."""
    outcome = Outcome(name="device, server process stopped")
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        async with HubProcess(Path(folder)) as server, Rig("device") as rig:
            rig.target = server.target
            rig.start()
            await asyncio.gather(*(rig.machine.send(number) for number in (1, 2, 3)))
            server.signal(signal.SIGSTOP)
            began_s = loop.time()
            sending = [asyncio.create_task(rig.machine.send(number)) for number in (4, 5, 6)]
            outcome.machine_noticed_s = await rig.state_after(began_s, "not connected", within=RECOVERED_WITHIN)
            server.signal(signal.SIGCONT)
            woken_s = loop.time()
            async with asyncio.timeout(RECOVERED_WITHIN.total_seconds()):
                await asyncio.gather(*sending)
            outcome.recovered_s = loop.time() - woken_s
            outcome.breaks = sum(state.startswith("not connected") for _, state in rig.states)
            outcome.effects = effects_in(Path(folder))
    return outcome


IDLE_S = (DEFAULT_HEARTBEATS.silence + timedelta(seconds=5)).total_seconds()
