"""How commands reach Podium: a named server, the running server of a data directory, or one in this process."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.client import Client
from podium.errors import InternalError, InvalidRequest
from podium.link import Address

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
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]

DEFAULT_DATA = Path("var")
SERVER_FILE = "server.json"


def say(text: str) -> None:
    """A line for the person at the terminal, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


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
    if server is not None:
        yield Address.of(server, ca or _known_ca(server, data))
    elif (running := running_server(data)) is not None:
        yield running
    else:
        with _embedded(data) as address:
            yield address


def running_server(data: Path) -> Address | None:
    """The server that runs on a data directory, or None."""
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
        async with build(settings, lambda: datetime.now(UTC)) as app:
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
    except ValueError as error:
        raise InvalidRequest(f"{data / SERVER_FILE} is not readable: {error}", field="data") from error
    # A killed server leaves its file behind; its lock goes with it.
    return entry if is_locked(data) else None
