"""Run agents on agent hosts: any process on any machine that speaks `podium.v1.AgentService`."""

import asyncio
import itertools
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from agents.canonical import canonical_json, sha256_of
from agents.engines.foreign import AgentIncompatible, timed_out
from agents.engines.grpc_endpoints import Endpoint, HostTrust, TrustNow
from agents.engines.grpc_errors import NotCalled, failure
from agents.engines.settings import GrpcSettings
from agents.invocation import Invocation
from podium.errors import AgentCrashed, AgentError, AgentOverLimit, AgentTimeout, AgentUnreachable, PodiumError
from podium.link import MachineIdentity
from podium.telemetry import TRACEPARENT, current
from podium.v1 import agent_pb2

_DESCRIBE = "/podium.v1.AgentService/Describe"
_INVOKE = "/podium.v1.AgentService/Invoke"
_CONNECTS_WITHIN_S = 5.0
_REMEMBERED_STEPS = 4_096

EndpointKey = tuple[str, bool, str | None, int]
StepKey = tuple[str, str]


class GrpcEngine:
    """Asks one endpoint of the agent; another one where the first certainly did not run it."""

    def __init__(self, trust: TrustNow, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Connect to nothing yet.

        Args:
            trust: what this server shows to hosts and whom it trusts, at this moment.
            clock_s: a clock that never goes back.
        """
        self._trust = trust
        self._clock_s = clock_s
        self._endpoints: dict[EndpointKey, Endpoint] = {}
        self._turn = itertools.count()
        self._failed: OrderedDict[StepKey, set[str]] = OrderedDict()

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`; the output as the bytes that came.

        Raises:
            AgentUnreachable: no endpoint can be reached, or the one that was asked died.
            AgentIncompatible: the host has another version or other schemas of the agent.
            AgentOverLimit: the answer is larger than `limits.max_output_bytes`.
        """
        settings = GrpcSettings.model_validate(dict(invocation.spec.settings))
        try:
            async with asyncio.timeout(invocation.time_limit.total_seconds()):
                return await self._asked(invocation, settings)
        except TimeoutError as error:
            raise timed_out(invocation) from error

    def trust_changed(self) -> int:
        """A host's certificate was taken back: end connections that rest on it; how many calls they had."""
        return sum(endpoint.distrust() for endpoint in self._endpoints.values())

    async def close(self) -> None:
        """End every connection."""
        endpoints, self._endpoints = self._endpoints, {}
        for endpoint in endpoints.values():
            await endpoint.close()

    async def _asked(self, invocation: Invocation, settings: GrpcSettings) -> bytes:
        step = (invocation.context.task_id, invocation.context.idempotency_key)
        endpoints = self._ordered(self._endpoints_of(invocation, settings), self._failed.get(step, set()))
        refusals: list[AgentError] = []
        ends_s = self._clock_s() + invocation.time_limit.total_seconds()
        for number, endpoint in enumerate(endpoints):
            if not endpoint.breaker.admits():
                refusals.append(_left_alone(endpoint, invocation.spec.name))
                continue
            # An endpoint that swallows everything must leave time for those after it.
            share_s = (ends_s - self._clock_s()) / (len(endpoints) - number)
            try:
                output = await self._answer(
                    endpoint, invocation, settings, min(share_s, _CONNECTS_WITHIN_S), ends_s
                )
            except NotCalled as error:
                refusals.append(error.cause)
            except (AgentError, asyncio.CancelledError):
                self._remember(step, endpoint.target)
                raise
            else:
                self._failed.pop(step, None)
                return output
        refused = _refused_by_all(invocation.spec.name, refusals)
        if isinstance(refused, AgentUnreachable):
            refused.before_call = True
        raise refused

    async def _answer(
        self,
        endpoint: Endpoint,
        invocation: Invocation,
        settings: GrpcSettings,
        connects_within_s: float,
        ends_s: float,
    ) -> bytes:
        name = settings.agent or invocation.spec.name
        with endpoint.called():
            settled = False
            try:
                channel = endpoint.channel()
                await self._described(channel, endpoint, invocation, name, connects_within_s)
                request = _request(invocation, name)
                left_s = max(0.001, ends_s - self._clock_s())
                data = await _call(channel, _INVOKE, request.SerializeToString(), left_s, invocation)
                settled = True
                endpoint.breaker.succeeded()
            except grpc.aio.AioRpcError as error:
                settled = True
                found = failure(error, invocation, endpoint.address)
                _judge(endpoint, found)
                raise found from error
            except NotCalled as error:
                settled = True
                _judge(endpoint, error)
                raise
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                raise AgentUnreachable(
                    f"the connection to {endpoint.target} was ended while {name} ran: "
                    "the host's certificate was taken back",
                    agent=invocation.spec.name,
                ) from error
            finally:
                if not settled:
                    endpoint.breaker.unsettled()
        return _output(data, invocation, endpoint.target)

    async def _described(
        self, channel: grpc.aio.Channel, endpoint: Endpoint, invocation: Invocation, name: str, within_s: float
    ) -> None:
        """See that the host is there and has the agent of the manifest; nothing is run by this.

        Raises:
            NotCalled: it is not, or has another one.
        """
        spec = invocation.spec
        hashes = sha256_of(spec.input_schema), sha256_of(spec.output_schema)
        known = (name, spec.version, *hashes)
        if known in endpoint.described and endpoint.connected:
            return
        request = agent_pb2.DescribeRequest(name=name).SerializeToString()
        try:
            data = await _call(channel, _DESCRIBE, request, within_s, invocation)
            _compare(agent_pb2.DescribeResponse.FromString(data), invocation, name, hashes, endpoint.target)
        except grpc.aio.AioRpcError as error:
            found = failure(error, invocation, endpoint.address)
            if isinstance(found, AgentTimeout):
                found = AgentUnreachable(
                    f"the host {endpoint.target} of {spec.name} said nothing for {within_s:.1f} s",
                    agent=spec.name,
                )
            raise (found if isinstance(found, NotCalled) else NotCalled(found)) from error
        except DecodeError as error:
            nonsense = AgentIncompatible(f"what {endpoint.target} answers is no message of ours", agent=spec.name)
            raise NotCalled(nonsense) from error
        except AgentIncompatible as error:
            raise NotCalled(error) from error
        endpoint.described.add(known)

    def _endpoints_of(self, invocation: Invocation, settings: GrpcSettings) -> list[Endpoint]:
        found = []
        for target in dict.fromkeys(settings.endpoints):
            most = invocation.spec.limits.max_output_bytes
            key = (target, settings.insecure_loopback, settings.identity_folder, most)
            if key not in self._endpoints:
                self._endpoints[key] = Endpoint(
                    target, self._trust_of(settings), max_output_bytes=most, clock_s=self._clock_s
                )
            found.append(self._endpoints[key])
        return found

    def _trust_of(self, settings: GrpcSettings) -> TrustNow:
        if settings.insecure_loopback:
            return lambda: None
        if settings.identity_folder is None:
            return self._trust
        folder = Path(settings.identity_folder)
        return lambda: _trust_of_folder(folder)

    def _ordered(self, endpoints: Sequence[Endpoint], failed: set[str]) -> list[Endpoint]:
        """Those first that did not fail this step, are not known to be down, and have the fewest calls."""
        turn = next(self._turn)
        turned = [endpoints[(turn + number) % len(endpoints)] for number in range(len(endpoints))]
        return sorted(turned, key=lambda one: (one.target in failed, one.healthy is False, one.in_flight))

    def _remember(self, step: StepKey, target: str) -> None:
        self._failed.setdefault(step, set()).add(target)
        self._failed.move_to_end(step)
        while len(self._failed) > _REMEMBERED_STEPS:
            self._failed.popitem(last=False)


async def _call(
    channel: grpc.aio.Channel, method: str, request: bytes, timeout_s: float, invocation: Invocation
) -> bytes:
    # Bytes, because gRPC hands out None for an answer that it cannot decode.
    call: Any = channel.unary_unary(method)
    answer: bytes = await call(request, timeout=timeout_s, metadata=_metadata())
    return answer


def _metadata() -> tuple[tuple[str, str], ...]:
    """What travels beside the call: the W3C trace context, if the call is part of a trace."""
    context = current()
    return () if context is None else ((TRACEPARENT, context.traceparent),)


def _request(invocation: Invocation, name: str) -> agent_pb2.InvokeRequest:
    context, spec = invocation.context, invocation.spec
    told = agent_pb2.InvocationContext(
        task_id=context.task_id,
        step=max(0, context.step),
        attempt=context.attempt,
        idempotency_key=context.idempotency_key,
        caller=context.caller.name,
        diagnosis=context.diagnosis,
        document_sha256=context.document_sha256,
    )
    told.as_of.FromDatetime(context.now)
    return agent_pb2.InvokeRequest(
        agent=name,
        agent_version=spec.version,
        input_json=canonical_json(dict(invocation.inputs)),
        input_schema_sha256=sha256_of(spec.input_schema),
        output_schema_sha256=sha256_of(spec.output_schema),
        context=told,
    )


def _output(data: bytes, invocation: Invocation, target: str) -> bytes:
    name = invocation.spec.name
    try:
        response = agent_pb2.InvokeResponse.FromString(data)
    except DecodeError as error:
        raise AgentCrashed(f"{name} at {target} answered with what is no message of ours", agent=name) from error
    if len(response.output_json) > (most := invocation.spec.limits.max_output_bytes):
        raise AgentOverLimit(
            f"{name} at {target} answered with more than its limit max_output_bytes of {most}",
            agent=name,
        )
    ours = sha256_of(invocation.spec.output_schema)
    if response.output_schema_sha256 != ours:
        raise AgentIncompatible(
            f"the output schema of {name} is {ours} here, and {target} answers by "
            f"{response.output_schema_sha256[:64] or 'none that it names'}",
            agent=name,
        )
    return bytes(response.output_json)


def _compare(
    response: agent_pb2.DescribeResponse, invocation: Invocation, name: str, hashes: tuple[str, str], target: str
) -> None:
    spec = invocation.spec
    versions = {agent.version: agent for agent in response.agents if agent.name == name}
    agent = versions.get(spec.version)
    if agent is None:
        has = f"version {', '.join(sorted(versions))[:200]}" if versions else "no version of it"
        raise AgentIncompatible(
            f"the manifest is of {spec.name} {spec.version}, and {target} has {has}", agent=spec.name
        )
    for what, ours, data in (
        ("input", hashes[0], agent.input_schema_json),
        ("output", hashes[1], agent.output_schema_json),
    ):
        try:
            theirs = sha256_of(json.loads(data))
        except (ValueError, RecursionError):
            theirs = "no JSON"
        if theirs != ours:
            raise AgentIncompatible(
                f"the {what} schema of {spec.name} {spec.version} is {ours} here, and {target} has {theirs}",
                agent=spec.name,
            )


def _judge(endpoint: Endpoint, found: AgentError | NotCalled) -> None:
    """What a failure says about the endpoint. One that answers with an error of its agent is alive."""
    cause = found.cause if isinstance(found, NotCalled) else found
    if isinstance(cause, AgentUnreachable) and cause.retry_after is None:
        endpoint.breaker.failed()
        endpoint.last_failure = cause.message
    elif isinstance(cause, AgentTimeout | AgentUnreachable):
        endpoint.breaker.unsettled()  # the watch tells a slow agent from a host that is gone
    else:
        endpoint.breaker.succeeded()


def _left_alone(endpoint: Endpoint, name: str) -> AgentUnreachable:
    pause_s = endpoint.breaker.pause_left_s
    return AgentUnreachable(
        f"{endpoint.target} is left alone for {pause_s:.1f} s after several failures: {endpoint.last_failure}",
        retry_after=timedelta(seconds=pause_s),
        agent=name,
    )


def _refused_by_all(name: str, refusals: Sequence[AgentError]) -> AgentError:
    if len(refusals) == 1:
        return refusals[0]
    evidence = [error.message for error in refusals]
    if all(isinstance(error, AgentIncompatible) for error in refusals):
        return AgentIncompatible(f"no host has {name} as its manifest says", evidence=evidence, agent=name)
    return AgentUnreachable(
        f"none of {len(refusals)} hosts of {name} can be reached",
        evidence=evidence,
        retry_after=_soonest(refusals),
        agent=name,
    )


def _soonest(refusals: Iterable[PodiumError]) -> timedelta | None:
    waits = [error.retry_after for error in refusals if error.retry_after is not None]
    return min(waits) if waits else None


def _trust_of_folder(folder: Path) -> HostTrust:
    identity = MachineIdentity.load(folder)
    return HostTrust(
        certificate_pem=identity.certificate_pem, key_pem=identity.key_pem, trusted=frozenset({identity.ca_pem})
    )
