"""What `podium health-check` finds out about a server besides that it answers: cheap looks that only read."""

import http.client
import os
import re
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cloud.audit import FOLDER as AUDIT_FOLDER
from cloud.commands.connection import metrics_address
from cloud.planners import HEALTH_NAME
from cloud.settings import Settings, load_settings
from podium.client import Client
from podium.errors import NotFound, PodiumError, ServerUnavailable
from podium.link import Address, sync_channel, unreachable
from podium.rpc_status import from_rpc_error
from podium.v1 import agent_pb2, registry_pb2
from tools.ledger.errors import LedgerCorrupt
from tools.ledger.reading import head_of, verify
from tools.models.pinned import ModelNotPinned

EXPIRES_SOON = timedelta(days=30)
NEARLY_FULL = 0.9
"""Of what blobs may have; beyond, uploads will soon be refused."""
MOST_DROPPED = 0.01
"""Of all spans; what a restart of the collector costs is less."""
_CONNECTS_WITHIN_S = 2.0
_LOOKS_AT_ONCE = 16
_PLANNER_LOADS_WITHIN_S = 30.0
_LOOKS_AGAIN_AFTER_S = 0.1
_SHIPPED = "shipped"
"""What `GetPlanner` calls the version of the package."""
_PROMOTE_ANOTHER = "Promote a version that can be used, or see `podium artefacts`"
_MOST_PAGE_BYTES = 2**22
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vital:
    """What a look found."""

    ok: bool
    detail: str


def agents(found: Sequence[agent_pb2.AgentDescription]) -> Vital:
    """Which agents serve with which models, and what the server says is wrong with some.

    Args:
        found: as the server lists them.
    """
    parts = [f"{len(found)} agents in all versions"]
    if off := [f"{agent.name} {agent.version}" for agent in found if agent.engine and not agent.enabled]:
        parts.append(f"disabled: {', '.join(off)}")
    models = [f"{one.name} {one.version} with {one.model_version}" for one in found if one.model_version]
    if models:
        parts.append(f"model versions: {', '.join(models)}")
    problems = [f"{agent.name} {agent.version}: {agent.problem}" for agent in found if agent.problem]
    return Vital(ok=not problems, detail="; ".join([*parts, *problems]))


def planner(address: Address, data: Path | None) -> Vital:
    """Whether the server plans with everything it was told to plan with.

    Args:
        address: of the server.
        data: its data directory, where it is at hand: says what a server would load that loads nothing yet.

    Raises:
        ServerUnavailable: the server does not answer.
    """
    states = health_pb2.HealthCheckResponse
    status = _planner_status(address)
    if status is None:
        return Vital(ok=False, detail=f"the trained planner was not loaded within {_PLANNER_LOADS_WITHIN_S:.0f} s")
    with Client(address) as client:
        state = client.planner()
    if state.model_version or status == states.SERVING:
        return _planning(state)
    if status == states.NOT_SERVING:
        if state.refused and all(one.code == ModelNotPinned.code for one in state.refused):
            return Vital(ok=True, detail="rules alone plan: no trained planner ships with this build")
        return Vital(ok=False, detail=f"rules alone plan, {_refusals(state)}. {_PROMOTE_ANOTHER}")
    return _planner_unloaded(data)


def _planning(state: registry_pb2.GetPlannerResponse) -> Vital:
    """Of a server that plans with everything that it was told to plan with, though perhaps in an older version."""
    if state.refused:
        detail = f"{_refusals(state)}; version {state.model_version} plans instead. {_PROMOTE_ANOTHER}"
        return Vital(ok=False, detail=detail)
    trained = f", the trained planner in version {state.model_version}" if state.model_version else ""
    return Vital(ok=True, detail=f"everything that the setting planner names is in use{trained}")


def _refusals(state: registry_pb2.GetPlannerResponse) -> str:
    return "; ".join(f"{_named(one)}{one.code}: {one.reason}" for one in state.refused)


def _named(one: registry_pb2.RefusedModel) -> str:
    if one.version in ("", _SHIPPED):
        return "the planner that ships is refused, " if one.version else ""
    return f"the promoted version {one.version} is refused, "


def _planner_unloaded(data: Path | None) -> Vital:
    """Of a server that loads its trained planner when it needs it: whether that could be loaded."""
    if data is None:
        return Vital(ok=True, detail="the trained planner is loaded when it is needed")
    from cloud.planning import command_model

    try:
        command_model(data)
    except ModelNotPinned:
        return Vital(ok=True, detail="rules alone plan: no trained planner ships with this build")
    except PodiumError as error:
        return Vital(ok=False, detail=f"rules alone plan, {error.code}: {error.message}. {error.next_step}")
    return Vital(ok=True, detail="the trained planner is what it should be; it is loaded when it is needed")


def _planner_status(address: Address) -> int | None:
    """What the health service says; None when it says nothing for as long as loading may take."""
    ends_s = time.monotonic() + _PLANNER_LOADS_WITHIN_S
    with sync_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while True:
            try:
                request = health_pb2.HealthCheckRequest(service=HEALTH_NAME)
                return int(stub.Check(request, timeout=_PLANNER_LOADS_WITHIN_S).status)
            except grpc.RpcError as error:
                if not isinstance(failure := from_rpc_error(error), NotFound):
                    raise unreachable(address, failure) from error
            if time.monotonic() > ends_s:
                return None
            time.sleep(_LOOKS_AGAIN_AFTER_S)


