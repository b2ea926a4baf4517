"""How commands reach Podium: a named server, the running server of a data directory, or one in this process."""

import asyncio
import json
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
from podium.link.tokens import given_token, token_of

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
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="PODIUM_TOKEN_FILE",
        help="File with your token; or PODIUM_TOKEN holds it. Default: the operator's, of --data.",
    ),
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


def reach(server: str | None, ca: Path | None, data: Path, token_file: Path | None = None) -> str:
    """The options that lead to the same server again, for commands that are suggested: '' or ' --data X'."""
    parts: list[str] = []
    if server is not None:
        parts = ["--server", server, *(["--ca", str(ca)] if ca is not None else [])]
    elif data != DEFAULT_DATA:
        parts = ["--data", str(data)]
    if token_file is not None:
        parts += ["--token-file", str(token_file)]
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
def connected(server: str | None, ca: Path | None, data: Path, token_file: Path | None = None) -> Iterator[Client]:
    """A client of the named server, of the one that runs on `data`, or of one started here for this command.

    Raises:
        InvalidRequest: the address, its certificate authority or the token's file cannot be used.
    """
    with serving_address(server, ca, data, token_file) as address, Client(address) as client:
        yield client


@contextmanager
def serving_address(
    server: str | None, ca: Path | None, data: Path, token_file: Path | None = None
) -> Iterator[Address]:
    """Where the server of `connected` listens, with the token that is sent to it."""
    token = given_token(token_file, os.environ)
    with ExitStack() as stack:
        if server is None:
            yield _found_or_started(data, token, stack)
        elif (known := _entry(data)) is not None and known["address"] == server:
            # The server on `data` is the one meant: its own machine need not be told how to trust it.
            yield _announced(known, ca, token)
        else:
            yield Address.of(server, ca, token=token)


def _found_or_started(data: Path, token: str, stack: ExitStack) -> Address:
    """The server that runs on a data directory, or one that runs as long as the stack.

    A server that is starting, and a command that serves itself, hold the directory and do not say where they
    listen: such a one is waited for, as it is ready or gone within seconds.
    """
    from cloud.lock import DataDirectoryInUse, is_locked

    patience_ends_s = time.monotonic() + PATIENCE_S
    told = False
    while True:
        if (running := running_server(data, token)) is not None:
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


def running_server(data: Path, token: str = "") -> Address | None:
    """The server that runs on a data directory and says where it listens, or None.

    Args:
        data: its data directory.
        token: of whoever asks; the operator's, which lies in the directory, when empty.

    Raises:
        InvalidRequest: the operator's token cannot be read: the directory is another user's.
    """
    entry = _entry(data)
    return None if entry is None else _announced(entry, None, token)


def metrics_address(data: Path) -> str:
    """Where the server that runs on a data directory shows its metrics; '' when none runs or it shows none."""
    entry = _entry(data)
    return "" if entry is None else str(entry.get("metrics") or "")


def _announced(entry: Mapping[str, Any], ca: Path | None, token: str) -> Address:
    """The address that a server.json holds."""
    if not token and entry.get("token"):
        token = token_of(Path(entry["token"]))
    known_ca = Path(entry["ca"]) if entry.get("ca") else None
    return Address.of(str(entry["address"]), ca or known_ca, token=token)


@contextmanager
def _embedded(data: Path) -> Iterator[Address]:
    """A server in this process, on a free loopback port, for as long as the command takes.

    Tasks that wait when the command ends stay in the data directory and go on with the next server on it.
    """
    from cloud.app import build
    from cloud.settings import load_settings

    # In clear on loopback, and yet nobody else on this machine may use it: only this process knows the token.
    private_token = secrets.token_urlsafe(32)
    flags = {"listen": "127.0.0.1:0", "data": data, "insecure_loopback": True}
    settings = load_settings(flags=flags, environment=os.environ).settings
    started: Future[tuple[str, Callable[[], object]]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        # Nobody else may rely on a server that ends with this command.
        served = build(settings, lambda: datetime.now(UTC), announced=False, private_token=private_token)
        async with served as app:
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
            yield Address.of(address, token=private_token)
        finally:
            stop_serving()
        running.result()


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
