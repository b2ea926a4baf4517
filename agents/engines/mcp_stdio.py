"""An MCP server as a process of ours: locked away like any agent, bounded in what it uses and in what it says.

The SDK's own stdio transport passes on part of the environment, keeps a line of any length and confines nothing:
this one stands in for it.
"""

import asyncio
import os
import shutil
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

from agents.sandbox import child as sandbox
from agents.sandbox.machine import Machine
from agents.sandbox.resident import Resident
from agents.spec import Limits

_CHUNK_BYTES: Final = 65_536
_MAX_GARBAGE_LINES: Final = 200
_KEPT_STDERR_BYTES: Final = 4_096
_SHOWN_CHARS: Final = 300
_SHOWN_SECRET_CHARS: Final = 4
_EXITS_WITHIN_S: Final = 0.5
_DRAINED_WITHIN_S: Final = 0.2
_EXPLAINED_WITHIN_S: Final = 1.0
"""How long after its output has ended the warden may take to say why."""


class ProgramMissing(Exception):
    """The program of a manifest cannot be started; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is started."""

    agent: str
    """Its name in error messages."""
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    """All the variables it sees, besides HOME and TMPDIR."""
    cwd: str | None
    path: str | None
    """The folder with its code."""
    network: bool
    scratch_bytes: int
    limits: Limits
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
    resident: Resident | None = None
    """The program, once it was started."""
    stopping: bool = False
    """Podium ends it."""
    _stderr: deque[bytes] = field(default_factory=deque)
    _secrets: tuple[str, ...] = ()

    @property
    def verdict(self) -> Mapping[str, Any]:
        """Why it ended without being asked to, as its warden says; empty when it did not."""
        return {} if self.resident is None or self.stopping else self.resident.verdict

    @property
    def spent(self) -> bool:
        """Whether another must take its place for the next call."""
        resident = self.resident
        return self.ended.is_set() or (resident is not None and (resident.worn or resident.over.is_set()))

    def started(self) -> None:
        """It has said what it can do; from now on it runs during calls only."""
        if self.resident is not None:
            self.resident.ended_call()

    @asynccontextmanager
    async def in_call(self) -> AsyncIterator[None]:
        """The program runs meanwhile; what comes of it counts only if it was within its limits."""
        if self.resident is None:
            yield
            return
        self.resident.began_call()
        try:
            yield
        except asyncio.CancelledError:
            self.resident.ended_call()
            raise
        except BaseException:
            await self.resident.ended_call()
            raise
        await self.resident.ended_call()
        if self.verdict:
            raise ConnectionError("the program went over a limit while it answered")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pipes:
    """The server's ends of the pipes to a program."""

    output: asyncio.StreamReader
    errors: asyncio.StreamReader
    input: asyncio.StreamWriter
    readers: tuple[asyncio.ReadTransport, ...]

    def close(self) -> None:
        """A child that still holds an end does not keep ours open."""
        self.input.close()
        for transport in self.readers:
            transport.close()


