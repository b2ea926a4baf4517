"""`podium serve`: the cloud as a process."""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import emit
from podium.import_names import check_import_names

if TYPE_CHECKING:
    from cloud.app import App
    from cloud.settings import Settings

app = typer.Typer()


@app.command()
def serve(
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT; port 0 takes a free one. Default: 127.0.0.1:7443.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Data directory. Default: var.")] = None,
    insecure_loopback: Annotated[
        bool, typer.Option("--insecure-loopback", help="Serve without TLS and credentials, on loopback only.")
    ] = False,
    planner: Annotated[
        str | None, typer.Option(help="Who plans: hybrid, rules or policy. Default: hybrid.", metavar="NAME")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, TOML. Default: podium.toml in --data.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the first line as a JSON object.")] = False,
) -> None:
    """Serve podium.v1 until SIGTERM or SIGINT; then finish running steps and exit with status 0.

    The first line on stdout says where it listens; logs go to stderr as JSON lines. Every setting can also stand
    in the TOML file or in PODIUM_* variables: `podium config show` lists them.
    """
    from cloud.settings import load_settings
    from podium.telemetry.log_lines import log_to

    check_import_names()
    flags = {"listen": listen, "data": data, "insecure_loopback": insecure_loopback or None}
    flags["planner"] = planner
    settings = load_settings(flags=flags, environment=os.environ, config=config).settings
    log_to(sys.stderr, level=settings.log_level)
    # Agents compute on threads of this process. At Python's 5 ms, three of them made an append to the log wait for
    # 67 ms (measured on 2 cores); at 1 ms it waits for 9 ms, and the agents lose nothing that can be measured.
    sys.setswitchinterval(0.001)
    asyncio.run(_serve(settings, as_json=as_json))


async def _serve(settings: "Settings", *, as_json: bool) -> None:
    from cloud.app import build

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with build(settings, lambda: datetime.now(UTC)) as server:
        _say_where(server, as_json=as_json)
        await stop.wait()


def _say_where(server: "App", *, as_json: bool) -> None:
    if as_json:
        ca = str(server.ca_file) if server.ca_file is not None else None
        emit({"listening": server.address, "ca": ca, "pid": os.getpid()})
    else:
        sys.stdout.write(f"listening on {server.address}\n")
        sys.stdout.flush()