def reach(found: Sequence[agent_pb2.AgentDescription]) -> Vital:
    """Whether something listens where enabled agents run that are elsewhere; nothing is said to it.

    Args:
        found: as the server lists them.
    """
    elsewhere = [agent for agent in found if agent.enabled and agent.endpoint]
    places = sorted({place for agent in elsewhere for place in agent.endpoint.split(",")})
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="reach") as pool:
        reached = dict(zip(places, pool.map(_listens, places), strict=True))
    lost = [
        f"{agent.name} {agent.version} is not reached at {agent.endpoint}"
        for agent in elsewhere
        if not any(reached[place] for place in agent.endpoint.split(","))
    ]
    return Vital(ok=not lost, detail="; ".join(lost) or f"{len(elsewhere)} agents elsewhere, all reached")


def certificate(address: Address, data: Path | None, now: datetime) -> Vital:
    """How long the certificate that the server shows is good for.

    Args:
        address: of the server.
        data: its data directory; without TLS, the certificate that its settings name is looked at.
        now: the present moment in UTC.

    Raises:
        ServerUnavailable: no certificate was shown.
        TlsFilesUnusable: the file that the settings name holds none.
    """
    from cryptography import x509

    from cloud.identity.files import certificate_from, read

    if address.ca_pem is not None:
        host, _, port = address.target.rpartition(":")
        try:
            shown = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=_CONNECTS_WITHIN_S)
        except OSError as error:
            raise ServerUnavailable(f"{address.target} showed no certificate: {error}") from error
        found, where = x509.load_pem_x509_certificate(shown.encode()), address.target
    else:
        file = _settings(data).tls_certificate if data is not None else None
        if file is None:
            return Vital(ok=True, detail="the server shows none, it serves without TLS")
        found, where = certificate_from(read(file), file), str(file)
    ends = found.not_valid_after_utc
    said = "expired" if ends <= now else "expires" if ends - now < EXPIRES_SOON else "is good until"
    return Vital(ok=ends - now >= EXPIRES_SOON, detail=f"that of {where} {said} {ends:%Y-%m-%d %H:%M} UTC")


def ledger(data: Path, *, deep: bool) -> Vital:
    """Whether the audit ledger is as it was written, and where it ends.

    Args:
        data: the data directory.
        deep: look at every entry and not only at the last file.
    """
    folder = data / AUDIT_FOLDER
    try:
        if deep:
            verified = verify(folder)
            if verified.damage is not None:
                raise LedgerCorrupt(folder, verified.damage)
            head, looked = verified.head, "every entry is as it was written"
        else:
            head, looked = head_of(folder), "its last file is as it was written; --deep looks at every entry"
    except NotFound:
        return Vital(ok=True, detail="there is no audit ledger yet")
    return Vital(ok=True, detail=f"{looked}; head {head}")


def telemetry(data: Path) -> Vital:
    """Whether traces get out, as the metrics page says.

    Args:
        data: the data directory.

    Raises:
        ServerUnavailable: the page that the server announced does not answer.
    """
    where = metrics_address(data)
    if not where:
        return Vital(ok=True, detail="the metrics page is off (setting metrics_listen), so drops are not known")
    page = _page(where)
    dropped, exported = (
        _number(page, f'podium_spans_total{{outcome="{one}"}}') for one in ("dropped", "exported")
    )
    waiting = _number(page, "podium_queue_tasks")
    said = f"{exported:.0f} spans exported, {dropped:.0f} dropped since the start; {waiting:.0f} tasks wait"
    return Vital(ok=dropped <= MOST_DROPPED * (dropped + exported), detail=said)


def blobs(data: Path) -> Vital:
    """How much of the room for blobs is taken, by the settings of this directory.

    Args:
        data: the data directory.

    Raises:
        DatabaseCorrupt, InternalError: the index of blobs cannot be read.
        SettingsInvalid: the settings cannot be.
    """
    from cloud.blobs.index import stored_in

    stored, most_bytes = stored_in(data / "blobs"), _settings(data).blobs_max_bytes
    share = stored.total_bytes / most_bytes
    said = (
        f"{stored.count} blobs with {stored.total_bytes / 2**20:.1f} of {most_bytes / 2**20:.0f} MiB ({share:.0%})"
    )
    more = "" if share < NEARLY_FULL else "; remove old ones (`podium blobs gc`) or raise blobs_max_bytes"
    return Vital(ok=not more, detail=said + more)


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def _settings(data: Path) -> Settings:
    return load_settings(flags={"data": data}, environment=os.environ).settings


def _listens(place: str) -> bool:
    try:
        parts = urlsplit(place)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        with socket.create_connection((parts.hostname or "", port), timeout=_CONNECTS_WITHIN_S):
            return True
    except (OSError, ValueError):
        return False


def _page(where: str) -> str:
    connection = http.client.HTTPConnection(where, timeout=_CONNECTS_WITHIN_S)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise ServerUnavailable(f"the metrics page at {where} answers with {response.status}")
        return response.read(_MOST_PAGE_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise ServerUnavailable(f"the metrics page at {where} does not answer: {error}") from error
    finally:
        connection.close()


def _number(page: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} ([0-9.e+]+)$", page, re.MULTILINE)
    return float(found[1]) if found is not None else 0.0
