"""The gRPC front of a server: one server, a port for callers and a port for machines, and where they listen."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cloud.tls import ServerIdentity, Shown
from podium.errors import ServerUnavailable
from podium.link import MAX_MESSAGE_BYTES
from tools.ledger.errors import storage_error

SERVER_FILE = "server.json"
SERVICES = (
    "podium.v1.TaskService",
    "podium.v1.BlobService",
    "podium.v1.EdgeService",
    "podium.v1.IdentityService",
    "podium.v1.RegistryService",
    "podium.v1.ReviewService",
)
_PINGS_AT_MOST_EVERY_MS = 5_000


class AddressUnavailable(ServerUnavailable):
    """The server cannot listen where it was told to."""

    code = "ADDRESS_UNAVAILABLE"
    advice = "Choose another --listen HOST:PORT; port 0 takes a free one."


def grpc_server(interceptors: Sequence[grpc.aio.ServerInterceptor]) -> grpc.aio.Server:
    """A server that notices dead peers and lets clients ping it."""
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        # Without this two servers could listen on one port and each get half of the calls.
        ("grpc.so_reuseport", 0),
        # A peer whose kernel acknowledges nothing for 60 s (TCP_USER_TIMEOUT) is gone. A ping may take minutes: at
        # 2 kB/s it waits behind the data on the way, and with 10 s a 20 kB message never arrived. Whether the
        # program behind a device's stream still lives, its heartbeats say (podium.link.liveness).
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 60_000),
        ("grpc.http2.ping_timeout_ms", 180_000),
        # Clients ping every 20 s (podium.link); the default of 300 s would drop them as too eager. gRPC
        # ignores names it does not know without a word: a test pings to see that this one works.
        ("grpc.http2.min_ping_interval_without_data_ms", _PINGS_AT_MOST_EVERY_MS),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    return grpc.aio.server(interceptors=interceptors, options=options)


def listen(server: grpc.aio.Server, wanted: str, shown: Shown | None, *, machines_ca: bytes | None = None) -> str:
    """Open a port; HOST:PORT with the port that is really listened on.

    Args:
        server: not started yet.
        wanted: HOST:PORT.
        shown: what the server shows, asked at every connection; None listens in clear.
        machines_ca: for the port for machines: the authority that must have signed the certificate of whoever
            connects. gRPC cannot make that optional, so callers with tokens have a port of their own.

    Raises:
        AddressUnavailable: the address is taken or not of this machine.
    """
    try:
        if shown is None:
            port = server.add_insecure_port(wanted)
        else:
            port = server.add_secure_port(wanted, _credentials(shown, machines_ca))
    except RuntimeError as error:
        advice = "Choose another with the setting listen_machines; off takes no machines." if machines_ca else ""
        raise AddressUnavailable(
            f"cannot listen on {wanted}: it is taken or not of this machine", next_step=advice
        ) from error
    return f"{wanted.rpartition(':')[0]}:{port}"


def _credentials(shown: Shown, machines_ca: bytes | None) -> grpc.ServerCredentials:
    def configuration(identity: ServerIdentity) -> Any:
        return grpc.ssl_server_certificate_configuration(
            [(identity.key_pem, identity.certificate_pem)], root_certificates=machines_ca
        )

    def newer() -> Any:
        """Called by gRPC before each handshake, on its threads; None keeps what there is."""
        found = shown.newer()
        return configuration(found) if found is not None else None

    credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
        configuration(shown.now), newer, require_client_authentication=machines_ca is not None
    )
    return credentials


def add_health_and_reflection(server: grpc.aio.Server) -> Any:
    """Standard health and reflection; returns the health service, which says SERVING only after `all_serving`."""
    health_service = health.aio.HealthServicer()  # type: ignore[attr-defined]  # exported without a stub
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return health_service


async def all_serving(health_service: Any) -> None:
    """Let health checks know that every service answers."""
    for name in ("", *SERVICES):
        await health_service.set(name, health_pb2.HealthCheckResponse.SERVING)


def announce(
    data: Path,
    *,
    address: str,
    machines: str,
    ca_file: Path | None,
    tls: bool,
    token_file: Path | None,
    metrics: str = "",
) -> Path:
    """Let commands on this machine find the server; the file that says so, to be removed at the end.

    Raises:
        StorageFull, InternalError: it cannot be written.
    """
    path = data / SERVER_FILE
    entry = {
        "address": _from_here(address),
        "machines": _from_here(machines) or None,
        "ca": str(ca_file.resolve()) if ca_file is not None else None,
        "tls": tls,
        "token": str(token_file.resolve()) if token_file is not None else None,
        "metrics": _from_here(metrics) or None,
        "pid": os.getpid(),
    }
    temporary = path.with_suffix(".new")
    try:
        temporary.write_text(json.dumps(entry) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise storage_error(error, path) from error
    return path


def _from_here(address: str) -> str:
    """How this machine itself reaches what listens on every interface."""
    return address.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
