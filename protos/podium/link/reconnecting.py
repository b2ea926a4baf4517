"""Hold one connection to a server for as long as the process runs: what every machine's link goes round in.

`Reconnecting` decides when to connect, when an attempt has failed for good and when the count of failures begins
anew; what travels over a connection is the business of the `serve` function it is given.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import grpc

from podium.errors import PodiumError, ServerUnavailable
from podium.link.addresses import Address, unreachable
from podium.link.liveness import Heartbeats
from podium.rpc_status import from_rpc_error

_PERMANENT = (
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before the next attempt: between `least` and a ceiling that doubles up to `longest`.

    Full jitter: a thousand machines that lost the same server come back spread over the whole time, not together
    at its end.
    """

    first: timedelta = timedelta(seconds=0.5)
    longest: timedelta = timedelta(seconds=30)
    least: timedelta = timedelta(milliseconds=50)

    def delay(self, failures: int, jitter: random.Random) -> timedelta:
        """The wait after so many failures in a row, at least one."""
        ceiling: timedelta = min(self.longest, self.first * 2 ** min(failures - 1, 20))
        return max(self.least, ceiling * jitter.random())


DEFAULT_BACKOFF = Backoff()


@dataclass(slots=True, eq=False)
class Connection:
    """One connection. What it needs to know is its own: one that has ended may still be writing for a while."""

    address: Address
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to write, and at the end."""
    welcomed: bool = False
    progressed: bool = False
    """Whether the server answered anything of use after its welcome."""
    ended: bool = False
    """Nothing more is to be written to it."""
    heartbeats: Heartbeats | None = None
    """What was agreed at the welcome; None when the server sends none."""

    def end(self) -> None:
        """Let the writing side finish: gRPC leaves it waiting for ever when the server ended the stream."""
        self.ended = True
        self.wake.set()


class Reconnecting:
    """Connects, and connects again with growing, jittered delays whenever the connection ends."""

    def __init__(
        self,
        address: Callable[[], Address],
        serve: Callable[[Connection], Awaitable[None]],
        *,
        jitter: random.Random,
        on_state: Callable[[str], None],
        on_failure: Callable[[PodiumError], None] = lambda error: None,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> None:
        """Connects only in `run`.

        Args:
            address: asked before every connection, so that another server or a renewed certificate counts at once.
            serve: holds one connection until it ends; sets `welcomed` and `progressed`.
            jitter: spreads the attempts.
            on_state: told in words why there is no connection.
            on_failure: told why a connection ended, before the next attempt.
            backoff: how long to wait between attempts.
        """
        self._address = address
        self._serve = serve
        self._jitter = jitter
        self._on_state = on_state
        self._on_failure = on_failure
        self._backoff = backoff
        self._at_once = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    def connect_anew(self) -> None:
        """End the present connection and connect at once: the address or the certificate is another one."""
        self._at_once.set()
        if self._serving is not None:
            self._serving.cancel()

    async def run(self, *, attempts: int | None = None) -> None:
        """Keep a connection up until cancelled.

        Args:
            attempts: give up after this many failed attempts in a row, or after twice as many when the server has
                answered before, because then it is restarting; None never gives up.

        Raises:
            ServerUnavailable: `attempts` were used up.
            PodiumError: the server will never accept this machine, or the address cannot be read.
        """
        failures = 0
        known = False
        loop = asyncio.get_running_loop()
        while True:
            connection = Connection(self._address())
            began_s = loop.time()
            error = await self._until_it_ends(connection)
            lasted_s = loop.time() - began_s
            # A server that greets and hangs up, each time, is as good as none: only a connection that was of some
            # use starts the count anew.
            lasted = lasted_s >= self._backoff.longest.total_seconds()
            useful = connection.progressed or (connection.welcomed and lasted)
            failures = 1 if useful else failures + 1
            known = known or connection.welcomed
            if self._at_once.is_set():
                self._at_once.clear()
                continue
            if attempts is not None and failures >= attempts * (2 if known else 1):
                raise ServerUnavailable(
                    f"{connection.address.target} cannot be reached: {error.message}", next_step=error.next_step
                ) from error
            self._on_failure(error)
            self._on_state(f"not connected: {error.message}")
            try:
                async with asyncio.timeout(self._backoff.delay(failures, self._jitter).total_seconds()):
                    await self._at_once.wait()
            except TimeoutError:
                continue
            self._at_once.clear()

    async def _until_it_ends(self, connection: Connection) -> PodiumError:
        """Why the connection ended, unless that is for good."""
        self._serving = asyncio.ensure_future(self._serve(connection))
        try:
            await self._serving
        except grpc.aio.AioRpcError as rpc_error:
            error = unreachable(connection.address, from_rpc_error(rpc_error))
            # What is wrong with the greeting stays wrong; after it, connecting again can put things right.
            misfit = not connection.welcomed and rpc_error.code() is grpc.StatusCode.INVALID_ARGUMENT
            refused = misfit or (rpc_error.code() in _PERMANENT and not error.retryable)
            # A certificate that was renewed while it was being refused is another one.
            if refused and self._address() == connection.address:
                raise error from rpc_error
            return error
        except ServerUnavailable as error:
            return error
        except asyncio.CancelledError:
            # Both can come at once, e.g. where a device stops in the moment in which its certificate is renewed.
            stopping = (task := asyncio.current_task()) is not None and task.cancelling()
            if stopping or not self._at_once.is_set():
                self._serving.cancel()
                raise
            return ServerUnavailable("the connection is made anew")
        finally:
            connection.end()
        return ServerUnavailable("the server closed the connection")
