"""`podium host run`: make an agent that servers can call of a Python function and its manifest."""

import importlib
import importlib.util
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.agent_host.declaration import Declaration, read_manifest
from podium.agent_host.host import AgentHost, say_where, software_version
from podium.cli import emit, require
from podium.errors import InvalidRequest
from podium.telemetry.log_lines import log_to
from podium.telemetry.sending import sending_spans

require("grpc_health", "grpc_reflection")

app = typer.Typer(name="host", help="Serve agents from this machine to Podium servers.", no_args_is_help=True)


@app.callback()
def keep_commands_named() -> None:
    """With one command alone typer would drop its name."""


@app.command()
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py[:FUNCTION]|MODULE[:FUNCTION]",
            help="Where the function is; without FUNCTION it has the agent's name.",
        ),
    ],
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="The agent's manifest; by default the .yaml or .json file beside the code, of its name."
        ),
    ] = None,
    listen: Annotated[str, typer.Option(help="HOST:PORT; port 0 takes a free one.")] = "127.0.0.1:0",
    identity: Annotated[
        Path | None,
        typer.Option(envvar="PODIUM_IDENTITY", help="Folder that `podium enroll --kind agent_host` wrote."),
    ] = None,
    insecure_loopback: Annotated[
        bool,
        typer.Option("--insecure-loopback", help="No TLS and no identity; everybody on this machine may call."),
    ] = False,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Calls at once.")] = 8,
    grace: Annotated[float, typer.Option(min=0, max=3600, help="Seconds a stop waits for calls that run.")] = 30,
    outcomes: Annotated[
        Path | None,
        typer.Option(help="File that remembers what came of writes; without it a restart forgets."),
    ] = None,
    otlp: Annotated[str, typer.Option(help="HOST:PORT of an OpenTelemetry collector for traces.")] = "",
    otlp_ca: Annotated[
        Path | None, typer.Option("--otlp-ca", help="The collector's certificate authority, PEM.")
    ] = None,
    traces_file: Annotated[
        Path | None, typer.Option("--traces-file", help="Append spans of traces to this file, as JSON lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Serve one agent until SIGTERM or Ctrl-C; then finish what runs and take nothing new.

    The first line on stdout is `listening on HOST:PORT`, where a manifest with `engine: grpc` finds the agent.
    """
    place, _, function_name = target.partition(":")
    module = _module(place)
    found = manifest or _manifest_beside(module)
    declaration = Declaration.of(read_manifest(found), named=str(found))
    function = getattr(module, function_name or declaration.name, None)
    if not callable(function):
        raise InvalidRequest(
            f"{place} has no function {function_name or declaration.name!r}",
            next_step="Name it after a colon: FILE.py:FUNCTION.",
            field="target",
        )
    host = AgentHost(
        listen=listen,
        identity=None if insecure_loopback else identity,
        insecure_loopback=insecure_loopback,
        threads=threads,
        grace=timedelta(seconds=grace),
        outcomes=outcomes,
    )
    host.add(declaration, function)

    def tell(address: str) -> None:
        emit({"address": address, "agent": declaration.name, "version": declaration.version})

    log_to(sys.stderr, level="info")
    with sending_spans(
        "podium-agent-host",
        version=software_version(),
        instance=str(os.getpid()),
        otlp=otlp,
        otlp_ca=otlp_ca,
        file=traces_file,
    ):
        host.run(on_ready=tell if as_json else say_where)


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(place)
        except (ImportError, ValueError) as error:
            raise InvalidRequest(f"the module {place!r} cannot be imported: {error}", field="target") from error
    path = Path(place).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidRequest(f"there is no file {place}", field="target")
    # As if it had been started: it finds what lies beside it.
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _manifest_beside(module: Any) -> Path:
    code = Path(str(module.__file__))
    for suffix in (".yaml", ".yml", ".json"):
        if (path := code.with_suffix(suffix)).is_file():
            return path
    raise InvalidRequest(
        f"there is no {code.with_suffix('.yaml')}",
        next_step="Name the manifest with --manifest.",
        field="manifest",
    )
