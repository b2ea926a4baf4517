"""One call of an agent: the request goes in, one answer comes out, and meanwhile its use is measured."""

import os
import select
import time
from collections.abc import Mapping
from typing import Any

from agents.sandbox import confinement
from agents.sandbox.frames import LENGTH, StreamEnded
from agents.sandbox.held import Agent, Ended
from agents.sandbox.process_tree import TreeUse, tree_use

_MEASURED_EVERY_S = 0.05
_ENDS_WITHIN_S = 0.2
"""How long a process whose pipe has closed has to be gone before it counts as one that closed it."""
_CHUNK_BYTES = 1 << 16
_SHOWN_BYTES = 40


class Call:
    """One call in progress."""

    def __init__(self, agent: Agent, call: Mapping[str, Any], *, server: int) -> None:
        """Start the clock.

        Args:
            agent: Whom to ask.
            call: What the server said: `time_limit_s` and `max_output_bytes`.
            server: Where the server speaks; it says nothing during a call, it may only go.
        """
        self._agent = agent
        self._server = server
        self._poller = select.poll()
        self._max_bytes: int = call["max_output_bytes"]
        self._time_limit_s: float = call["time_limit_s"]
        self._deadline = time.monotonic() + self._time_limit_s
        self._cpu_before = tree_use(os.getpid()).cpu_seconds
        self._cpu = 0.0
        self._noise_before = agent.noise_bytes
        self._received = bytearray()
        self._expected: int | None = None
        self._closed_since: float | None = None
        self._request = memoryview(b"")

    def carried_out(self, payload: bytes) -> tuple[dict[str, Any], bytes]:
        """Give the agent its request and wait for one whole answer.

        Raises:
            Ended: it went over a limit, broke the protocol or ended.
            StreamEnded: the server went away.
        """
        agent = self._agent
        if agent.served and _readable(agent.answers):
            raise Ended("stale", reason="it wrote although nobody had asked")
        self._request = memoryview(LENGTH.pack(len(payload)) + payload)
        for fd in (self._server, agent.answers, agent.noise):
            self._poller.register(fd, select.POLLIN)
        self._poller.register(agent.requests, select.POLLOUT)
        measured_at = 0.0
        while True:
            for fd, _ in self._poller.poll(_MEASURED_EVERY_S * 1000):
                if not self._moved(fd):
                    self._poller.unregister(fd)
            if self._expected is not None and len(self._received) == self._expected:
                return self._answered()
            now = time.monotonic()
            if now >= measured_at + _MEASURED_EVERY_S:
                self._measure(now)
                measured_at = now

    def _moved(self, fd: int) -> bool:
        """Read or write what can be now; False when there is nothing more to come on `fd`."""
        if fd == self._server:
            raise StreamEnded
        if fd == self._agent.requests:
            return self._give()
        if fd == self._agent.noise:
            return self._drain_noise()
        if self._receive():
            return True
        self._closed_since = time.monotonic()
        return False

    def _give(self) -> bool:
        try:
            self._request = self._request[os.write(self._agent.requests, self._request) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False  # it does not listen; how it ends is seen elsewhere
        return bool(self._request)

    def _drain_noise(self) -> bool:
        try:
            read = len(os.read(self._agent.noise, _CHUNK_BYTES))
        except BlockingIOError:
            return True
        self._agent.noise_bytes += read
        return read > 0

    def _receive(self) -> bool:
        """Take what there is of the answer, never more than it may have."""
        wanted = (LENGTH.size if self._expected is None else self._expected) - len(self._received)
        try:
            part = os.read(self._agent.answers, min(wanted, _CHUNK_BYTES)) if wanted else b""
        except BlockingIOError:
            return True
        self._received += part
        if self._expected is None and len(self._received) == LENGTH.size:
            begun = bytes(self._received)
            (self._expected,) = LENGTH.unpack(begun)
            if self._expected > self._max_bytes:
                raise self._too_long(begun)
            self._received.clear()
        return bool(part)

    def _too_long(self, begun: bytes) -> Ended:
        if all(32 <= byte < 127 or byte in b"\r\n\t" for byte in begun):
            return Ended("garbage", begins=_begins(begun + _some(self._agent.answers)))
        return self._over("max_output_bytes", self._expected or 0, self._max_bytes)

    def _answered(self) -> tuple[dict[str, Any], bytes]:
        use = tree_use(os.getpid())
        if _readable(self._agent.answers):
            raise Ended("garbage", begins="more than one answer")
        left = [pid for pid in use.pids if pid != self._agent.pid]
        self._check(use)
        if left and not self._agent.keeps_processes:
            raise Ended("left", processes=len(left))
        used_up = use.cpu_seconds > confinement.cpu_of_a_lifetime(self._agent.cpu_seconds) / 2
        reply = {
            "kind": "answer",
            "cpu_seconds": self._cpu,
            "peak_bytes": self._agent.peak_bytes,
            "printed_bytes": self._agent.noise_bytes - self._noise_before,
            "retire": used_up,
        }
        return reply, bytes(self._received)

    def _measure(self, now: float) -> None:
        if self._agent.gone():
            raise self._agent.crash()
        self._check(tree_use(os.getpid()))
        if now >= self._deadline:
            raise Ended("timeout", seconds=self._time_limit_s, cpu_seconds=self._cpu)
        if self._closed_since is not None and now >= self._closed_since + _ENDS_WITHIN_S:
            raise Ended("closed")

    def _check(self, use: TreeUse) -> None:
        agent = self._agent
        agent.peak_bytes = max(agent.peak_bytes, use.memory_bytes)
        self._cpu = max(self._cpu, use.cpu_seconds - self._cpu_before)
        if use.tasks > agent.max_processes:
            raise self._over("max_processes", use.tasks, agent.max_processes)
        if use.memory_bytes > agent.memory_bytes:
            raise self._over("memory_bytes", use.memory_bytes, agent.memory_bytes)
        if self._cpu > agent.cpu_seconds:
            raise self._over("cpu_seconds", round(self._cpu, 2), agent.cpu_seconds)

    @staticmethod
    def _over(limit: str, used: float, allowed: float) -> Ended:
        return Ended("over", limit=limit, used=used, allowed=allowed)


def _readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return any(flags & select.POLLIN for _, flags in poller.poll(0))


def _some(fd: int) -> bytes:
    try:
        return os.read(fd, _SHOWN_BYTES)
    except BlockingIOError:
        return b""


def _begins(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode("utf-8", "replace")
