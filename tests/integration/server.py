"""A server for tests: in this process on a thread of its own, or as a real process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from cloud.app import App, build
from cloud.settings import load_settings
from podium.link import Address, channel_options
from podium.link.tokens import token_of

ROOT = Path(__file__).parents[2]
PACKS = Path(__file__).parent / "packs"


@dataclass
class Running:
    """A server that answers on `address`."""

    address: str
    data: Path
    app: App

    @property
    def token_file(self) -> Path:
        """The operator's token, which a server with TLS asks for."""
        return self.data / "operator.token"

    def tls_address(self, token: str | None = None) -> Address:
        """Of a server with TLS, with the operator's token or another one."""
        given = token_of(self.token_file) if token is None else token
        return Address.of(self.address, self.data / "tls" / "ca.pem", token=given)

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.address, options=channel_options())


@contextmanager
def serving(
    data: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), **settings: Any
) -> Iterator[Running]:
    """A server of the test packs without TLS, on a thread of its own; it plans by rules unless told otherwise."""
    flags = {"listen": "127.0.0.1:0", "insecure_loopback": True, "packs": PACKS, "grace_seconds": 5, "data": data}
    flags["planner"] = "rules"
    loaded = load_settings(flags=flags | settings, environment={}).settings
    started: list[tuple[App, asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()
    failures: list[BaseException] = []

    async def run() -> None:
        stop = asyncio.Event()
        async with build(loaded, clock) as app:
            started.append((app, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="server")
    thread.start()
    ready.wait(60)
    if failures:
        raise failures[0]
    app, loop, stop = started[0]
    try:
        yield Running(app.address, data, app)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive()
        if failures:
            raise failures[0]


@dataclass
class ServerProcess:
    """`podium serve` as a process of its own."""

    data: Path
    arguments: list[str] = field(default_factory=lambda: ["--listen", "127.0.0.1:0", "--insecure-loopback"])
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-m", "podium.cli")
    process: "subprocess.Popen[str] | None" = None
    first_line: str = ""

    def start(self) -> "ServerProcess":
        """Start it and wait for its first line; its log goes to DATA/../server.log."""
        environment = os.environ | {"PODIUM_PACKS": str(PACKS), "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
        environment["PODIUM_PLANNER"] = "rules"
        with (self.data.parent / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, "serve", "--data", str(self.data), *self.arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env=environment | self.environment,
            )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().strip()
        return self

    @property
    def target(self) -> str:
        return self.first_line.removeprefix("listening on ")

    @property
    def address(self) -> Address:
        """As its server.json says."""
        entry = json.loads((self.data / "server.json").read_text())
        ca = Path(entry["ca"]) if entry["ca"] else None
        return Address.of(entry["address"], ca, token=token_of(Path(entry["token"])) if entry["token"] else "")

    def kill(self) -> None:
        """`kill -9`."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def log(self) -> str:
        return (self.data.parent / "server.log").read_text()
