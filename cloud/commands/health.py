"""`podium health-check`: is everything there that an answer needs?"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cloud.commands import vitals
from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    JsonOption,
    ServerOption,
    TokenFileOption,
    local_specialists,
    serving_address,
)
from cloud.contents import check_contents
from podium.cli import emit
from podium.client import Client
from podium.errors import PodiumError, ServerUnavailable
from podium.import_names import check_import_names
from podium.link import Address, sync_channel, unreachable
from podium.rpc_status import from_rpc_error
from podium.terminal import Console
from podium.v1 import agent_pb2

CALL_LIMIT_S = 10
MIN_FREE_BYTES = 200 * 2**20

app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


@app.command("health-check")
def health_check(
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    deep: Annotated[bool, typer.Option("--deep", help="Verify every entry of the audit ledger.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the server, its agents, what it keeps on disk and its certificate; exit 0 only if all is well.

    With --server, what only the server's own machine can tell is left out: audit ledger, blobs, metrics, and
    whether agents elsewhere are reached. Without it and without a running server, one is started for the check, so
    that the embedded default is what is looked at.
    """
    checks = [
        _tried("environment", _environment),
        _tried("packs", lambda: _packs(data)),
        _tried("models", _models),
        _tried("disk", lambda: _disk(data)),
    ]
    if server is None:
        checks.append(_tried("data", lambda: _data(data)))
    try:
        with serving_address(server, ca, data, token_file) as address:
            checks.append(_tried("server", lambda: _serving(address)))
            checks += _of_server(address, data if server is None else None, deep=deep)
    except PodiumError as error:
        checks.append(Check(name="server", ok=False, detail=_in_words(error)))
    ok = all(check.ok for check in checks)
    if as_json:
        items: list[dict[str, Any]] = [
            {"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks
        ]
        emit({"ok": ok, "checks": items})
    else:
        console = Console(highlight=False)
        for check in checks:
            console.print(f"{'ok ' if check.ok else 'BAD'} {check.name}: {check.detail}", markup=False)
    if not ok:
        raise SystemExit(1)


def _of_server(address: Address, data: Path | None, *, deep: bool) -> Iterator[Check]:
    """What a server says of itself, and, where its data directory is at hand, what lies there."""
    found: list[agent_pb2.AgentDescription] = []

    def agents() -> vitals.Vital:
        with Client(address) as client:
            found.extend(client.agents())
        return vitals.agents(found)

    yield _tried("agents", agents)
    yield _tried("planner", lambda: vitals.planner(address, data))
    yield _tried("certificate", lambda: vitals.certificate(address, data, vitals.now()))
    if data is not None:
        yield _tried("reach", lambda: vitals.reach(found))
        yield _tried("ledger", lambda: vitals.ledger(data, deep=deep))
        yield _tried("telemetry", lambda: vitals.telemetry(data))
        yield _tried("blobs", lambda: vitals.blobs(data))


def _tried(name: str, look: Callable[[], str | vitals.Vital]) -> Check:
    try:
        seen = look()
        if isinstance(seen, str):
            return Check(name=name, ok=True, detail=seen)
        return Check(name=name, ok=seen.ok, detail=seen.detail)
    except PodiumError as error:
        return Check(name=name, ok=False, detail=_in_words(error))


def _in_words(error: PodiumError) -> str:
    return f"{error.code}: {error.message}. {error.next_step}"


def _environment() -> str:
    check_import_names()
    return "no other distribution uses Podium's import names"


def _packs(data: Path) -> str:
    specialists = local_specialists(data)
    names = ", ".join(f"{pack.name} {pack.version}" for pack in specialists.packs)
    return f"{names}; {len(specialists.registry.serving())} agents keep the rules of manifests"


def _models() -> str:
    from tools.models.pinned import committed_models, verified_path

    names = [verified_path(model.name).name for model in committed_models()]
    return f"{len(names)} model files have their pinned hashes"


def _data(data: Path) -> str:
    count = check_contents(data)
    return f"{data} has the {count} files and folders that it had" if count else f"{data} is a new data directory"


def _disk(data: Path) -> str:
    folder = data if data.exists() else data.absolute().parent
    while not folder.exists():
        folder = folder.parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < MIN_FREE_BYTES:
        raise ServerUnavailable(
            f"{folder} has {free_bytes / 2**20:.0f} MiB free, {MIN_FREE_BYTES / 2**20:.0f} are needed",
            next_step="Free space on that disk.",
        )
    return f"{free_bytes / 2**30:.1f} GiB free at {folder}"


def _serving(address: Address) -> str:
    with sync_channel(address) as channel:
        try:
            stub = health_pb2_grpc.HealthStub(channel)
            response = stub.Check(health_pb2.HealthCheckRequest(), timeout=CALL_LIMIT_S)
        except grpc.RpcError as error:
            raise unreachable(address, from_rpc_error(error)) from error
    name = health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)
    if response.status != health_pb2.HealthCheckResponse.SERVING:
        raise ServerUnavailable(f"{address.target} is {name}")
    return f"{address.target} is {name}"
