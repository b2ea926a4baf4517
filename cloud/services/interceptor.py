"""What every call of ours goes through: who calls, strict decoding, a time limit, and errors that keep their type.

A handler raises errors of `podium.errors`, and nothing else needs to be done. What it raises beyond them is a
defect: it is logged with its traceback, and the caller is told an incident number only.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, aclosing
from datetime import timedelta
from typing import Any, Protocol

import grpc
from google.protobuf.message import DecodeError
from grpc_status import rpc_status as grpc_rpc_status

from cloud.auth.authentication import Authentication
from cloud.auth.principal import Principal, serve_as
from cloud.auth.roles import OPEN, check_may_call
from cloud.services.anonymous_streams import AnonymousStreams
from cloud.services.fields import check_enums
from cloud.services.live import LiveCall, LiveCalls
from podium.errors import InternalError, InvalidRequest, PodiumError, TimeLimitExceeded
from podium.rpc_status import to_status
from podium.telemetry import Span, of_metadata, recording, span

_LOG = logging.getLogger(__name__)
_OURS = "/podium.v1."

Context = grpc.aio.ServicerContext[Any, Any]


class CallObserver(Protocol):
    """Counts calls."""

    def call_began(self, method: str, *, streams: bool) -> None:
        """A call is being served."""
        ...

    def call_ended(self, method: str, code: str, seconds: float, *, streams: bool) -> None:
        """A call was served."""
        ...


class GuardInterceptor(grpc.aio.ServerInterceptor):
    """Guards every method of `podium.v1`; of health and reflection only the number of streams is limited."""

    def __init__(
        self,
        *,
        call_limit: timedelta,
        authentication: Authentication,
        live: LiveCalls,
        observer: CallObserver | None = None,
    ) -> None:
        """Limit calls to those who may make them, and in time.

        Args:
            call_limit: longest time of a call with one response; streams live as long as their callers want.
            authentication: says who calls.
            live: gets to know every call.
            observer: counts calls; nobody does when None.
        """
        self._call_limit_s = call_limit.total_seconds()
        self._authentication = authentication
        self._live = live
        self._anonymous = AnonymousStreams()
        self.observer = observer
        """Counts calls, if anybody does."""

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        # An unknown method has no handler; gRPC answers UNIMPLEMENTED itself.
        if handler is None:
            return None
        if not method.startswith(_OURS):
            limited: grpc.RpcMethodHandler[Any, Any] = self._anonymous.limited(handler)
            return limited
        return _Guarded(method, handler, self).handler()

    def admit(self, method: str, context: Context) -> Principal:
        """Who calls a method, if they may.

        Raises:
            Unauthenticated: they are not known.
            PermissionDenied: they are, and may not call this.
        """
        if method in OPEN:
            return Principal.anonymous()
        principal = self._authentication.principal(context.invocation_metadata() or (), context.auth_context())
        check_may_call(method, principal.roles, principal.caller)
        return principal

    def serving(self, principal: Principal, method: str, *, streams: bool) -> AbstractContextManager[LiveCall]:
        """Keep a call on the list of those that are being served."""
        return self._live.serving(principal, method, streams=streams)

    @property
    def call_limit_s(self) -> float:
        """Longest time of a call with one request and one response."""
        return self._call_limit_s


class _Guarded:
    """One method behind the guard.

    Decoding is ours, so that nothing is decoded for those who may not call, and bytes that are no message get a
    typed error too. Streams are written here and not by gRPC, so that a call which is ended is always inside.
    """

    def __init__(self, method: str, handler: Any, guard: GuardInterceptor) -> None:
        self._method = method
        self._inner = handler
        self._guard = guard

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
        async def serve() -> Any:
            async with asyncio.timeout(self._guard.call_limit_s):
                return await self._inner.unary_unary(self._decode(data), context)

        return await self._serve(serve, context, streams=False)

    async def _stream_unary(self, pieces: AsyncIterator[bytes], context: Context) -> Any:
        async def serve() -> Any:
            return await self._inner.stream_unary(self._decode_all(pieces), context)

        return await self._serve(serve, context, streams=True)

    async def _unary_stream(self, data: bytes, context: Context) -> None:
        async def serve() -> None:
            await _write_all(self._inner.unary_stream(self._decode(data), context), context)

        await self._serve(serve, context, streams=True)

    async def _stream_stream(self, pieces: AsyncIterator[bytes], context: Context) -> None:
        async def serve() -> None:
            await _write_all(self._inner.stream_stream(self._decode_all(pieces), context), context)

        await self._serve(serve, context, streams=True)

    async def _serve(self, serve: Callable[[], Awaitable[Any]], context: Context, *, streams: bool) -> Any:
        with _Observed(self._method, context, self._guard.observer, streams=streams) as observed:
            return await self._served(serve, context, observed, streams=streams)

    async def _served(
        self, serve: Callable[[], Awaitable[Any]], context: Context, observed: "_Observed", *, streams: bool
    ) -> Any:
        call: LiveCall | None = None
        failure: Exception
        try:
            principal = self._guard.admit(self._method, context)
            with self._guard.serving(principal, self._method, streams=streams) as call:
                serve_as(principal)
                return await serve()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if call is None or call.ended_with is None or task is None:
                raise  # the caller went away, or the server stops
            task.uncancel()
            failure = call.ended_with
        except Exception as error:  # noqa: BLE001 - everything is told, nothing swallowed
            failure = error
        return await self._abort(context, failure, observed)

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

    async def _abort(self, context: Context, error: Exception, observed: "_Observed") -> Any:
        # Outside of any `except`: gRPC's abort raises an exception of its own, which must not be caught again.
        told = self._podium_error(error)
        # Without the message, which may quote what the caller wrote.
        _LOG.info("%s ended with %s (%s)", self._method, told.code, told.field)
        status = grpc_rpc_status.to_status(to_status(told))
        observed.failed(told, status.code.name)
        await context.abort(status.code, status.details, status.trailing_metadata)

    def _podium_error(self, error: Exception) -> PodiumError:
        if isinstance(error, PodiumError):
            return error
        if isinstance(error, TimeoutError):
            return TimeLimitExceeded(f"{self._method} took longer than {self._guard.call_limit_s:g} s")
        incident = uuid.uuid4().hex[:12]
        _LOG.error("incident %s in %s", incident, self._method, exc_info=error)
        return InternalError(
            f"an unexpected error; incident {incident}",
            next_step=f"Look for incident {incident} in the server's log and report it; it is a defect in Podium.",
        )


class _Observed:
    """One call as spans and metrics see it. A stream lives for days and has no span; what comes over it has."""

    def __init__(self, method: str, context: Context, observer: CallObserver | None, *, streams: bool) -> None:
        self._method = method.removeprefix("/podium.v1.")
        self._context = context
        self._observer = observer
        self._streams = streams
        self._spans = ExitStack()
        self._code = "OK"
        self._error = ""
        self._begun = 0.0

    def __enter__(self) -> "_Observed":
        if self._observer is not None:
            self._begun = time.perf_counter()
            self._observer.call_began(self._method, streams=self._streams)
        if self._streams:
            return self
        above = of_metadata(self._context.invocation_metadata())
        if above is not None or recording():
            live = self._spans.enter_context(
                span(self._method, kind="server", parent=above, attributes={"rpc.system": "grpc"})
            )
            self._spans.push(self._tell(live))
        return self

    def failed(self, error: PodiumError, code: str) -> None:
        """Note what the caller is told."""
        self._code, self._error = code, error.code

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, asyncio.CancelledError):
            self._code, self._error = "CANCELLED", "CANCELLED"
        self._spans.__exit__(kind, error, trace)
        if self._observer is not None:
            seconds = time.perf_counter() - self._begun
            self._observer.call_ended(self._method, self._code, seconds, streams=self._streams)

    def _tell(self, live: Span) -> Callable[..., None]:
        def tell(*_: object) -> None:
            live.set("rpc.response.status_code", self._code)
            if self._error:
                live.failed(self._error)

        return tell


async def _write_all(responses: AsyncGenerator[Any, None], context: Context) -> None:
    async with aclosing(responses):
        async for response in responses:
            await context.write(response)
