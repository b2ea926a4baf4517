"""`AgentService`: says which agents the host has, and runs them."""

import asyncio
import hashlib
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError
from grpc_status import rpc_status as grpc_rpc_status

from podium.agent_host.checking import Checks
from podium.agent_host.context import CallContext
from podium.agent_host.declaration import Declaration, canonical_json
from podium.agent_host.errors import HostBusy, HostDraining, IdempotencyKeyReused, SchemaMismatch
from podium.agent_host.execution import AgentFunction, Executor
from podium.agent_host.outcomes import Outcome, Outcomes
from podium.errors import (
    AgentError,
    AgentOverLimit,
    AgentTimeout,
    InputContractBroken,
    InternalError,
    NotFound,
    OutputContractBroken,
    PodiumError,
)
from podium.rpc_status import to_status
from podium.telemetry import of_metadata, span
from podium.v1 import agent_pb2, agent_pb2_grpc

_LOG = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedAgent:
    """An agent of this host: what it promises and the function that does it."""

    declaration: Declaration
    checks: Checks
    function: AgentFunction


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that runs; those that come with the same key wait for it."""

    fingerprint: bytes
    answer: "asyncio.Task[bytes]"


class AgentService(agent_pb2_grpc.AgentServiceServicer):
    """See `podium/v1/agent.proto`."""

    def __init__(
        self,
        agents: Mapping[tuple[str, str], HostedAgent],
        executor: Executor,
        outcomes: Outcomes,
        *,
        admit: Callable[[Context], None],
        software_version: str,
    ) -> None:
        """Serve.

        Args:
            agents: by name and version.
            executor: runs them.
            outcomes: the record of writes.
            admit: raises `PodiumError` for whoever may not call.
            software_version: of the host.
        """
        self._agents = agents
        self._executor = executor
        self._outcomes = outcomes
        self._admit = admit
        self._software_version = software_version
        self._writes: dict[str, _Write] = {}
        self._running: set[asyncio.Task[bytes]] = set()
        self.draining = False
        """When set, nothing new is run."""

    async def Describe(  # noqa: N802 - gRPC's name
        self, request: agent_pb2.DescribeRequest, context: Context
    ) -> agent_pb2.DescribeResponse:
        """The agents of this host, by name and version."""

        async def answer() -> agent_pb2.DescribeResponse:
            self._admit(context)
            described = [
                agent.declaration.to_message()
                for (name, _), agent in sorted(self._agents.items(), key=lambda item: _order(*item[0]))
                if request.name in ("", name)
            ]
            return agent_pb2.DescribeResponse(agents=described, software_version=self._software_version)

        return await _answered(context, answer)

    async def Invoke(  # noqa: N802 - gRPC's name
        self, request: agent_pb2.InvokeRequest, context: Context
    ) -> agent_pb2.InvokeResponse:
        """Run an agent once."""

        async def answer() -> agent_pb2.InvokeResponse:
            self._admit(context)
            if self.draining:
                raise HostDraining(f"the host stops; {request.agent} was not called", agent=request.agent)
            agent = self._agent(request)
            with span("podium.agent", kind="server", parent=of_metadata(context.invocation_metadata())) as run:
                run.set("podium.agent", agent.declaration.name)
                run.set("podium.agent.version", agent.declaration.version)
                run.set("podium.step.attempt", request.context.attempt)
                inputs = _inputs(request.input_json, agent)
                output = await self._output(agent, inputs, request.context, context.time_remaining())
            sha256 = agent.declaration.output_sha256
            return agent_pb2.InvokeResponse(output_json=output, output_schema_sha256=sha256)

        return await _answered(context, answer)

    async def drained(self) -> None:
        """Wait until everything that runs has ended."""
        while self._running:
            await asyncio.wait(self._running)

    def _agent(self, request: agent_pb2.InvokeRequest) -> HostedAgent:
        versions = sorted((version for name, version in self._agents if name == request.agent), key=_numbers)
        version = request.agent_version or next(reversed(versions), "")
        agent = self._agents.get((request.agent, version))
        if agent is None:
            has = f"it has version {', '.join(versions)}" if versions else "it has no version of it"
            raise NotFound(
                f"the host does not run {request.agent[:80]} {request.agent_version[:20]}; {has}",
                next_step="Give host and server the same manifest.",
                agent=request.agent[:80],
                field="agent",
            )
        ours = agent.declaration
        for what, asked, known in (
            ("input", request.input_schema_sha256, ours.input_sha256),
            ("output", request.output_schema_sha256, ours.output_sha256),
        ):
            if asked != known:
                raise SchemaMismatch(
                    f"the {what} schema of {ours.name} {ours.version} is {known} here, and the caller's is "
                    f"{asked[:64] or 'not given'}",
                    agent=ours.name,
                )
        return agent

    async def _output(
        self,
        agent: HostedAgent,
        inputs: Mapping[str, Any],
        told: agent_pb2.InvocationContext,
        remaining_s: float | None,
    ) -> bytes:
        declaration = agent.declaration
        limit_s = declaration.time_limit.total_seconds() if remaining_s is None else remaining_s
        context = CallContext.of(told, ends_at_s=time.monotonic() + min(limit_s, 10 * 86_400.0))
        if declaration.writes and told.idempotency_key:
            answer = self._write(agent, inputs, context)
        else:
            answer = self._track(self._run(agent, inputs, context))
        try:
            async with asyncio.timeout(min(limit_s, math.inf)):
                # A write that began is finished and its outcome kept, whether or not somebody still waits.
                return await asyncio.shield(answer)
        except (TimeoutError, asyncio.CancelledError) as error:
            if not declaration.writes:
                context.cancelled.set()
                answer.cancel()
            if isinstance(error, TimeoutError):
                raise AgentTimeout(
                    f"{declaration.name} did not answer within {limit_s:g} s", agent=declaration.name
                ) from error
            raise

    def _write(self, agent: HostedAgent, inputs: Mapping[str, Any], context: CallContext) -> "asyncio.Task[bytes]":
        declaration = agent.declaration
        # An agent that takes over the step of another one has a write of its own.
        key = f"{declaration.name}/{context.idempotency_key}"
        fingerprint = hashlib.sha256(canonical_json([declaration.version, dict(inputs)])).digest()
        running = self._writes.get(key)
        if running is None:
            answer = self._track(self._written_once(key, fingerprint, agent, inputs, context))
            self._writes[key] = _Write(fingerprint, answer)
            answer.add_done_callback(lambda _: self._writes.pop(key))
            return answer
        if running.fingerprint != fingerprint:
            raise IdempotencyKeyReused(
                f"the key {context.idempotency_key[:200]!r} came with other inputs, and they are being written",
                agent=declaration.name,
            )
        return running.answer

    async def _written_once(
        self, key: str, fingerprint: bytes, agent: HostedAgent, inputs: Mapping[str, Any], context: CallContext
    ) -> bytes:
        name, idempotent = agent.declaration.name, agent.declaration.idempotent
        known = await asyncio.to_thread(self._outcomes.begin, key, fingerprint, idempotent=idempotent)
        if known is not None and known.output is not None:
            return known.output
        if known is not None and known.error is not None:
            raise known.error
        try:
            output = await self._run(agent, inputs, context)
        except HostBusy:
            await asyncio.to_thread(self._outcomes.forget, key)  # nothing was run
            raise
        except AgentError as error:
            if idempotent:  # it may be asked again, and then it is to be run again
                await self._kept(name, partial(self._outcomes.forget, key))
            else:
                await self._kept(name, partial(self._outcomes.end, key, Outcome(error=error)))
            raise
        await self._kept(name, partial(self._outcomes.end, key, Outcome(output=output)))
        return output

    async def _kept(self, name: str, keep: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(keep)
        except PodiumError as error:
            # The write happened: its caller gets the answer. A repetition will be told that nobody knows.
            _LOG.error("what came of a write of %s is not on record: %s", name, error.code)

    async def _run(self, agent: HostedAgent, inputs: Mapping[str, Any], context: CallContext) -> bytes:
        declaration = agent.declaration
        name = declaration.name
        raw = await self._executor.run(agent.function, inputs, context, name)
        try:
            output = canonical_json(raw)
        except (ValueError, TypeError, RecursionError) as error:
            raise OutputContractBroken(f"what {name} returned is not JSON: {error}", agent=name) from error
        if len(output) > (most := declaration.max_output_bytes):
            raise AgentOverLimit(
                f"{name} returned {len(output)} bytes; its limit max_output_bytes is {most}",
                agent=name,
            )
        agent.checks.output(json.loads(output))
        return output

    def _track(self, running: "Any") -> "asyncio.Task[bytes]":
        task: asyncio.Task[bytes] = asyncio.create_task(running)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[bytes]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.info(
                "a call ended with %s", error.code if isinstance(error, PodiumError) else type(error).__name__
            )


def _inputs(data: bytes, agent: HostedAgent) -> Mapping[str, Any]:
    declaration = agent.declaration
    if len(data) > declaration.max_input_bytes:
        raise InputContractBroken(
            f"the input has {len(data)} bytes; the limit max_input_bytes is {declaration.max_input_bytes}",
            agent=declaration.name,
        )
    try:
        inputs = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputContractBroken(f"the input is not JSON: {error}", agent=declaration.name) from error
    if not isinstance(inputs, dict):
        raise InputContractBroken("the input is not an object", agent=declaration.name)
    agent.checks.inputs(inputs)
    return inputs


async def _answered(context: Context, answer: Callable[[], Awaitable[R]]) -> R:
    """The answer, or the error as google.rpc.Status."""
    try:
        return await answer()
    except PodiumError as error:
        told = error
    except DecodeError as error:
        told = InputContractBroken(f"the call is not a message of the published protos: {error}")
    except Exception as error:  # noqa: BLE001 - a defect of the host ends the call, not the host
        _LOG.exception("a call failed in the host itself")
        told = InternalError(f"the host failed: {type(error).__name__}")
    # Outside of any `except`: abort raises an exception of gRPC's own.
    status = grpc_rpc_status.to_status(to_status(told))
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise told  # abort has raised


def _order(name: str, version: str) -> tuple[str, list[int]]:
    return name, _numbers(version)


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in version.split(".")]
