"""The same over a network of its own: two namespaces joined by a wire that is slowed, cut and renumbered."""

import asyncio
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.contract.link.faults import IDLE_S, RECOVERED_WITHIN, Outcome
from tests.contract.link.hub_process import effects_in
from tests.contract.link.processes import HubProcess, MachineProcess

_NUMBERS = itertools.count()
_NAME = "podium-server"
_PORT = 7000


@functools.cache
def why_not() -> str:
    """Why no network namespace can be made here; empty when one can."""
    for tool in ("ip", "tc", "mount"):
        if shutil.which(tool) is None:
            return f"there is no {tool} on this machine"
    name = f"pl{os.getpid()}x"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespace can be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return ""


@dataclass(kw_only=True)
class Network:
    """A machine's namespace and a server's, with a wire between them and a name for the server."""

    machine: str
    server: str
    prefix: str
    hosts: Path

    async def on(self, where: str, *command: str) -> None:
        await _run("ip", "netns", "exec", where, *command)

    def call_server(self, last: int) -> None:
        """Let the name stand for another address. In place: the file is mounted."""
        self.hosts.write_text(f"127.0.0.1 localhost\n{self.prefix}.{last} {_NAME}\n")

    @property
    def inside_machine(self) -> tuple[str, ...]:
        # `ip netns exec` gives the process mounts of its own.
        script = f'mount --bind {self.hosts} /etc/hosts && exec "$@"'
        return ("ip", "netns", "exec", self.machine, "sh", "-c", script, "sh")


@dataclass(kw_only=True)
class _Scene:
    network: Network
    machine: MachineProcess
    data: Path

    async def sent(self, *numbers: int) -> None:
        for number in numbers:
            await self.machine.until_says(f"done {number}", within=RECOVERED_WITHIN)

    async def broken(
        self, name: str, break_it: Callable[[], Awaitable[None]], mend: Callable[[], Awaitable[None]]
    ) -> Outcome:
        """One fault: noticed, mended, and everything there."""
        outcome = Outcome(name=name)
        loop = asyncio.get_running_loop()
        for number in (1, 2, 3):
            self.machine.send(number)
        await self.sent(1, 2, 3)
        began_s = loop.time()
        await break_it()
        for number in (4, 5, 6):
            self.machine.send(number)
        noticed_s = await self.machine.until_says("state not connected", after_s=began_s, within=RECOVERED_WITHIN)
        outcome.machine_noticed_s = noticed_s - began_s
        await mend()
        mended_s = loop.time()
        await self.sent(4, 5, 6)
        outcome.recovered_s = loop.time() - mended_s
        outcome.breaks = self.machine.breaks
        outcome.effects = effects_in(self.data)
        assert outcome.effects == [1, 2, 3, 4, 5, 6]
        return outcome


@asynccontextmanager
async def _scene(*, slow: bool = False) -> AsyncIterator[_Scene]:
    number = next(_NUMBERS)
    names = [f"pl{os.getpid()}{number}{end}" for end in "ms"]
    async with AsyncExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        network = Network(machine=names[0], server=names[1], prefix=f"10.231.{number}", hosts=folder / "hosts")
        network.call_server(2)
        for name in names:
            await _run("ip", "netns", "add", name)
            exits.push_async_callback(_run, "ip", "netns", "del", name)
        await _run(
            "ip",
            "link",
            "add",
            "wire",
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            "wire",
            "netns",
            names[1],
        )
        for name, last in zip(names, (1, 2), strict=True):
            await network.on(name, "ip", "addr", "add", f"{network.prefix}.{last}/24", "dev", "wire")
            await network.on(name, "ip", "link", "set", "wire", "up")
            await network.on(name, "ip", "link", "set", "lo", "up")
            if slow:
                limits = ("rate", "16kbit", "burst", "2000", "limit", "10000")
                await network.on(name, "tc", "qdisc", "add", "dev", "wire", "root", "tbf", *limits)
        inside = ("ip", "netns", "exec", network.server)
        await exits.enter_async_context(HubProcess(folder, listen=f"0.0.0.0:{_PORT}", inside=inside))
        machine = await exits.enter_async_context(
            MachineProcess(f"{_NAME}:{_PORT}", inside=network.inside_machine)
        )
        yield _Scene(network=network, machine=machine, data=folder)


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {said.decode()}"


async def slow_line() -> Outcome:
    """2 kB/s: 20 kB arrive, and the connection outlives idleness, without one break."""
    outcome = Outcome(name="namespace, tbf 2 kB/s")
    loop = asyncio.get_running_loop()
    async with _scene(slow=True) as scene:
        await scene.machine.until_says("state connected", within=RECOVERED_WITHIN)
        began_s = loop.time()
        for number in range(1, 7):
            scene.machine.send(number, 20_000 if number in (1, 2) else 0)
        await scene.sent(1)
        outcome.took_s = loop.time() - began_s
        await scene.sent(2, 3, 4, 5, 6)
        await asyncio.sleep(max(0.0, began_s + IDLE_S - loop.time()))
        outcome.effects = effects_in(scene.data)
        assert scene.machine.breaks == 0, scene.machine.said
        assert outcome.effects == [1, 2, 3, 4, 5, 6]
    return outcome


async def link_down_for_a_while() -> Outcome:
    """10 s without a link: shorter than silence is borne, so nothing need be noticed, only recovered."""
    outcome = Outcome(name="namespace, link down for 10 s")
    loop = asyncio.get_running_loop()
    async with _scene() as scene:
        scene.machine.send(1)
        await scene.sent(1)
        await scene.network.on(scene.network.machine, "ip", "link", "set", "wire", "down")
        scene.machine.send(2)
        await asyncio.sleep(10)
        await scene.network.on(scene.network.machine, "ip", "link", "set", "wire", "up")
        up_s = loop.time()
        await scene.sent(2)
        outcome.recovered_s = loop.time() - up_s
        outcome.breaks = scene.machine.breaks
        outcome.effects = effects_in(scene.data)
        assert outcome.effects == [1, 2]
    return outcome


async def link_down() -> Outcome:
    """The link is down until the machine has noticed."""
    async with _scene() as scene:
        network = scene.network

        async def down() -> None:
            await network.on(network.machine, "ip", "link", "set", "wire", "down")

        async def up() -> None:
            await network.on(network.machine, "ip", "link", "set", "wire", "up")

        return await scene.broken("namespace, link down", down, up)


async def machine_moves() -> Outcome:
    """The machine gets another address, as when it changes from one network to another."""
    async with _scene() as scene:
        network = scene.network

        async def move() -> None:
            await network.on(network.machine, "ip", "addr", "flush", "dev", "wire")
            await network.on(network.machine, "ip", "addr", "add", f"{network.prefix}.3/24", "dev", "wire")

        async def nothing() -> None:
            return

        return await scene.broken("namespace, the machine's address changes", move, nothing)


async def server_moves() -> Outcome:
    """The server comes back under another address of the same name."""
    async with _scene() as scene:
        network = scene.network

        async def move() -> None:
            await network.on(network.server, "ip", "addr", "flush", "dev", "wire")
            await network.on(network.server, "ip", "addr", "add", f"{network.prefix}.4/24", "dev", "wire")
            network.call_server(4)

        async def nothing() -> None:
            return

        return await scene.broken("namespace, the server's address changes", move, nothing)


CASES: dict[str, Callable[[], Awaitable[Outcome]]] = {
    "slow_line": slow_line,
    "link_down_for_a_while": link_down_for_a_while,
    "link_down": link_down,
    "machine_moves": machine_moves,
    "server_moves": server_moves,
}
