"""Send the place in the trace with every call that has one answer, so that the server's work is part of it."""

from collections.abc import Callable
from typing import Any

import grpc

from podium.link.bearer import ClientCallDetails
from podium.telemetry.spans import current
from podium.telemetry.trace_context import TRACEPARENT


class _SyncTrace(grpc.UnaryUnaryClientInterceptor):
    def _intercept(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        if (context := current()) is None:
            return continuation(details, request)
        metadata = [*(details.metadata or ()), (TRACEPARENT, context.traceparent)]
        return continuation(ClientCallDetails.like(details, metadata), request)

    intercept_unary_unary: Any = _intercept


class _AsyncTrace(grpc.aio.UnaryUnaryClientInterceptor):
    async def _intercept(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        if (context := current()) is not None:
            metadata = grpc.aio.Metadata(*(details.metadata or ()), (TRACEPARENT, context.traceparent))
            details = details._replace(metadata=metadata)
        return await continuation(details, request)

    intercept_unary_unary: Any = _intercept


def with_trace(channel: grpc.Channel) -> grpc.Channel:
    """The channel, sending a traceparent where there is one."""
    return grpc.intercept_channel(channel, _SyncTrace())


def async_trace_interceptor() -> grpc.aio.ClientInterceptor:
    """The same for an asyncio channel."""
    return _AsyncTrace()
