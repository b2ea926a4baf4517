"""How commands reach Podium: a named server, the running server of a data directory, or one in this process."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.client import Client
from podium.errors import InternalError, InvalidRequest
from podium.link import Address

if TYPE_CHECKING:
    from cloud.specialists import Specialists

ServerOption = Annotated[
    str | None,
    typer.Option("--server", envvar="PODIUM_SERVER", help="The server, HOST:PORT. Default: the one of --data."),
]
CaOption = Annotated[
    Path | None,
    typer.Option("--ca", envvar="PODIUM_CA", help="Certificate authority of the server (ca.pem), for TLS."),
]
DataOption = Annotated[
    Path, typer.Option("--data", envvar="PODIUM_DATA", help="Data directory, used when no server is named.")
]
SettingsOption = Annotated[
    Path,
    typer.Option("--data", envvar="PODIUM_DATA", help="Data directory; its podium.toml may name other packs."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

DEFAULT_DATA = Path("var")
SERVER_FILE = "server.json"
PATIENCE_S = 60.0
_LOOK_AGAIN_AFTER_S = 0.1


def say(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def reach(server: str | None, ca: Path | None, data: Path) -> str:
    """The options that lead to the same server again, for commands that are suggested: '' or ' --data X'."""
    parts: list[str] = []
    if server is not None:
        parts = ["--server", server, *(["--ca", str(ca)] if ca is not None else [])]
    elif data != DEFAULT_DATA:
        parts = ["--data", str(data)]
    return "".join(f" {shlex.quote(part)}" for part in parts)


def local_specialists(data: Path) -> "Specialists":
    """The packs and planner of this machine, as a server on `data` would have them.

    Raises:
        ManifestInvalid, SettingsInvalid: the packs or settings break their rules; every violation is listed.
    """
    from cloud.settings import load_settings
    from cloud.specialists import load_specialists

    return load_specialists(load_settings(flags={"data": data}, environment=os.environ).settings.packs)


@contextmanager
def connected(server: str | None, ca: Path | None, data: Path) -> Iterator[Client]:
    """A client of the named server, of the one that runs on `data`, or of one started here for this command.

    Raises:
        InvalidRequest: the address or its certificate authority cannot be used.
    """
    with serving_address(server, ca, data) as address, Client(address) as client:
        yield client


@contextmanager
def serving_address(server: str | None, ca: Path | None, data: Path) -> Iterator[Address]:
    """Where the server of `connected` listens."""
    with ExitStack() as stack:
        if server is not None:
            yield Address.of(server, ca or _known_ca(server, data))
        else:
            yield _found_or_started(data, stack)


def _found_or_started(data: Path, stack: ExitStack) -> Address:
    """The server that runs on a data directory, or one that runs as long as the stack.

    A server that is starting, and a command that serves itself, hold the directory and do not say where they
    listen: such a one is waited for, as it is ready or gone within seconds.
    """
    from cloud.lock import DataDirectoryInUse, is_locked

    patience_ends_s = time.monotonic() + PATIENCE_S
    told = False
    while True:
        if (running := running_server(data)) is not None:
            return running
        if not is_locked(data) or time.monotonic() > patience_ends_s:
            try:
                return stack.enter_context(_embedded(data))
            except DataDirectoryInUse:
                # Another command was quicker.
                if time.monotonic() > patience_ends_s:
                    raise
        if not told:
            say(f"waiting for another podium process that uses {data}")
            told = True
        time.sleep(_LOOK_AGAIN_AFTER_S)


def running_server(data: Path) -> Address | None:
    """The server that runs on a data directory and says where it listens, or None."""
    entry = _entry(data)
    if entry is None:
        return None
    ca = entry.get("ca")
    return Address.of(str(entry["address"]), Path(ca) if ca else None)


@contextmanager
def _embedded(data: Path) -> Iterator[Address]:
    """A server in this process, on a free loopback port, for as long as the command takes.

    Tasks that wait when the command ends stay in the data directory and go on with the next server on it.
    """
    from cloud.app import build
    from cloud.settings import load_settings

    flags = {"listen": "127.0.0.1:0", "data": data, "insecure_loopback": True}
    settings = load_settings(flags=flags, environment=os.environ).settings
    started: Future[tuple[str, Callable[[], object]]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        # Nobody else may rely on a server that ends with this command.
        async with build(settings, lambda: datetime.now(UTC), announced=False) as app:
            started.set_result((app.address, partial(loop.call_soon_threadsafe, stop.set)))
            await stop.wait()

    def note_failure(ended: Future[None]) -> None:
        if not started.done():
            started.set_exception(ended.exception() or InternalError("the server ended before it had started"))

    with ThreadPoolExecutor(1, thread_name_prefix="embedded-server") as pool:
        running = pool.submit(lambda: asyncio.run(serve()))
        running.add_done_callback(note_failure)
        address, stop_serving = started.result()
        try:
            yield Address.of(address)
        finally:
            stop_serving()
        running.result()


def _known_ca(server: str, data: Path) -> Path | None:
    """The CA of the server on `data`, when that is the one meant: its own machine need not be told."""
    entry = _entry(data)
    if entry is None or entry["address"] != server or not entry.get("ca"):
        return None
    return Path(entry["ca"])


def _entry(data: Path) -> dict[str, Any] | None:
    from cloud.lock import is_locked

    try:
        entry: dict[str, Any] = json.loads((data / SERVER_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{data / SERVER_FILE} cannot be read: {error}", field="data") from error
    # A killed server leaves its file behind; its lock goes with it.
    return entry if is_locked(data) else None
