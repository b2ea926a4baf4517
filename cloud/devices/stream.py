"""One connection of a device: its greeting, what is queued for it, and its heartbeats."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from cloud.services.fields import checked_text
from podium.errors import InvalidRequest, LimitExceeded
from podium.link.inbox import InboxSession
from podium.link.liveness import Heartbeats
from podium.v1 import edge_pb2

MAX_DEVICE_ID_CHARACTERS = 100
MAX_CAPABILITIES = 100
_HELLO_WITHIN = timedelta(seconds=25)
_MAX_OUTGOING = 256


@dataclass(slots=True, eq=False)
class Stream:
    """One connection. What it sends waits in `outgoing`; None or an error ends it."""

    session: InboxSession
    heartbeats: Heartbeats | None
    """None for a device that sends none."""
    outgoing: "asyncio.Queue[edge_pb2.ConnectResponse | BaseException | None]" = field(
        default_factory=asyncio.Queue
    )
    has_room: asyncio.Event = field(default_factory=asyncio.Event)
    """Unset while the device does not read what it is sent; then nothing more is read from it either."""

    def __post_init__(self) -> None:
        self.has_room.set()

    def send(self, **message: Any) -> None:
        """Queue a message with the present acknowledgement."""
        self.outgoing.put_nowait(self._response(**message))
        if self.outgoing.qsize() >= _MAX_OUTGOING:
            self.has_room.clear()

    def end(self, error: BaseException | None) -> None:
        """End the connection after what is queued."""
        self.outgoing.put_nowait(error)

    async def responses(self) -> AsyncIterator[edge_pb2.ConnectResponse]:
        """What is to be sent, heartbeats among it; raises what the connection ended with."""
        while isinstance(response := await self._next(), edge_pb2.ConnectResponse):
            beats = self.heartbeats
            if beats is not None and (announced := beats.to_announce(response.ByteSize())):
                yield self._response(heartbeat=edge_pb2.Heartbeat(bytes_to_follow=announced))
            yield response
        if response is not None:
            raise response

    async def _next(self) -> edge_pb2.ConnectResponse | BaseException | None:
        interval_s = self.heartbeats.interval.total_seconds() if self.heartbeats is not None else None
        try:
            async with asyncio.timeout(interval_s):
                response = await self.outgoing.get()
        except TimeoutError:
            return self._response(heartbeat=edge_pb2.Heartbeat())
        if self.outgoing.qsize() < _MAX_OUTGOING:
            self.has_room.set()
        return response

    def _response(self, **message: Any) -> edge_pb2.ConnectResponse:
        return edge_pb2.ConnectResponse(ack_through=self.session.applied_through, **message)


async def first_hello(requests: AsyncIterator[edge_pb2.ConnectRequest]) -> edge_pb2.Hello:
    """The greeting a connection begins with.

    Raises:
        InvalidRequest: it did not come in time, or is none.
        LimitExceeded: it names too many agents.
    """
    try:
        async with asyncio.timeout(_HELLO_WITHIN.total_seconds()):
            first = await anext(requests, None)
    except TimeoutError as error:
        raise InvalidRequest("no hello came", field="hello") from error
    if first is None or first.WhichOneof("message") != "hello":
        raise InvalidRequest("the first message of a stream must be hello", field="hello")
    hello = first.hello
    checked_text(hello.device_id, "hello.device_id", max_characters=MAX_DEVICE_ID_CHARACTERS, required=True)
    checked_text(hello.session_id, "hello.session_id", max_characters=MAX_DEVICE_ID_CHARACTERS)
    if len(hello.capabilities) > MAX_CAPABILITIES:
        raise LimitExceeded(f"{len(hello.capabilities)} capabilities; {MAX_CAPABILITIES} are allowed")
    return hello
