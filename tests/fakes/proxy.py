"""A TCP proxy whose faults are switched while it runs: what stands between a machine and its server."""

import asyncio
import enum
import socket
import struct
from dataclasses import dataclass, field
from typing import Self

_CHUNK_BYTES = 16 * 1024
_BUFFER_BYTES = 8 * 1024
"""Of a socket: a slow way with a deep buffer would hold minutes of traffic."""
_TICK_S = 0.05


class Fault(enum.Enum):
    """What is wrong with the way."""

    NONE = "none"
    BLACK_HOLE = "black hole"
    """Nothing is read and nothing forwarded; connections stay open, new ones are accepted, and all go on once it
    is over."""
    SILENT = "acknowledged and silent"
    """Everything is read and dropped; what lost bytes stays silent for good."""
    RESET = "reset"
    """Present and new connections end with RST."""
    REFUSE = "refuse"
    """Present and new connections end, new ones because nobody listens."""
    THROTTLE = "throttle"
    """`bytes_per_s` in each direction."""
    DELAY = "delay"
    """Each piece waits `delay_s`."""
    CUT = "cut"
    """Each connection ends with RST after `after_bytes` more."""
    HALF_CLOSE = "half close"
    """The server's side says that it has ended; what the client sends is dropped."""


@dataclass(eq=False)
class _Pair:
    client: socket.socket
    server: socket.socket
    lost_bytes: bool = False
    pumps: list["asyncio.Task[None]"] = field(default_factory=list)

    def end(self, *, reset: bool) -> None:
        for one in (self.client, self.server):
            _close(one, reset=reset)
        for pump in self.pumps:
            pump.cancel()


class FaultProxy:
    """Forwards 127.0.0.1:`port` to a server; an async context manager."""

    def __init__(self, target: str) -> None:
        """Give HOST:PORT of the server; `target` may be changed later and counts for new connections."""
        self.target = target
        self.port = 0
        self.accepted = 0
        """Connections taken so far."""
        self.fault = Fault.NONE
        self._bytes_per_s = 0
        self._delay_s = 0.0
        self._left_bytes = 0
        self._changed = asyncio.Event()
        self._pairs: set[_Pair] = set()
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def has_cut(self) -> bool:
        """Whether the bytes of CUT are through, and the connection has ended."""
        return self.fault is Fault.CUT and self._left_bytes <= 0

    async def __aenter__(self) -> Self:
        self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_listening()
        self._end_all(reset=False)

    def break_with(
        self, fault: Fault, *, bytes_per_s: int = 2000, delay_s: float = 0.5, after_bytes: int = 1000
    ) -> None:
        """Switch a fault on, in place of the one before."""
        self.fault = fault
        self._bytes_per_s, self._delay_s, self._left_bytes = bytes_per_s, delay_s, after_bytes
        if fault is Fault.REFUSE:
            self._stop_listening()
        else:
            self._listen()
        if fault in (Fault.RESET, Fault.REFUSE):
            self._end_all(reset=True)
        if fault is Fault.HALF_CLOSE:
            for pair in self._pairs:
                pair.lost_bytes = True
                _shut(pair.client)
        self._changed.set()
        self._changed = asyncio.Event()

    def heal(self) -> None:
        """Switch every fault off."""
        self.break_with(Fault.NONE)

    def _listen(self) -> None:
        if self._listening is not None:
            return
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        listening.setblocking(False)
        listening.bind(("127.0.0.1", self.port))
        listening.listen()
        self.port = listening.getsockname()[1]
        self._listening = listening
        self._accepting = asyncio.create_task(self._accept(listening))

    def _stop_listening(self) -> None:
        if self._listening is not None and self._accepting is not None:
            self._accepting.cancel()
            self._listening.close()
            self._listening = self._accepting = None

    def _end_all(self, *, reset: bool) -> None:
        for pair in list(self._pairs):
            pair.end(reset=reset)
        self._pairs.clear()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listening)
            client.setblocking(False)
            self.accepted += 1
            if self.fault is Fault.RESET:
                _close(client, reset=True)
                continue
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            server.setblocking(False)
            host, _, port = self.target.rpartition(":")
            try:
                await loop.sock_connect(server, (host, int(port)))
            except OSError:
                _close(client, reset=True)
                server.close()
                continue
            pair = _Pair(client, server)
            self._pairs.add(pair)
            for source, sink in ((client, server), (server, client)):
                pump = asyncio.create_task(self._pump(pair, source, sink))
                pair.pumps.append(pump)

    async def _pump(self, pair: _Pair, source: socket.socket, sink: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._hole_is_over()
                slow = self.fault is Fault.THROTTLE
                size = max(1, int(self._bytes_per_s * _TICK_S)) if slow else _CHUNK_BYTES
                data = await loop.sock_recv(source, size)
                # It was waiting for these bytes when the hole opened.
                await self._hole_is_over()
                if not data:
                    _shut(sink)
                    return
                if self.fault is Fault.SILENT:
                    pair.lost_bytes = True
                if pair.lost_bytes:
                    continue
                if slow:
                    await asyncio.sleep(len(data) / self._bytes_per_s)
                elif self.fault is Fault.DELAY:
                    await asyncio.sleep(self._delay_s)
                await loop.sock_sendall(sink, data)
                if self.fault is Fault.CUT:
                    self._left_bytes -= len(data)
                    if self._left_bytes <= 0:
                        self._pairs.discard(pair)
                        pair.end(reset=True)
                        return
        except OSError:
            self._pairs.discard(pair)
            pair.end(reset=True)

    async def _hole_is_over(self) -> None:
        while self.fault is Fault.BLACK_HOLE:
            await self._changed.wait()


def _close(one: socket.socket, *, reset: bool) -> None:
    if one.fileno() < 0:
        return
    if reset:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    asyncio.get_running_loop().remove_reader(one)
    asyncio.get_running_loop().remove_writer(one)
    one.close()


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_WR)
    except OSError:
        return
