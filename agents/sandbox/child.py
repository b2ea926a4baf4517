"""The server's end of one warden: start it, pass it calls one at a time, end it."""

import asyncio
import json
import logging
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from agents.sandbox.frames import LENGTH, MAX_HEADER_BYTES, message
from agents.spec import Limits
from podium.errors import InternalError

_LOG = logging.getLogger(__name__)

_IMPORTED_FROM = Path(__file__).parents[2]
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from agents.sandbox.warden import main; main()"
_STARTS_WITHIN_S = 20.0
_ENDS_WITHIN_S = 5.0
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    # Numeric libraries start a thread for each processor otherwise, and threads are limited.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class WardenLost(Exception):
    """The warden ended or spoke nonsense; it says nothing about the agent."""


class ConfinementRefused(Exception):
    """The kernel does not allow an agent to be held as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What runs in a child."""

    function: str = ""
    """`module:function`, or else:"""
    command: tuple[str, ...] = ()
    """A program and its arguments; the program as an absolute path."""
    folder: Path | None = None
    """Where the agent's own code lies; it may read it."""
    network: bool = False
    scratch_bytes: int
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """All the variables it sees, besides HOME and TMPDIR, its own folder; what suits a function when None."""
    cwd: Path | None = None
    """Where it starts, and may read; its own folder when None."""


class Child:
    """A warden with its agent; one call at a time. Made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, scratch: Path) -> None:
        """Use `start`."""
        if process.stdin is None or process.stdout is None:
            raise InternalError("a warden was started without pipes")
        self._process = process
        self._in, self._out = process.stdin, process.stdout
        self._scratch = scratch
        self.isolation = ""
        """How the agent is held, as `agents.sandbox.confinement` names it."""
        self.filtered = False
        """Whether system calls are filtered too."""
        self.agent_pid = 0

    @classmethod
    async def start(
        cls, program: Program, limits: Limits, *, namespaces: bool, streams: tuple[int, ...] = ()
    ) -> Self:
        """Start a warden and its agent's process, and wait until the agent is confined.

        Args:
            program: What runs.
            limits: What it may use.
            namespaces: Whether it is confined by them.
            streams: Ends of pipes that become the agent's stdin, stdout and stderr, for a program that the server
                speaks with itself (`agents.sandbox.resident`); without them, there are calls.

        Raises:
            ConfinementRefused: the kernel does not allow it; without namespaces it may.
            WardenLost: the warden did not start.
        """
        scratch = Path(tempfile.mkdtemp(prefix="podium-agent-"))
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-c", _PROGRAM, str(_IMPORTED_FROM),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                env={}, cwd="/", start_new_session=True, pass_fds=streams,
            )  # fmt: skip
        except OSError as error:
            shutil.rmtree(scratch, ignore_errors=True)
            raise WardenLost(f"a process cannot be started: {error}") from error
        child = cls(process, scratch)
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await child._send(message(_start_message(program, limits, scratch, namespaces, streams)))
                ready, _ = await child._reply(0)
        except TimeoutError as error:
            await child.close()
            raise WardenLost(f"it did not start within {_STARTS_WITHIN_S:g} s") from error
        except BaseException:
            await child.close()
            raise
        if ready["kind"] != "ready":
            await child.close()
            text = str(ready.get("message", ready["kind"]))
            raise ConfinementRefused(text) if ready["kind"] == "refused" else WardenLost(text)
        child.isolation, child.filtered = ready["isolation"], ready["filtered"]
        child.agent_pid = ready["pid"]
        return child

    async def call(
        self, request: bytes, *, max_output_bytes: int, time_limit_s: float
    ) -> tuple[dict[str, Any], bytes]:
        """Pass one request on; the warden's reply, and with kind `answer` the bytes that the agent wrote.

        After any other kind, and after an exception, the child is only good to be closed.

        Raises:
            WardenLost: the warden is gone.
        """
        header = {"max_output_bytes": max_output_bytes, "time_limit_s": time_limit_s}
        await self._send(message(header, request))
        return await self._reply(max_output_bytes)

    def tell(self, header: Mapping[str, Any]) -> None:
        """Say something to the warden of a program that stays; `hear` has its answers."""
        self._in.write(message(header))

    async def hear(self) -> dict[str, Any]:
        """What the warden of a program that stays says next.

        Raises:
            WardenLost: it is gone.
        """
        return (await self._reply(0))[0]

    @property
    def alive(self) -> bool:
        """Whether the warden runs."""
        return self._process.returncode is None

    async def close(self, *, drain: bool = True) -> None:
        """End the agent with all it started, then the warden; remove what they left on disk.

        Args:
            drain: Read what the warden still says; False when somebody else does (`hear`).
        """
        # The warden ends its agent when this closes; only it can find all that the agent has started.
        self._in.close()
        try:
            async with asyncio.timeout(_ENDS_WITHIN_S):
                if drain:
                    await self._drain()
                await self._process.wait()
        except TimeoutError:
            _LOG.error("the warden of process %d does not end and is killed", self.agent_pid)
            self._process.kill()
            await self._process.wait()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    async def _drain(self) -> None:
        # What it was about to say, so that it does not wait for somebody to listen.
        while await self._out.read(1 << 16):
            pass

    async def _send(self, data: bytes) -> None:
        try:
            self._in.write(data)
            await self._in.drain()
        except (BrokenPipeError, ConnectionResetError):
            # It may have said why before it went.
            return

    async def _reply(self, max_payload_bytes: int) -> tuple[dict[str, Any], bytes]:
        try:
            (size,) = LENGTH.unpack(await self._out.readexactly(LENGTH.size))
            if size > MAX_HEADER_BYTES:
                raise WardenLost(f"it announced {size} bytes")
            header = json.loads(await self._out.readexactly(size))
            payload_bytes = header["payload_bytes"]
            if payload_bytes > max_payload_bytes:
                raise WardenLost(f"it announced {payload_bytes} bytes")
            return header, await self._out.readexactly(payload_bytes)
        except asyncio.IncompleteReadError as error:
            raise WardenLost("it ended without a word") from error


def _start_message(
    program: Program, limits: Limits, scratch: Path, namespaces: bool, streams: tuple[int, ...]
) -> Mapping[str, Any]:
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    folder = [str(place) for place in (program.folder, program.cwd) if place is not None]
    visible = [os.path.realpath(place) for place in (sys.prefix, sys.base_prefix)]
    if program.command:
        visible.append(os.path.dirname(program.command[0]))
    # Both names of a place that is reached by a link, because the interpreter knows it by one and we by the other.
    visible += [place for place in (sys.prefix, sys.base_prefix) if place not in visible]
    return {
        "function": program.function,
        "command": list(program.command),
        "visible": [*visible, *folder],
        "python_path": [*folder, *dict.fromkeys(installed)],
        "environment": _ENVIRONMENT if program.environment is None else dict(program.environment),
        "folder": str(program.cwd or ""),
        "streams": list(streams),
        "network": program.network,
        "namespaces": namespaces,
        "scratch": str(scratch),
        "scratch_bytes": program.scratch_bytes,
        "cpu_seconds": limits.cpu_seconds,
        "memory_bytes": limits.memory_bytes,
        "max_processes": limits.max_processes,
    }
