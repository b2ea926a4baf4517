"""Channels to a server: keepalive that notices a dead peer, size caps, retries of safe calls, credentials."""

import json
from datetime import timedelta
from typing import Any

import grpc

from podium.link.addresses import Address
from podium.link.bearer import async_token_interceptors, with_token

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
DEFAULT_DEADLINE = timedelta(seconds=30)

# Calls that may safely be sent again: reads, and writes that carry their own idempotency key.
_RETRIED_METHODS = (
    ("podium.v1.TaskService", ("SubmitTask", "GetTask", "ListTasks", "CancelTask")),
    ("podium.v1.BlobService", ("Stat",)),
    ("podium.v1.RegistryService", ("ListAgents", "GetAgent")),
    ("podium.v1.ReviewService", ("ListReviews",)),
)


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
        channel = grpc.insecure_channel(address.target, options=channel_options())
    else:
        channel = grpc.secure_channel(address.target, _credentials(address), options=channel_options())
    return with_token(channel, address.token) if address.token else channel


def async_channel(address: Address) -> grpc.aio.Channel:
    """An asyncio channel; it belongs to the running event loop and the caller closes it."""
    interceptors = async_token_interceptors(address.token) if address.token else []
    if address.ca_pem is None:
        return grpc.aio.insecure_channel(address.target, options=channel_options(), interceptors=interceptors)
    return grpc.aio.secure_channel(
        address.target, _credentials(address), options=channel_options(), interceptors=interceptors
    )


def _credentials(address: Address) -> grpc.ChannelCredentials:
    machine = address.machine
    return grpc.ssl_channel_credentials(
        root_certificates=address.ca_pem,
        private_key=machine.key_pem if machine is not None else None,
        certificate_chain=machine.certificate_pem if machine is not None else None,
    )
