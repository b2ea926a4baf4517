"""How commands reach Podium: a named server, the running server of a data directory, or one in this process."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.client import Client
from podium.errors import InvalidRequest
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
    if server is not None:
        with Client(Address.of(server, ca or _known_ca(server, data))) as client:
            yield client
    elif (running := running_server(data)) is not None:
        with Client(running) as client:
            yield client
    else:
        with _embedded(data) as address, Client(address) as client:
            yield client


def running_server(data: Path) -> Address | None:
    """The server that runs on a data directory, or None."""
    entry = _entry(data)
    if entry is None:
        return None
    ca = entry.get("ca")
    return Address.of(str(entry["address"]), Path(ca) if ca else None)


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
