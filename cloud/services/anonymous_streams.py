"""Streams that anybody may open: watches of health, and reflection. So many at once, from one place and in all."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc_status import rpc_status as grpc_rpc_status

from cloud.identity.attempts import place_of
from podium.errors import LimitExceeded
from podium.rpc_status import to_status

MOST = 64
MOST_FROM_ONE_PLACE = 8
"""A place is a host; of IPv6 a network."""

Context = grpc.aio.ServicerContext[Any, Any]


class AnonymousStreams:
    """Counts the open ones; belongs to the event loop that serves them."""

    def __init__(self, *, most: int = MOST, most_from_one_place: int = MOST_FROM_ONE_PLACE) -> None:
        self._most = most
        self._most_from_one_place = most_from_one_place
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, peer: str) -> Iterator[None]:
        """Count one more while inside.

        Args:
            peer: as gRPC names it, e.g. ``ipv4:192.0.2.7:5000``.

        Raises:
            LimitExceeded: as many are open as may be.
        """
        place = place_of(peer)
        if self._open[place] >= self._most_from_one_place or self._open.total() >= self._most:
            raise LimitExceeded(
                f"{self._open[place]} streams without credentials are open from {place}, of"
                f" {self._most_from_one_place} at most, and {self._open.total()} of {self._most} in all",
                next_step="End some of them, or ask for the health with Check, which is not a stream.",
            )
        self._open[place] += 1
        try:
            yield
        finally:
            self._open[place] -= 1
            if not self._open[place]:
                del self._open[place]

    def limited(self, handler: Any) -> Any:
        """A method's handler that keeps to the limits; one with a single response is left as it is."""
        if not handler.response_streaming:
            return handler
        inner = handler.stream_stream if handler.request_streaming else handler.unary_stream

        async def serve(request: Any, context: Context) -> None:
            try:
                with self.one(context.peer()):
                    await _serve(inner, request, context)
                return
            except LimitExceeded as error:
                refused = grpc_rpc_status.to_status(to_status(error))
            # Outside of any `except`: gRPC's abort raises an exception of its own.
            await context.abort(refused.code, refused.details, refused.trailing_metadata)

        make: Callable[..., Any] = (
            grpc.stream_stream_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_stream_rpc_method_handler
        )
        return make(
            serve,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


async def _serve(
    inner: Callable[[Any, Context], AsyncIterator[Any] | Awaitable[None]], request: Any, context: Context
) -> None:
    """Both ways in which a method may be written: one yields its responses, the other writes them itself."""
    served = inner(request, context)
    if isinstance(served, AsyncIterator):
        async for response in served:
            await context.write(response)
    else:
        await served
