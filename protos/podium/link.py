"""How everybody connects: an address, TLS by default, keepalive that notices a dead peer.

TLS needs the certificate authority of the server (`ca.pem`). Without one, only a loopback address can be
spoken to, and in clear: such bytes never leave the machine (see docs/adr/0004-tls-and-loopback.md).
"""

import ipaddress
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from podium.errors import InvalidRequest, PodiumError, ServerUnavailable

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
DEFAULT_DEADLINE = timedelta(seconds=30)

# Calls that may safely be sent again: reads, and writes that carry their own idempotency key.
_RETRIED_METHODS = (
    ("podium.v1.TaskService", ("SubmitTask", "GetTask", "ListTasks", "CancelTask")),
    ("podium.v1.BlobService", ("Stat",)),
    ("podium.v1.RegistryService", ("ListAgents", "GetAgent")),
    ("podium.v1.ReviewService", ("ListReviews",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is and how it is trusted."""

    target: str
    """HOST:PORT."""
    ca_pem: bytes | None
    """Certificate authority of the server, or None for loopback in clear."""

    @classmethod
    def of(cls, target: str, ca_file: Path | None = None) -> "Address":
        """Check an address given by a person.

        Raises:
            InvalidRequest: not HOST:PORT, an unreadable CA file, or an address off loopback without a CA.
        """
        host, separator, port = target.rpartition(":")
        if not separator or not host or not port.isdigit():
            raise InvalidRequest(f"{target!r} is not HOST:PORT", field="server")
        if ca_file is not None:
            try:
                ca_pem = ca_file.read_bytes()
            except OSError as error:
                raise InvalidRequest(f"the CA file {ca_file} cannot be read: {error}", field="ca") from error
            if b"-----BEGIN CERTIFICATE-----" not in ca_pem:
                raise InvalidRequest(
                    f"{ca_file} holds no certificate in PEM form",
                    next_step="Give the server's ca.pem: it lies in tls/ of the server's data directory.",
                    field="ca",
                )
            return cls(target=target, ca_pem=ca_pem)
        if not is_loopback(host):
            raise InvalidRequest(
                f"{target} is not on this machine, so it is only spoken to with TLS",
                next_step="Give the server's certificate authority with --ca FILE or PODIUM_CA.",
                field="ca",
            )
        return cls(target=target, ca_pem=None)


def unreachable(address: Address, error: PodiumError) -> PodiumError:
    """Say in words about addresses and certificates why a connection did not come about; other errors stay.

    gRPC says it in words about sockets, and gives them only as text.
    """
    if not isinstance(error, ServerUnavailable):
        return error
    if "Connection refused" in error.message:
        message, advice = f"nothing listens on {address.target}", error.advice
    elif "CERTIFICATE_VERIFY_FAILED" in error.message:
        message = f"the certificate of {address.target} is not vouched for by the authority that was given"
        advice = "Give that server's own ca.pem, from tls/ of its data directory."
    elif address.ca_pem is None and "Socket closed" in error.message:
        message = f"{address.target} hung up on a connection without TLS"
        advice = "It probably speaks TLS: give its ca.pem with --ca, from tls/ of its data directory."
    elif address.ca_pem is not None and "WRONG_VERSION_NUMBER" in error.message:
        message = f"{address.target} does not speak TLS"
        advice = "Leave --ca out: without it a server on loopback is spoken to in clear."
    else:
        return error
    return ServerUnavailable(message, next_step=advice, evidence=[error.message])


def is_loopback(host: str) -> bool:
    """True for localhost and loopback addresses, in brackets or not."""
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def channel_options() -> list[tuple[str, Any]]:
    """Options of every client channel: keepalive, ping timeout, size caps and retries of safe calls.

    A dead link is noticed within about 30 s (20 s keepalive, 10 s timeout; measured in notes/edge-grpc-onnx.md).
    """
    service_config = {
        "methodConfig": [
            {
                "name": [{"service": service, "method": method} for method in methods],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "2s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
            for service, methods in _RETRIED_METHODS
        ]
    }
    return [
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.ping_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", 16 * MAX_MESSAGE_BYTES),
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(service_config)),
        # A proxy taken from the environment would carry loopback traffic elsewhere.
        ("grpc.enable_http_proxy", 0),
    ]


def sync_channel(address: Address) -> grpc.Channel:
    """A blocking channel; the caller closes it."""
    if address.ca_pem is None:
        return grpc.insecure_channel(address.target, options=channel_options())
    credentials = grpc.ssl_channel_credentials(root_certificates=address.ca_pem)
    return grpc.secure_channel(address.target, credentials, options=channel_options())


def async_channel(address: Address) -> grpc.aio.Channel:
    """An asyncio channel; it belongs to the running event loop and the caller closes it."""
    if address.ca_pem is None:
        return grpc.aio.insecure_channel(address.target, options=channel_options())
    credentials = grpc.ssl_channel_credentials(root_certificates=address.ca_pem)
    return grpc.aio.secure_channel(address.target, credentials, options=channel_options())
