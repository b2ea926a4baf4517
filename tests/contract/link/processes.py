"""The server and the machine of the link suite as processes of their own."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[3]
_ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}


class HubProcess:
    """`hub_process`; an async context manager that kills it at the end."""

    def __init__(self, data: Path, *, listen: str = "127.0.0.1:0", inside: Sequence[str] = ()) -> None:
        self._command = [*inside, sys.executable, "-m", "tests.contract.link.hub_process", listen, str(data)]
        self.target = ""

    async def __aenter__(self) -> Self:
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdout=PIPE, stderr=DEVNULL, env=_ENVIRONMENT, cwd=ROOT
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            self.target = (await self.process.stdout.readline()).decode().strip()
        assert self.target
        return self

    async def __aexit__(self, *_: object) -> None:
        await _kill(self.process)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class MachineProcess:
    """`machine_process`; an async context manager that kills it at the end."""

    def __init__(self, target: str, *, inside: Sequence[str] = ()) -> None:
        self._command = [*inside, sys.executable, "-m", "tests.contract.link.machine_process", target]
        self.said: list[tuple[float, str]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=_ENVIRONMENT, cwd=ROOT
        )
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await _kill(self.process)

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.said.append((asyncio.get_running_loop().time(), line.decode().strip()))
            self._changed.set()
            self._changed = asyncio.Event()

    def send(self, number: int, size_bytes: int = 0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number} {size_bytes}\n".encode())

    async def until_says(self, begins: str, *, after_s: float = 0.0, within: timedelta) -> float:
        """The moment, by the loop's clock, at which it said something."""
        async with asyncio.timeout(within.total_seconds()):
            while True:
                changed = self._changed
                for at_s, line in self.said:
                    if at_s >= after_s and line.startswith(begins):
                        return at_s
                await changed.wait()

    @property
    def breaks(self) -> int:
        return sum(line.startswith("state not connected") for _, line in self.said)


async def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    if process.stdout is not None:
        # A pipe that nobody reads any more would be warned about when it is collected.
        await process.stdout.read()
    await process.wait()
