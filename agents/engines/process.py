"""Run agents in processes of their own, with limits that hold and nothing of the server within reach."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.canonical import canonical_json, sha256_of
from agents.engines.settings import ProcessSettings
from agents.invocation import AgentContext, Invocation
from agents.sandbox.child import Child, Program, WardenLost
from agents.sandbox.machine import Machine
from agents.sandbox.verdicts import failure_of, read_answer
from agents.spec import AgentSpec, ManifestInvalid
from podium.errors import AgentCrashed, AgentTimeout, AgentUnreachable

_LOG = logging.getLogger(__name__)

_GRACE_S = 1.0
"""How much later than the warden we give up; the warden can say more about why."""
_ENVELOPE_BYTES = 4096
"""Around an output, so that one as large as allowed still fits."""
_ESCAPED_GROWTH = 2
"""An output that is itself JSON text has its quotes escaped; it is measured again when it is checked."""
_STARTS = 2
"""How often a call that the agent has not begun is given to a new process."""


@dataclass(slots=True)
class _Pool:
    """The processes of one agent."""

    free: asyncio.Semaphore
    idle: list[Child] = field(default_factory=list)


class ProcessEngine:
    """Keeps a few processes per agent warm and ends each at its first violation.

    An instance belongs to one event loop; `close` ends every process.
    """

    def __init__(self, *, max_processes: int = 32, namespaces: bool = True, weak_isolation: bool = False) -> None:
        """Start nothing; processes come with the first calls.

        Args:
            max_processes: Agents' processes at once, over all agents; one that waits makes room for one that is
                asked for.
            namespaces: False: do without, as on a machine that refuses them.
            weak_isolation: Run agents also where neither root nor namespaces keep this server's files from them.
        """
        self._room = asyncio.Semaphore(max_processes)
        self._waiting = 0
        self.machine = Machine(namespaces=namespaces, weak_isolation=weak_isolation)
        """How this machine holds agents."""
        self._pools: dict[str, _Pool] = {}
        self._children: set[Child] = set()
        self._timers: dict[Child, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def isolation(self) -> str:
        """How agents are held, as `agents.sandbox.confinement` names it; empty before the first."""
        return self.machine.isolation

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`.

        Raises:
            AgentOverLimit: it used more than its manifest allows, and was ended.
            OutputContractBroken: what it wrote is not one answer.
            AgentUnreachable: no process can be started.
            ManifestInvalid: the folder or the program that the manifest names is not there.
        """
        spec, seconds = invocation.spec, invocation.time_limit.total_seconds()
        settings = ProcessSettings.model_validate(dict(spec.settings))
        request = canonical_json({"context": _told(invocation.context), "input": invocation.inputs})
        pool = self._pools.setdefault(_key(spec), _Pool(asyncio.Semaphore(settings.workers)))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        try:
            async with asyncio.timeout(seconds + _GRACE_S), pool.free:
                return await self._call(spec, settings, pool, request, deadline)
        except TimeoutError as error:
            raise AgentTimeout(f"{spec.name} did not answer within {seconds:g} s", agent=spec.name) from error

    async def forget(self, name: str) -> None:
        """End the idle processes of an agent, as when it is disabled or its code has changed.

        Args:
            name: The agent, in all its versions.
        """
        for key, pool in list(self._pools.items()):
            if key.startswith(f"{name} "):
                for child in list(pool.idle):
                    self._retire(child, pool)
        await asyncio.gather(*self._closing)

    async def close(self) -> None:
        """End every process; calls in progress fail."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        await asyncio.gather(*(self._end(child) for child in list(self._children)), *self._closing)

    async def _call(
        self, spec: AgentSpec, settings: ProcessSettings, pool: _Pool, request: bytes, deadline: float
    ) -> Any:
        for _ in range(_STARTS):
            async with self._child(spec, settings, pool) as child:
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0:
                    raise TimeoutError
                try:
                    reply, answer = await child.call(
                        request,
                        max_output_bytes=_ESCAPED_GROWTH * spec.limits.max_output_bytes + _ENVELOPE_BYTES,
                        time_limit_s=left,
                    )
                except WardenLost as error:
                    raise AgentUnreachable(
                        f"the process that watches {spec.name} is lost: {error}", agent=spec.name
                    ) from error
                if reply["kind"] == "answer":
                    self._note(spec, reply)
                    try:
                        output = read_answer(spec, answer)
                    except AgentCrashed:
                        # An error of its own, told in good form: nothing speaks against its process.
                        self._keep(child, settings, pool, reply)
                        raise
                    self._keep(child, settings, pool, reply)
                    return output
            if reply["kind"] != "stale":
                break
        raise failure_of(spec, reply)

    @asynccontextmanager
    async def _child(self, spec: AgentSpec, settings: ProcessSettings, pool: _Pool) -> AsyncIterator[Child]:
        """A process for one call; it is ended afterwards unless it was put back among the idle."""
        child = self._take(pool)
        if child is None:
            child = await self._start(spec, settings)
        try:
            yield child
        finally:
            if child not in pool.idle:
                await asyncio.shield(self._ending(child))

    def _take(self, pool: _Pool) -> Child | None:
        while pool.idle:
            child = pool.idle.pop()
            self._timers.pop(child).cancel()
            if child.alive:
                return child
            self._ending(child)
        return None

    async def _start(self, spec: AgentSpec, settings: ProcessSettings) -> Child:
        if self._closed:
            raise AgentUnreachable(f"{spec.name} is not started: the server is stopping", agent=spec.name)
        program = _program(spec, settings)
        if self._room.locked():
            self._make_room()
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            child = await self.machine.start(program, spec.limits, agent=spec.name)
        except BaseException:
            self._room.release()
            raise
        self._children.add(child)
        return child

    def _make_room(self) -> None:
        """End the process that has been idle for longest."""
        if self._timers:
            oldest = next(iter(self._timers))
            for pool in self._pools.values():
                if oldest in pool.idle:
                    self._retire(oldest, pool)

    def _keep(self, child: Child, settings: ProcessSettings, pool: _Pool, reply: Mapping[str, Any]) -> None:
        # Where somebody waits for room, this one makes it.
        if self._closed or self._waiting or reply["retire"]:
            return
        pool.idle.append(child)
        loop = asyncio.get_running_loop()
        self._timers[child] = loop.call_later(settings.idle_seconds, self._retire, child, pool)

    def _retire(self, child: Child, pool: _Pool) -> None:
        pool.idle.remove(child)
        self._timers.pop(child).cancel()
        self._ending(child)

    def _ending(self, child: Child) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(self._end(child))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _end(self, child: Child) -> None:
        if child not in self._children:
            return
        self._children.discard(child)
        try:
            await child.close()
        finally:
            self._room.release()

    @staticmethod
    def _note(spec: AgentSpec, reply: Mapping[str, Any]) -> None:
        _LOG.debug(
            "%s used %.2f s of processor time and %d bytes of memory, and printed %d bytes",
            spec.name,
            reply["cpu_seconds"],
            reply["peak_bytes"],
            reply["printed_bytes"],
        )


def _key(spec: AgentSpec) -> str:
    return f"{spec.name} {spec.version} {sha256_of([dict(spec.settings), spec.limits.model_dump(mode='json')])}"


def _told(context: AgentContext) -> dict[str, Any]:
    return {
        "task_id": context.task_id,
        "step": context.step,
        "attempt": context.attempt,
        "idempotency_key": context.idempotency_key,
        "now": context.now.isoformat(),
        "caller": {"name": context.caller.name, "roles": sorted(context.caller.roles)},
        "trace_id": context.trace_id,
        "request": dict(context.request),
        "device_id": context.device_id,
        "document_sha256": context.document_sha256,
        "diagnosis": list(context.diagnosis),
        "turns_left": context.turns_left,
    }


def _program(spec: AgentSpec, settings: ProcessSettings) -> Program:
    folder: Path | None = None
    if settings.path is not None:
        folder = Path(os.path.realpath(settings.path))
        if not folder.is_dir():
            raise ManifestInvalid(f"settings.path of {spec.name} is no folder: {settings.path}", agent=spec.name)
    command: tuple[str, ...] = ()
    if settings.command:
        program = settings.command[0]
        if folder is not None and not os.path.isabs(program) and os.sep in program:
            program = str(folder / program)
        found = shutil.which(program)
        if found is None:
            raise ManifestInvalid(f"settings.command of {spec.name} is no program: {program}", agent=spec.name)
        command = (os.path.abspath(found), *settings.command[1:])
    return Program(
        function=settings.callable or "",
        command=command,
        folder=folder,
        network=settings.network,
        scratch_bytes=settings.scratch_bytes,
    )
