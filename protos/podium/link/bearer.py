"""Send a bearer token with every call, also in clear on loopback, where gRPC's call credentials refuse to."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import grpc

AUTHORIZATION = "authorization"


class ClientCallDetails(NamedTuple):
    """What gRPC asks of client call details; its own class cannot be made anew with other metadata."""

    method: Any
    timeout: Any
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any = None

    @classmethod
    def like(cls, details: Any, metadata: Any) -> "ClientCallDetails":
        """The details of a blocking call with other metadata."""
        return cls(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            getattr(details, "wait_for_ready", None),
            getattr(details, "compression", None),
        )


class _SyncToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    def __init__(self, token: str) -> None:
        self._entry = (AUTHORIZATION, f"Bearer {token}")

    def _intercept(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or ()), self._entry]
        return continuation(ClientCallDetails.like(details, metadata), request)

    # `Any`, because one function serves all four kinds, which the base classes type one by one.
    intercept_unary_unary: Any = _intercept
    intercept_unary_stream: Any = _intercept
    intercept_stream_unary: Any = _intercept
    intercept_stream_stream: Any = _intercept


class _AsyncToken:
    def __init__(self, token: str) -> None:
        self._entry = (AUTHORIZATION, f"Bearer {token}")

    async def _intercept(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), self._entry)
        return await continuation(details._replace(metadata=metadata), request)


class _AsyncUnaryUnary(_AsyncToken, grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary: Any = _AsyncToken._intercept


class _AsyncUnaryStream(_AsyncToken, grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream: Any = _AsyncToken._intercept


class _AsyncStreamUnary(_AsyncToken, grpc.aio.StreamUnaryClientInterceptor):
    intercept_stream_unary: Any = _AsyncToken._intercept


class _AsyncStreamStream(_AsyncToken, grpc.aio.StreamStreamClientInterceptor):
    intercept_stream_stream: Any = _AsyncToken._intercept


def with_token(channel: grpc.Channel, token: str) -> grpc.Channel:
    """The channel, sending the token with every call."""
    return grpc.intercept_channel(channel, _SyncToken(token))


def async_token_interceptors(token: str) -> Sequence[grpc.aio.ClientInterceptor]:
    """Interceptors for an asyncio channel; gRPC sorts each kind out by its class, so there is one for each."""
    kinds = (_AsyncUnaryUnary, _AsyncUnaryStream, _AsyncStreamUnary, _AsyncStreamStream)
    return [kind(token) for kind in kinds]
