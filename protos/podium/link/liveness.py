"""Heartbeats: how both ends of a stream notice that the other has gone silent, without killing a slow line.

gRPC's own pings do not do it alone: whatever answers them (a proxy, a kernel) is not the program behind it, and a
ping that must be answered within seconds is a death sentence for a line of 2 kB/s, where it waits behind the data
on the way. So each end sends something at least every `interval`, says before a large message how much follows,
and gives up when nothing was heard for `silence`, longer by what was announced.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Self

from podium.errors import ServerUnavailable
from podium.link.channels import MAX_MESSAGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """How often one is sent and how long silence is borne."""

    interval: timedelta = timedelta(seconds=8)
    announced_from_bytes: int = 8 * 1024
    """A message of this size is announced; at the slowest rate it fits into the silence that is borne anyway."""
    slowest_bytes_per_s: int = 1000
    """A line that is slower than this is as good as none."""

    @property
    def silence(self) -> timedelta:
        """How long nothing may be heard: 25 s by default, so that the end is noticed within 30 s."""
        return self.interval * 3 + timedelta(seconds=1)

    def to_announce(self, size_bytes: int) -> int:
        """What to announce before a message of a size; 0 when nothing need be said."""
        return size_bytes if size_bytes >= self.announced_from_bytes else 0


DEFAULT_HEARTBEATS = Heartbeats()


class PeerSilent(ServerUnavailable):
    """The connection is open and nothing comes over it any more."""

    code = "PEER_SILENT"
    advice = "The link connects again by itself; if this goes on, look at the network between the two."


class Patience:
    """A time limit that begins anew whenever something is heard; a context manager around the waiting."""

    def __init__(self, *, who: str, first: timedelta | None) -> None:
        """Begin to wait.

        Args:
            who: named in the error, e.g. "the cloud".
            first: how long the first word may take; None for any time.
        """
        self._who = who
        self._borne_s = first.total_seconds() if first is not None else 0.0
        self._limit = asyncio.timeout(first.total_seconds() if first is not None else None)

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as timeout:
            if not self._limit.expired():
                raise
            raise PeerSilent(f"nothing was heard of {self._who} for {self._borne_s:.0f} s") from timeout

    def heard(self, heartbeats: Heartbeats | None, bytes_to_follow: int = 0) -> None:
        """Something came; wait anew.

        Args:
            heartbeats: how long silence is borne; None waits without a limit, because the other side sends none.
            bytes_to_follow: announced of the next message.
        """
        if heartbeats is None:
            self.suspend()
            return
        announced = min(bytes_to_follow, MAX_MESSAGE_BYTES)
        self._borne_s = heartbeats.silence.total_seconds() + announced / heartbeats.slowest_bytes_per_s
        self._limit.reschedule(asyncio.get_running_loop().time() + self._borne_s)

    def suspend(self) -> None:
        """Wait without a limit until something is heard: what came last is still being worked on."""
        self._limit.reschedule(None)


async def ready_or_due(waiting: "asyncio.Event", interval: timedelta | None) -> bool:
    """Wait for an event; False when a heartbeat is due first."""
    if interval is None:
        await waiting.wait()
        return True
    try:
        async with asyncio.timeout(interval.total_seconds()):
            await waiting.wait()
    except TimeoutError:
        return False
    return True
