"""A program that stays, as its warden holds it: it runs while somebody waits for it, and is measured meanwhile.

Server and program speak on pipes of their own, which the warden does not see. The server says how many calls wait
for an answer; with none the program is frozen. What it may use of the processor it may use per call: calls that
overlap share what they have together.
"""

import contextlib
import os
import select
import time
from collections.abc import Mapping
from typing import Any

from agents.sandbox import confinement
from agents.sandbox.frames import message, read_message, write_all
from agents.sandbox.held import Agent, Ended
from agents.sandbox.process_tree import TreeUse

_MEASURED_EVERY_S = 0.05
_WEIGHED_EVERY_S = 1.0
_MANY_FILES = 10_000


class Residence:
    """Watches one program until it breaks a limit, ends, or the server goes."""

    def __init__(self, agent: Agent, how: confinement.Confinement, *, server_in: int, server_out: int) -> None:
        """The program runs: its start counts as the first call.

        Args:
            agent: The program.
            how: How it is confined.
            server_in: Where the server says how many calls there are.
            server_out: Where it is answered.
        """
        self._agent = agent
        self._how = how
        self._in = server_in
        self._out = server_out
        self._calls = 1
        self._begun = 1
        self._cpu_before = 0.0
        self._cpu = 0.0
        self._measured_at = 0.0
        self._weighed_at = time.monotonic()

    def watch(self) -> None:
        """Until the end.

        Raises:
            Ended: the program went over a limit or ended.
            StreamEnded: the server went away.
        """
        poller = select.poll()
        poller.register(self._in, select.POLLIN)
        while True:
            heard = poller.poll(_MEASURED_EVERY_S * 1000 if self._calls else None)
            if heard:
                asked, _ = read_message(self._in)
                reply = self._told(asked)
                write_all(self._out, message(reply))
            now = time.monotonic()
            if self._calls and now >= self._measured_at + _MEASURED_EVERY_S:
                self._measured_at = now
                self._measure()
                if now >= self._weighed_at + _WEIGHED_EVERY_S:
                    self._weigh()

    def _told(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Calls have begun or ended: look before anybody believes an answer."""
        calls: int = asked["calls"]
        if self._calls:
            self._measure()
            if calls < self._calls:
                self._weigh()
        elif calls:
            if self._agent.gone():
                raise self._agent.crash()
            self._cpu_before, self._cpu, self._begun = self._agent.use().cpu_seconds, 0.0, 0
            self._agent.thaw()
        self._begun += max(0, calls - self._calls)
        self._calls = calls
        if not calls:
            self._agent.freeze()
        used_up = self._cpu_before + self._cpu > confinement.cpu_of_a_lifetime(self._how.cpu_seconds) / 2
        return {"kind": "measured", "number": asked["number"], "retire": used_up}

    def _measure(self) -> None:
        agent = self._agent
        if agent.gone():
            raise agent.crash()
        use = agent.use()
        agent.peak_bytes = max(agent.peak_bytes, use.memory_bytes)
        self._cpu = max(self._cpu, use.cpu_seconds - self._cpu_before)
        self._check(use)

    def _check(self, use: TreeUse) -> None:
        agent = self._agent
        if use.tasks > agent.max_processes:
            raise _over("max_processes", use.tasks, agent.max_processes)
        if use.memory_bytes > agent.memory_bytes:
            raise _over("memory_bytes", use.memory_bytes, agent.memory_bytes)
        allowed = agent.cpu_seconds * self._begun
        if self._cpu > allowed:
            raise _over("cpu_seconds", round(self._cpu, 2), allowed)

    def _weigh(self) -> None:
        """What it has written; a program that finds its disk full seldom says so to whoever asked it."""
        self._weighed_at = time.monotonic()
        if self._how.isolation in confinement.NAMESPACED:
            for pid in self._agent.use().pids[:1]:
                with contextlib.suppress(OSError):  # it has just ended
                    room = os.statvfs(f"/proc/{pid}/root{confinement.SCRATCH}")
                    if room.f_bfree == 0 or room.f_ffree == 0:
                        raise _over("scratch_bytes", room.f_blocks * room.f_frsize, self._how.scratch_bytes)
            return
        used = _size_of(self._how.scratch)
        if used >= self._how.scratch_bytes:
            raise _over("scratch_bytes", used, self._how.scratch_bytes)


def _size_of(folder: str) -> int:
    """Bytes of all files below, as far as they can be counted quickly."""
    total, seen, waiting = 0, 0, [folder]
    while waiting and seen < _MANY_FILES:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with contextlib.suppress(OSError):  # it has just been removed
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def _over(limit: str, used: float, allowed: float) -> Ended:
    return Ended("over", limit=limit, used=used, allowed=allowed)
