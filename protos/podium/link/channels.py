"""Channels to a server: keepalive that notices a dead peer, size caps, retries of safe calls, credentials."""

import json
from datetime import timedelta
from typing import Any

import grpc

from podium.link.addresses import Address
from podium.link.bearer import async_token_interceptors, with_token
from podium.link.tracing import async_trace_interceptor, with_trace

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
DEFAULT_DEADLINE = timedelta(seconds=30)

# Calls that may safely be sent again: reads, and writes that carry their own idempotency key.
_RETRIED_METHODS = (
    ("podium.v1.TaskService", ("SubmitTask", "GetTask", "ListTasks", "CancelTask")),
    ("podium.v1.BlobService", ("Stat",)),
    ("podium.v1.RegistryService", ("ListAgents", "GetAgent", "GetPlanner")),
    ("podium.v1.ReviewService", ("ListReviews",)),
)


_PATIENT_PING_MS = 180_000
"""A ping waits behind the data on the way. At 2 kB/s that is up to 40 s, and with a ping timeout of 10 s a message
of 20 kB never arrived (measured with `tbf`)."""


def channel_options(*, patient: bool = False) -> list[tuple[str, Any]]:
    """Options of every client channel: keepalive, ping timeout, size caps and retries of safe calls.

    A dead link is noticed within about 30 s (20 s keepalive, 10 s timeout).

    Args:
        patient: for machines behind slow lines, whose streams have heartbeats and whose calls have deadlines: gRPC
            itself ends a connection only when the kernel has waited 60 s for an acknowledgement of sent bytes, or
            for room at the other end, or a ping was not answered for minutes.
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
        # Also TCP_USER_TIMEOUT: how long the kernel waits for an acknowledgement.
        ("grpc.keepalive_timeout_ms", 60_000 if patient else 10_000),
        ("grpc.http2.ping_timeout_ms", _PATIENT_PING_MS if patient else 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", 16 * MAX_MESSAGE_BYTES),
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(service_config)),
        # A proxy taken from the environment would carry loopback traffic elsewhere.
        ("grpc.enable_http_proxy", 0),
        # A server that moved is looked for under its name at once, not after gRPC's 30 s.
        ("grpc.dns_min_time_between_resolutions_ms", 1_000),
        # Channels of one process share connections otherwise, and with them the wait after a failed attempt.
        ("grpc.use_local_subchannel_pool", 1),
    ]


def sync_channel(address: Address) -> grpc.Channel:
    """A blocking channel; the caller closes it."""
    if address.ca_pem is None:
        channel = grpc.insecure_channel(address.target, options=channel_options())
    else:
        channel = grpc.secure_channel(address.target, _credentials(address), options=channel_options())
    return with_trace(with_token(channel, address.token) if address.token else channel)


def async_channel(address: Address, *, patient: bool = False) -> grpc.aio.Channel:
    """An asyncio channel; it belongs to the running event loop and the caller closes it.

    Args:
        address: where to, and with which credentials.
        patient: see `channel_options`.
    """
    interceptors = [async_trace_interceptor()]
    if address.token:
        interceptors += async_token_interceptors(address.token)
    options = channel_options(patient=patient)
    if address.ca_pem is None:
        return grpc.aio.insecure_channel(address.target, options=options, interceptors=interceptors)
    return grpc.aio.secure_channel(
        address.target, _credentials(address), options=options, interceptors=interceptors
    )


def _credentials(address: Address) -> grpc.ChannelCredentials:
    machine = address.machine
    return grpc.ssl_channel_credentials(
        root_certificates=address.ca_pem,
        private_key=machine.key_pem if machine is not None else None,
        certificate_chain=machine.certificate_pem if machine is not None else None,
    )