@asynccontextmanager
async def stdio_streams(program: Program, machine: Machine, life: ProgramLife) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program and speak JSON lines with it; leaving ends it and everything it started.

    Raises:
        ProgramMissing: it cannot be started.
        AgentUnreachable: this machine cannot hold it.
    """
    life._secrets = tuple(value for value in program.environment.values() if len(value) > _SHOWN_SECRET_CHARS)
    resident, pipes = await _start(program, machine)
    life.resident = resident
    to_session, from_program = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_program, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    talk = [
        asyncio.create_task(_follow(resident, pipes, to_session, program.max_message_bytes, life)),
        asyncio.create_task(_write(pipes.input, from_session)),
    ]
    try:
        yield from_program, to_program
    finally:
        if not resident.over.is_set():
            life.stopping = True
        await _end(resident, pipes)
        for task in talk:
            task.cancel()
        await asyncio.gather(*talk, return_exceptions=True)
        for stream in (to_session, from_program, to_program, from_session):
            stream.close()


async def _start(program: Program, machine: Machine) -> tuple[Resident, _Pipes]:
    """The program in its sandbox, with pipes that nobody else holds."""
    confined = _confined(program)
    its: list[int] = []
    ours: list[int] = []
    try:
        for number in range(3):
            read, write = os.pipe()
            its.append(read if number == 0 else write)
            ours.append(write if number == 0 else read)
        child = await machine.start(confined, program.limits, agent=program.agent, streams=tuple(its))
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in its:
            os.close(fd)
    resident = Resident(child)
    try:
        return resident, await _pipes(*ours)
    except BaseException:
        await resident.close()
        raise


def _confined(program: Program) -> sandbox.Program:
    folders = [Path(os.path.realpath(name)) if name is not None else None for name in (program.path, program.cwd)]
    for folder in folders:
        if folder is not None and not folder.is_dir():
            raise ProgramMissing(f"there is no folder {folder}")
    code, cwd = folders
    named = program.command[0]
    if code is not None and not os.path.isabs(named) and os.sep in named:
        named = str(code / named)
    found = shutil.which(named, path=program.search_path)
    if found is None:
        raise ProgramMissing(f"there is no program {program.command[0]!r} that may be run")
    return sandbox.Program(
        command=(os.path.abspath(found), *program.command[1:]),
        folder=code,
        cwd=cwd,
        network=program.network,
        scratch_bytes=program.scratch_bytes,
        environment=program.environment,
    )


async def _pipes(to_input: int, from_output: int, from_errors: int) -> _Pipes:
    loop = asyncio.get_running_loop()
    readers: list[asyncio.StreamReader] = []
    transports: list[asyncio.ReadTransport] = []
    for fd in (from_output, from_errors):
        reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
        transport, _ = await loop.connect_read_pipe(
            lambda reader=reader: asyncio.StreamReaderProtocol(reader),  # type: ignore[misc]  # bound now
            os.fdopen(fd, "rb", buffering=0),
        )
        readers.append(reader)
        transports.append(transport)
    writing, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(to_input, "wb", buffering=0)
    )
    return _Pipes(
        output=readers[0],
        errors=readers[1],
        input=asyncio.StreamWriter(writing, protocol, None, loop),
        readers=tuple(transports),
    )


async def _follow(
    resident: Resident,
    pipes: _Pipes,
    session: MemoryObjectSendStream[SessionMessage | Exception],
    max_bytes: int,
    life: ProgramLife,
) -> None:
    """Hand messages over as long as they come; then find out why no more come, and tell the session."""
    stderr = asyncio.create_task(_keep_stderr(pipes.errors, life))
    over = asyncio.create_task(resident.over.wait())
    read = asyncio.create_task(_read(pipes.output, session, max_bytes, life))
    try:
        # A program that has exited may have left a child that holds its output open for ever.
        await asyncio.wait({read, over}, return_when=asyncio.FIRST_COMPLETED)
        if not (life.too_large or life.garbage):
            # A program that closes its output mostly exits in a moment, or the warden has just ended it.
            await asyncio.wait({over}, timeout=_EXPLAINED_WITHIN_S)
        # What it wrote before it died is still read.
        await asyncio.wait({read, stderr}, timeout=_DRAINED_WITHIN_S)
    finally:
        # The calls that wait learn that no answer will come.
        session.close()
        life.ended.set()
        for task in (read, over, stderr):
            task.cancel()
        await asyncio.gather(read, over, stderr, return_exceptions=True)


async def _read(
    output: asyncio.StreamReader,
    session: MemoryObjectSendStream[SessionMessage | Exception],
    max_bytes: int,
    life: ProgramLife,
) -> None:
    """Hand messages over line by line until the output ends, a line is too long or too much is no message."""
    rest = bytearray()
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        while chunk := await output.read(_CHUNK_BYTES):
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


async def _write(pipe: asyncio.StreamWriter, session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with suppress(ConnectionError, anyio.ClosedResourceError, RuntimeError):
        async for message in session:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            pipe.write(line.encode() + b"\n")
            await pipe.drain()


async def _keep_stderr(errors: asyncio.StreamReader, life: ProgramLife) -> None:
    while data := await errors.read(_KEPT_STDERR_BYTES):
        life.note_stderr(data)


async def _end(resident: Resident, pipes: _Pipes) -> None:
    """Close its stdin, which asks it to go; then end it and whatever it started."""
    try:
        if not resident.over.is_set():
            # Frozen, it could not go by itself.
            resident.began_call()
            pipes.input.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(resident.over.wait(), _EXITS_WITHIN_S)
    finally:
        await resident.close()
        pipes.close()
