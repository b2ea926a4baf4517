"""What every call of ours goes through: strict decoding, a time limit, and errors that keep their type.

A handler raises errors of `podium.errors`, and nothing else needs to be done. What it raises beyond them is a
defect: it is logged with its traceback, and the caller is told an incident number only.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_status import rpc_status as grpc_rpc_status

from cloud.services.fields import check_enums
from podium.errors import InternalError, InvalidRequest, PodiumError, TimeLimitExceeded
from podium.rpc_status import to_status

_LOG = logging.getLogger(__name__)
_OURS = "/podium.v1."

Context = grpc.aio.ServicerContext[Any, Any]


class GuardInterceptor(grpc.aio.ServerInterceptor):
    """Guards every method of `podium.v1`; health and reflection are left as they are."""

    def __init__(self, *, call_limit: timedelta) -> None:
        """Limit calls.

        Args:
            call_limit: longest time of a call with one response; streams live as long as their callers want.
        """
        self._call_limit_s = call_limit.total_seconds()

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        # An unknown method has no handler; gRPC answers UNIMPLEMENTED itself.
        if handler is None or not method.startswith(_OURS):
            return handler
        return _Guarded(method, handler, self._call_limit_s).handler()


class _Guarded:
    """One method behind the guard. Decoding is ours, so that bytes that are no message get a typed error too."""

    def __init__(self, method: str, handler: Any, call_limit_s: float) -> None:
        self._method = method
        self._inner = handler
        self._call_limit_s = call_limit_s

    def handler(self) -> "grpc.RpcMethodHandler[Any, Any]":
        serializer = self._inner.response_serializer
        match self._inner.request_streaming, self._inner.response_streaming:
            case False, False:
                return grpc.unary_unary_rpc_method_handler(self._unary_unary, response_serializer=serializer)
            case False, True:
                return grpc.unary_stream_rpc_method_handler(self._unary_stream, response_serializer=serializer)
            case True, False:
                return grpc.stream_unary_rpc_method_handler(self._stream_unary, response_serializer=serializer)
            case _:
                return grpc.stream_stream_rpc_method_handler(self._stream_stream, response_serializer=serializer)

    async def _unary_unary(self, data: bytes, context: Context) -> Any:
        try:
            async with asyncio.timeout(self._call_limit_s):
                return await self._inner.unary_unary(self._decode(data), context)
        except Exception as error:  # noqa: BLE001 - everything is told, nothing swallowed
            failure = error
        return await self._abort(context, failure)

    async def _stream_unary(self, pieces: AsyncIterator[bytes], context: Context) -> Any:
        try:
            return await self._inner.stream_unary(self._decode_all(pieces), context)
        except Exception as error:  # noqa: BLE001 - everything is told, nothing swallowed
            failure = error
        return await self._abort(context, failure)

    async def _unary_stream(self, data: bytes, context: Context) -> AsyncIterator[Any]:
        try:
            async for response in self._inner.unary_stream(self._decode(data), context):
                yield response
            return
        except Exception as error:  # noqa: BLE001 - everything is told, nothing swallowed
            failure = error
        await self._abort(context, failure)

    async def _stream_stream(self, pieces: AsyncIterator[bytes], context: Context) -> AsyncIterator[Any]:
        try:
            async for response in self._inner.stream_stream(self._decode_all(pieces), context):
                yield response
            return
        except Exception as error:  # noqa: BLE001 - everything is told, nothing swallowed
            failure = error
        await self._abort(context, failure)

    def _decode(self, data: bytes) -> Any:
        try:
            message = self._inner.request_deserializer(data)
        except DecodeError as error:
            raise InvalidRequest(
                f"the request of {self._method} is not a valid message: {error}",
                next_step="Send UTF-8 text (no lone surrogates) in a message of the published protos.",
            ) from error
        check_enums(message)
        return message

    async def _decode_all(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for data in pieces:
            yield self._decode(data)

    async def _abort(self, context: Context, error: Exception) -> Any:
        # Outside of any `except`: gRPC's abort raises an exception of its own, which must not be caught again.
        told = self._podium_error(error)
        # Without the message, which may quote what the caller wrote.
        _LOG.info("%s ended with %s (%s)", self._method, told.code, told.field)
        status = grpc_rpc_status.to_status(to_status(told))
        await context.abort(status.code, status.details, status.trailing_metadata)

    def _podium_error(self, error: Exception) -> PodiumError:
        if isinstance(error, PodiumError):
            return error
        if isinstance(error, TimeoutError):
            return TimeLimitExceeded(f"{self._method} took longer than {self._call_limit_s:g} s")
        incident = uuid.uuid4().hex[:12]
        _LOG.error("incident %s in %s", incident, self._method, exc_info=error)
        return InternalError(
            f"an unexpected error; incident {incident}",
            next_step=f"Look for incident {incident} in the server's log and report it; it is a defect in Podium.",
        )
