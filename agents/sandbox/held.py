"""The agent's process as its warden holds it: whether it lives, how it ended, how it is ended."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.sandbox import confinement
from agents.sandbox.process_tree import TreeUse, tree_use

SIGNALLED = 128
"""An exit status above this is that much more than the signal that ended the program, as shells have it."""


class Ended(Exception):
    """A call, and with it the agent's process, is over; `reply` says why."""

    def __init__(self, kind: str, **fields: Any) -> None:
        super().__init__(kind)
        self.reply = {"kind": kind, **fields}


@dataclass(slots=True, kw_only=True)
class Agent:
    """The agent's process as the warden holds it."""

    pid: int
    """Its first process."""
    requests: int = -1
    answers: int = -1
    noise: int = -1
    """What it prints."""
    max_processes: int
    memory_bytes: int
    cpu_seconds: float
    keeps_processes: bool
    """A program may keep some of its own from call to call; a function may leave none behind."""
    behind_init: bool = False
    """Its first process is ours: it waits for orphans, as the first of a pid namespace has to."""
    served: bool = False
    """It has answered a call; before that, what it writes or that it ends is its answer to the first."""
    noise_bytes: int = 0
    peak_bytes: int = 0
    status: int | None = None
    """As os.waitpid says, once it is over."""

    def use(self) -> TreeUse:
        """What all its processes use now."""
        return tree_use(os.getpid(), ours=self.pid if self.behind_init else None)

    def gone(self) -> bool:
        """Whether the process has ended; reaps it and every orphan that came to the warden."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.pid:
                self.status = status
        return self.status is not None

    def freeze(self) -> None:
        """Between two calls nothing of it runs, whatever threads or processes it has left."""
        frozen: set[int] = set()
        while fresh := set(self.use().pids) - frozen:
            for pid in fresh:
                _signal(pid, signal.SIGSTOP)
            frozen |= fresh

    def thaw(self) -> None:
        """It runs on."""
        for pid in self.use().pids:
            _signal(pid, signal.SIGCONT)

    def crash(self) -> Ended:
        """What is said of a process that ended by itself."""
        status = self.status or 0
        if os.WIFSIGNALED(status):
            return Ended("crash", signal=os.WTERMSIG(status), peak_bytes=self.peak_bytes)
        code = os.WEXITSTATUS(status)
        if self.behind_init and code > SIGNALLED:
            return Ended("crash", signal=code - SIGNALLED, peak_bytes=self.peak_bytes)
        return Ended("crash", status=code, peak_bytes=self.peak_bytes)


def killer(agent: Agent, isolation: str) -> Callable[[], None]:
    """What ends the agent and everything it started; it returns when they are gone."""

    def kill() -> None:
        if isolation in confinement.NAMESPACED:
            # The first process of a pid namespace takes all others with it; the kernel sees to that.
            while not agent.gone():
                _signal(agent.pid, signal.SIGKILL)
                time.sleep(0.002)
            return
        if isolation == confinement.OTHER_USER:
            _kill_all_of(confinement.user_of_warden(os.getpid()))
        _kill_tree(agent)

    return kill


def _kill_all_of(user: int) -> None:
    """Everything that runs as this user, in one call of the kernel; only a process of that user may ask for it."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _kill_tree(agent: Agent) -> None:
    """Until nobody is left: stop all that can be seen, so that they start no more, then end them."""
    while pids := tree_use(os.getpid()).pids:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                _signal(pid, number)
        agent.gone()
        time.sleep(0.002)
    agent.gone()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have just ended
        os.kill(pid, number)
