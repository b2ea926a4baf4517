"""A machine's end of a stream: greet, send what the outbox holds, show that one is alive, notice silence.

`Reconnecting` calls a function that opens a stream with `upward` as what it sends and then `hold`s it. The
messages of each kind of machine differ, so those two are told how a greeting and a heartbeat look.
"""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, TypeVar

from podium.link.liveness import Patience, ready_or_due
from podium.link.outbox import Numbered, Outbox
from podium.link.reconnecting import Connection

M = TypeVar("M", bound=Numbered)
R = TypeVar("R")

WELCOME_WITHIN = timedelta(seconds=25)
"""For name resolution, TCP, TLS, HTTP/2 and the server's greeting together; at 2 kB/s they take about 5 s."""


async def upward(
    connection: Connection, outbox: Outbox[M], *, hello: M, heartbeat: Callable[[int], M]
) -> AsyncIterator[M]:
    """What is sent over one connection, until it ends.

    Args:
        connection: `welcomed` and `heartbeats` are set by whoever reads the stream, which then sets `wake`.
        outbox: what it holds is sent in order, from the oldest on.
        hello: the greeting.
        heartbeat: makes one that announces so many bytes, or none.
    """
    yield hello
    # The welcome says what the server has already: over a slow line it is a pity to send that again.
    while not connection.welcomed and not connection.ended:
        connection.wake.clear()
        await connection.wake.wait()
    beats = connection.heartbeats
    if beats is not None:
        # At once: so the server knows that this is no dead process's last word.
        yield heartbeat(0)
    sent = 0
    while not connection.ended:
        connection.wake.clear()
        while not connection.ended and (message := outbox.following(sent)) is not None:
            if beats is not None and (announced := beats.to_announce(message.ByteSize())):
                yield heartbeat(announced)
            yield message
            sent = message.sequence
        if not await ready_or_due(connection.wake, beats.interval if beats is not None else None):
            yield heartbeat(0)


async def hold(
    connection: Connection,
    call: Any,
    receive: Callable[[R], int],
    *,
    who: str,
    welcome_within: timedelta = WELCOME_WITHIN,
) -> None:
    """Read a stream until it ends.

    Args:
        connection: marked as ended at the end.
        call: the gRPC call, an asynchronous iterator of what comes down.
        receive: given each message; returns how many bytes it announces of the next one.
        who: the other side, named in errors.
        welcome_within: how long the first message may take.

    Raises:
        PeerSilent: nothing was heard for too long.
        grpc.aio.AioRpcError: how the stream ended.
    """
    async with Patience(who=who, first=welcome_within) as patience:
        try:
            async for response in call:
                announced = receive(response)
                # Only now: the welcome that was just received may have said how often to expect something.
                patience.heard(connection.heartbeats, announced)
        finally:
            call.cancel()
            connection.end()
