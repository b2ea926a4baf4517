"""The warden of one agent: starts its process, passes calls to it, measures it and ends it with all it started.

A program of its own between server and agent: it trusts nothing the agent says or writes, and when its standard
input closes, because the server ended or died, it ends the agent. It runs as `python -I -S`, with nothing but the
standard library, so a waiting agent costs little.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from agents.sandbox import confinement, init, kernel, runner
from agents.sandbox.call import Call
from agents.sandbox.frames import StreamEnded, message, read_message, write_all
from agents.sandbox.held import Agent, Ended, killer
from agents.sandbox.residence import Residence

_SERVER_IN, _SERVER_OUT = 0, 1

Fds = tuple[int, int, int, int]
"""The agent's: where it reads, writes and prints, and where it says that it is confined."""


def main() -> None:
    """Serve one server until it closes our standard input."""
    # A Ctrl-C in the server's terminal is the server's business; it closes us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        start, _ = read_message(_SERVER_IN)
    except StreamEnded:
        return
    agent: Agent | None = None
    kill: Callable[[], None] = _nothing
    try:
        how = _confinement(start)
        agent, ready = _start(start, how)
        kill = killer(agent, ready["isolation"])
        _say(ready)
        if start["streams"]:
            Residence(agent, how, server_in=_SERVER_IN, server_out=_SERVER_OUT).watch()
        else:
            _serve(agent)
    except Ended as ended:
        _say(ended.reply)
    except (StreamEnded, BrokenPipeError):
        pass  # the server is gone
    except Exception as error:  # noqa: BLE001 - said to the server, which knows whom to tell
        _say({"kind": "broken", "message": f"{type(error).__name__}: {error}"})
    finally:
        kill()
        # A server that was killed removes nothing.
        shutil.rmtree(start["scratch"], ignore_errors=True)


def _nothing() -> None:
    """Nobody has been started."""


def _say(reply: Mapping[str, Any], payload: bytes = b"") -> None:
    with contextlib.suppress(BrokenPipeError):  # the server is gone, and nobody else is there to be told
        write_all(_SERVER_OUT, message(reply, payload))


def _confinement(start: Mapping[str, Any]) -> confinement.Confinement:
    isolation = _isolate(namespaces=start["namespaces"])
    # A program that stays is ended by what is measured. The kernel, which only refuses, stands further back: such
    # a program might go on without the memory and say something else.
    room = 2 if start["streams"] else 1
    how = confinement.Confinement(
        isolation=isolation,
        visible=tuple(start["visible"]),
        scratch=start["scratch"],
        scratch_bytes=start["scratch_bytes"],
        cpu_seconds=start["cpu_seconds"],
        memory_bytes=room * start["memory_bytes"],
        max_processes=start["max_processes"],
        network=start["network"],
        folder=start["folder"],
    )
    if isolation == confinement.OTHER_USER:
        user = confinement.user_of_warden(os.getpid())
        os.chown(how.scratch, user, user)
    return how


def _start(start: Mapping[str, Any], how: confinement.Confinement) -> tuple[Agent, dict[str, Any]]:
    isolation, streams = how.isolation, start["streams"]
    agent = Agent(
        pid=0,
        max_processes=how.max_processes,
        memory_bytes=start["memory_bytes"],
        cpu_seconds=how.cpu_seconds,
        keeps_processes=bool(start["command"]),
        # A single process is first and only; it cannot have orphans.
        behind_init=bool(streams) and isolation in confinement.NAMESPACED and how.max_processes > 1,
    )
    if streams:
        reads, writes, prints = map(_low, streams)
    else:
        reads, agent.requests = os.pipe()
        agent.answers, writes = os.pipe()
        agent.noise, prints = os.pipe()
    told, telling = os.pipe()
    warden_pid = os.getpid()
    agent.pid = os.fork()
    if agent.pid == 0:
        # No way out of here but these two: an error must not run on as a second warden.
        try:
            _be_the_agent(start, how, warden_pid, (reads, writes, prints, telling), below_init=agent.behind_init)
        finally:
            os._exit(1)
    for fd in (reads, writes, prints, telling):
        os.close(fd)
    with os.fdopen(told, "rb") as file:
        said = json.loads(file.read() or b'{"refused": "it ended while it was being confined"}')
    if refused := said.get("refused"):
        killer(agent, isolation)()
        raise Ended("refused", isolation=isolation, message=refused)
    if not streams:
        for fd in (agent.requests, agent.answers, agent.noise):
            os.set_blocking(fd, False)
    return agent, {"kind": "ready", "isolation": isolation, "filtered": said["filtered"], "pid": agent.pid}


def _low(fd: int) -> int:
    """The same with a small number: the agent closes those up to 256, and a busy server's may be above."""
    low = os.dup(fd)
    os.close(fd)
    return low


def _isolate(*, namespaces: bool) -> str:
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    as_root = os.geteuid() == 0
    if namespaces:
        try:
            confinement.enter_pid_namespace(as_root=as_root)
        except OSError as error:
            raise Ended("refused", isolation="namespaces", message=str(error)) from error
        return confinement.ROOT_NAMESPACES if as_root else confinement.USER_NAMESPACES
    if as_root:
        return confinement.OTHER_USER
    # The agent is the same user: it must not read this process's memory or write to it.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    return confinement.SAME_USER


def _be_the_agent(
    start: Mapping[str, Any], how: confinement.Confinement, warden_pid: int, fds: Fds, *, below_init: bool
) -> None:
    requests, answers, noise, telling = fds
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        filtered = confinement.confine(how, warden_pid=warden_pid)
    except Exception as error:  # noqa: BLE001 - said to the warden
        os.write(telling, json.dumps({"refused": f"{type(error).__name__}: {error}"}).encode())
        return
    command = start["command"]
    nothing = os.open(os.devnull, os.O_RDONLY) if not command else requests
    os.dup2(nothing, 0)
    os.dup2(answers if command else noise, 1)
    os.dup2(noise, 2)
    os.write(telling, json.dumps({"filtered": filtered}).encode())
    os.close(telling)
    folder = confinement.SCRATCH if how.isolation in confinement.NAMESPACED else how.scratch
    os.environ.clear()
    os.environ.update({**start["environment"], "HOME": folder, "TMPDIR": folder})
    if below_init and (program := os.fork()):
        init.run_below(program)
    if command:
        os.closerange(3, 256)
        os.execve(command[0], command, dict(os.environ))  # noqa: S606 - what the manifest names
    kept = {requests, answers}
    for fd in range(3, 256):
        if fd not in kept:
            _close(fd)
    runner.python_path(start["python_path"])
    runner.serve_function(start["function"], requests, answers)
    os._exit(0)


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):  # it was not open
        os.close(fd)


def _serve(agent: Agent) -> None:
    while True:
        call, payload = read_message(_SERVER_IN)
        if agent.served and agent.gone():
            raise Ended("stale", reason="it ended between two calls")
        agent.thaw()
        reply, answer = Call(agent, call, server=_SERVER_IN).carried_out(payload)
        agent.served = True
        agent.freeze()
        _say(reply, answer)


if __name__ == "__main__":
    sys.exit("the server starts this with agents.sandbox.child")
