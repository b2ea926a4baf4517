"""An MCP server as a process of ours: its own session, no environment but what is named, bounded in what it says.

The SDK's own stdio transport passes on part of the environment and keeps a line of any length, so this one stands
in for it.
"""

import asyncio
import os
import shutil
import signal
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from agents.sandbox.process_tree import tree_use

_CHUNK_BYTES: Final = 65_536
_MAX_GARBAGE_LINES: Final = 200
_KEPT_STDERR_BYTES: Final = 4_096
_SHOWN_CHARS: Final = 300
_SHOWN_SECRET_CHARS: Final = 4
_EXITS_WITHIN_S: Final = 0.5
_KILLED_WITHIN_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.01
_DRAINED_WITHIN_S: Final = 0.2


class ProgramMissing(Exception):
    """The program of a manifest cannot be started; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    """All the variables it sees."""
    cwd: str | None
    search_path: str
    """Where its first word is looked for."""
    max_message_bytes: int


@dataclass(slots=True)
class ProgramLife:
    """What became of a program, for whoever has to explain a failed call."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has exited, closed its output or broken the rules."""
    too_large: bool = False
    """It wrote a message larger than it may."""
    garbage: int = 0
    """Lines that were no messages."""
    returncode: int | None = None
    """Of a program that ended by itself."""
    stopping: bool = False
    """Podium ends it."""
    _stderr: deque[bytes] = field(default_factory=deque)
    _secrets: tuple[str, ...] = ()

    def last_words(self) -> str:
        """The end of what it wrote to stderr on one line, without the values of its environment variables."""
        text = b"".join(self._stderr).decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())[-_SHOWN_CHARS:]

    def note_stderr(self, data: bytes) -> None:
        """Keep the end of what was written."""
        self._stderr.append(data)
        while len(self._stderr) > 1 and sum(map(len, self._stderr)) > _KEPT_STDERR_BYTES:
            self._stderr.popleft()


class _Watched(asyncio.subprocess.SubprocessStreamProtocol):
    """Says when the process has exited, also while a child of it holds its pipes open."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK_BYTES, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@asynccontextmanager
async def stdio_streams(program: Program, life: ProgramLife) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and speak JSON lines with it; leaving ends it and everything it started in its session.

    Raises:
        ProgramMissing: it cannot be started.
    """
    life._secrets = tuple(value for value in program.environment.values() if len(value) > _SHOWN_SECRET_CHARS)
    with _working_folder(program.cwd) as folder:
        transport, watched = await _start(program, folder)
        process = asyncio.subprocess.Process(transport, watched, asyncio.get_running_loop())
        to_session, from_program = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_program, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        talk = [
            asyncio.create_task(_follow(process, watched, to_session, program.max_message_bytes, life)),
            asyncio.create_task(_write(process, from_session)),
        ]
        try:
            yield from_program, to_program
        finally:
            life.stopping = True
            await _end(process, watched, transport)
            for task in talk:
                task.cancel()
            await asyncio.gather(*talk, return_exceptions=True)
            for stream in (to_session, from_program, to_program, from_session):
                stream.close()


class _working_folder:  # noqa: N801 - used as a function
    """The folder of a manifest, or an empty one that is removed again."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._own: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Path:
        if self._wanted is not None:
            return Path(self._wanted)
        self._own = tempfile.TemporaryDirectory(prefix="podium-mcp-", ignore_cleanup_errors=True)
        return Path(self._own.name)

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.cleanup()


async def _start(program: Program, folder: Path) -> tuple[asyncio.SubprocessTransport, _Watched]:
    found = shutil.which(program.command[0], path=program.search_path)
    if found is None:
        raise ProgramMissing(f"there is no program {program.command[0]!r} that may be run")
    try:
        return await asyncio.get_running_loop().subprocess_exec(
            _Watched,
            found,
            *program.command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(program.environment),
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ProgramMissing(f"{program.command[0]!r} cannot be started: {error}") from error


async def _follow(
    process: asyncio.subprocess.Process,
    watched: _Watched,
    session: MemoryObjectSendStream[SessionMessage | Exception],
    max_bytes: int,
    life: ProgramLife,
) -> None:
    """Hand messages over as long as they come; then find out why no more come, and tell the session."""
    stderr = asyncio.create_task(_keep_stderr(process, life))
    exited = asyncio.create_task(watched.exited.wait())
    read = asyncio.create_task(_read(process, session, max_bytes, life))
    try:
        # A program that has exited may have left a child that holds its output open for ever.
        await asyncio.wait({read, exited}, return_when=asyncio.FIRST_COMPLETED)
        # What it wrote before it died is still read, and one that closed its output mostly exits in a moment.
        await asyncio.wait({read, exited, stderr}, timeout=_DRAINED_WITHIN_S)
        if not life.stopping:
            life.returncode = process.returncode
    finally:
        # The calls that wait learn that no answer will come.
        session.close()
        life.ended.set()
        for task in (read, exited, stderr):
            task.cancel()
        await asyncio.gather(read, exited, stderr, return_exceptions=True)


async def _read(
    process: asyncio.subprocess.Process,
    session: MemoryObjectSendStream[SessionMessage | Exception],
    max_bytes: int,
    life: ProgramLife,
) -> None:
    """Hand messages over line by line until the output ends, a line is too long or too much is no message."""
    assert process.stdout is not None  # noqa: S101 - started with pipes
    rest = bytearray()
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        while chunk := await process.stdout.read(_CHUNK_BYTES):
            rest += chunk
            *lines, rest = rest.split(b"\n")
            if len(rest) > max_bytes or any(len(line) > max_bytes for line in lines):
                life.too_large = True
                return
            for line in lines:
                if (message := _message(line)) is not None:
                    await session.send(message)
                elif line.strip():
                    life.garbage += 1
            if life.garbage > _MAX_GARBAGE_LINES:
                return


def _message(line: bytearray) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(bytes(line), by_name=False))
    except (ValidationError, RecursionError):
        return None


async def _write(process: asyncio.subprocess.Process, session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None  # noqa: S101 - started with pipes
    with suppress(ConnectionError, anyio.ClosedResourceError, RuntimeError):
        async for message in session:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _keep_stderr(process: asyncio.subprocess.Process, life: ProgramLife) -> None:
    assert process.stderr is not None  # noqa: S101 - started with pipes
    while data := await process.stderr.read(_KEPT_STDERR_BYTES):
        life.note_stderr(data)


async def _end(
    process: asyncio.subprocess.Process, watched: _Watched, transport: asyncio.SubprocessTransport
) -> None:
    """Close its stdin, which asks it to go; then kill its session and whatever else it started."""
    # Looked up while it lives: a child with a session of its own belongs to nobody afterwards.
    started = tree_use(process.pid).pids if process.returncode is None else ()
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(watched.exited.wait(), _EXITS_WITHIN_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in started:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    with suppress(TimeoutError):
        await asyncio.wait_for(watched.exited.wait(), _KILLED_WITHIN_S)
    # A child that left the session may still hold a pipe: without this the pipe stayed open with it.
    transport.close()
