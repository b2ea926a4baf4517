"""Behind `EdgeService.Connect`: who is connected, what they sent and what they were asked.

Nothing is lost and nothing applied twice: a message is acknowledged only after what it says is on disk, an
observation seen again is the same task by its id, and the result of a step counts once, for the attempt that
waits.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from google.protobuf.duration_pb2 import Duration

from agents.canonical import canonical_json
from agents.invocation import Invocation
from cloud.devices.stream import Stream, first_hello
from cloud.services.fields import checked_json
from cloud.telemetry.device_work import record_work
from conductor.bus import Acceptance
from conductor.journal import timestamp_of
from podium.errors import (
    AgentCrashed,
    AgentError,
    DeviceLost,
    DeviceOffline,
    InputContractBroken,
    InvalidRequest,
    OutputContractBroken,
    PodiumError,
    ServerUnavailable,
    catalogue,
)
from podium.link import MAX_MESSAGE_BYTES
from podium.link.inbox import IdentityShared, Inbox, InboxSession, InboxStore
from podium.link.liveness import DEFAULT_HEARTBEATS, Heartbeats, Patience
from podium.rpc_status import error_detail
from podium.telemetry import current, named, parsed
from podium.v1 import edge_pb2

_LOG = logging.getLogger(__name__)

_REMEMBERED_STEPS = 10_000
_MAX_STEP_BYTES = MAX_MESSAGE_BYTES - 1024
"""The rest of the message is small."""

AcceptObservation = Callable[[str, edge_pb2.Observation], Awaitable[Acceptance]]
"""Given the device and what it saw: the task it became, on disk; raises `PodiumError`."""


class DeviceCannot(AgentError):
    """The device that a step must run on does not offer the agent."""

    code = "DEVICE_CANNOT"
    advice = "Update the device's software, or plan the step with an agent of the cloud."


@dataclass(slots=True)
class _Pending:
    request: edge_pb2.StepRequest
    outcome: "asyncio.Future[Any]"


@dataclass(slots=True, eq=False)
class _Device:
    device_id: str
    capabilities: frozenset[str]
    stream: Stream
    pending: dict[tuple[str, int, int], _Pending] = field(default_factory=dict)


class DeviceHub:
    """The connected devices; also the `agents.engines.device.DeviceLink` that steps go through."""

    def __init__(
        self,
        *,
        accept: AcceptObservation,
        clock: Callable[[], datetime],
        software_version: str,
        inbox: InboxStore,
        on_contested: Callable[[str], None] = lambda device_id: None,
        heartbeats: Heartbeats = DEFAULT_HEARTBEATS,
    ) -> None:
        """Nobody is connected yet.

        Args:
            accept: makes a task of what a device saw.
            clock: the present moment in UTC, told to devices.
            software_version: told to devices.
            inbox: remembers how far each device's messages were applied.
            on_contested: told a device's name when two processes connect under it.
            heartbeats: how soon a device that fell silent is noticed.
        """
        self._accept = accept
        self._clock = clock
        self._software_version = software_version
        self._inbox = Inbox(inbox)
        self._on_contested = on_contested
        self._heartbeats = heartbeats
        self._devices: dict[str, _Device] = {}
        self._attempts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._closed = False

    def online(self, device_id: str) -> bool:
        """Whether the device is connected now."""
        return device_id in self._devices

    @property
    def connected(self) -> int:
        """How many devices are."""
        return len(self._devices)

    async def invoke(self, device_id: str, invocation: Invocation) -> Any:
        """Send the step and wait for its raw output; being cancelled takes the step back.

        Raises:
            DeviceOffline: the device is not connected.
            DeviceLost: its connection ended before the answer.
            DeviceCannot: it does not offer the agent.
            InputContractBroken: the step is larger than a device takes.
            AgentError: what the device says went wrong.
        """
        name = invocation.spec.name
        device = self._devices.get(device_id)
        if device is None:
            raise DeviceOffline(f"device {device_id} is not connected", agent=name)
        if name not in device.capabilities:
            raise DeviceCannot(f"device {device_id} does not offer {name}", agent=name)
        request = self._step_request(invocation)
        if (size_bytes := request.ByteSize()) > _MAX_STEP_BYTES:
            # It would end the device's connection, and so would every repetition after a reconnect.
            raise InputContractBroken(
                f"the step of {name} has {size_bytes} bytes; a device takes {_MAX_STEP_BYTES}", agent=name
            )
        key = (request.task_id, request.step, request.attempt)
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        device.pending[key] = _Pending(request, outcome)
        device.stream.send(step_request=request)
        try:
            return await outcome
        except asyncio.CancelledError:
            task_id, step, attempt = key
            device.stream.send(step_cancel=edge_pb2.StepCancel(task_id=task_id, step=step, attempt=attempt))
            raise
        finally:
            del device.pending[key]

    async def connect(
        self, requests: AsyncIterator[edge_pb2.ConnectRequest]
    ) -> AsyncIterator[edge_pb2.ConnectResponse]:
        """Serve one connection until it ends; a newer connection of the same device ends it too.

        Raises:
            InvalidRequest: the device breaks the protocol.
            IdentityShared: another process of the same name took its place.
            StorageFull: something cannot be stored; it was not acknowledged, so the device sends it again.
            ServerUnavailable: the server is stopping, or nothing was heard of the device.
        """
        hello = await first_hello(requests)
        session = await self._session(hello)
        device, stream = self._attach(hello, session)
        welcome = edge_pb2.Welcome(software_version=self._software_version, time=timestamp_of(self._clock()))
        if stream.heartbeats is not None:
            welcome.heartbeat_interval.FromTimedelta(stream.heartbeats.interval)
        stream.send(welcome=welcome)
        for pending in device.pending.values():
            # The connection before may have died with these; the device answers each attempt once.
            stream.send(step_request=pending.request)
        receiving = asyncio.create_task(self._receive(device, stream, requests))
        receiving.add_done_callback(partial(self._received, device, stream))
        try:
            async for response in stream.responses():
                yield response
        finally:
            receiving.cancel()
            self._detach(device, stream)

    def close(self) -> None:
        """Take no more connections and end those there are."""
        self._closed = True
        for device in self._devices.values():
            device.stream.end(ServerUnavailable("the server is stopping"))

    def _step_request(self, invocation: Invocation) -> edge_pb2.StepRequest:
        context = invocation.context
        # Under a new plan a step of the same index counts its attempts from 1 again, while the result of an old
        # attempt may still be on its way: no number is given to a device twice.
        place = (context.task_id, context.step)
        attempt = max(context.attempt, self._attempts.pop(place, 0) + 1)
        self._attempts[place] = attempt
        if len(self._attempts) > _REMEMBERED_STEPS:
            self._attempts.popitem(last=False)
        time_limit = Duration()
        time_limit.FromTimedelta(invocation.time_limit)
        return edge_pb2.StepRequest(
            task_id=context.task_id,
            step=context.step,
            attempt=attempt,
            agent=invocation.spec.name,
            input_json=canonical_json(invocation.inputs),
            time_limit=time_limit,
            document_sha256=context.document_sha256,
            traceparent=here.traceparent if (here := current()) is not None else "",
        )

    async def _session(self, hello: edge_pb2.Hello) -> InboxSession:
        device_id = hello.device_id
        try:
            return await self._inbox.open(
                device_id,
                hello.session_id,
                next_sequence=hello.next_sequence,
                connected=partial(self.online, device_id),
            )
        except IdentityShared as error:
            _LOG.warning("device %s: two processes hold its name or certificate", named(device_id))
            self._on_contested(device_id)
            raise IdentityShared(
                f"another process connected as device {device_id}, and this one does not get its place back"
            ) from error

    def _attach(self, hello: edge_pb2.Hello, session: InboxSession) -> tuple[_Device, Stream]:
        if self._closed:
            raise ServerUnavailable("the server is stopping")
        device_id = hello.device_id
        stream = Stream(session, self._heartbeats if hello.heartbeats else None)
        # One that sends no heartbeats may have nothing to say for hours: its greeting must do.
        session.confirmed |= not hello.heartbeats
        capabilities = frozenset(hello.capabilities)
        device = self._devices.get(device_id)
        if device is None:
            device = self._devices[device_id] = _Device(device_id, capabilities, stream)
        else:
            device.stream.end(ServerUnavailable(f"device {device_id} connected anew elsewhere"))
            device.stream, device.capabilities = stream, capabilities
        _LOG.info("device %s connected", named(device_id))
        return device, stream

    def _received(self, device: _Device, stream: Stream, done: "asyncio.Task[None]") -> None:
        stream.end(None if done.cancelled() else done.exception())
        # Not when the sending side has ended too: it may wait for minutes to write to a line that is dead.
        self._detach(device, stream)

    def _detach(self, device: _Device, stream: Stream) -> None:
        if device.stream is not stream or self._devices.get(device.device_id) is not device:
            return  # a newer connection goes on with what waits, or this was done already
        del self._devices[device.device_id]
        for pending in device.pending.values():
            if not pending.outcome.done():
                pending.outcome.set_exception(
                    DeviceLost(
                        f"device {device.device_id} lost its connection during the step",
                        agent=pending.request.agent,
                    )
                )
        _LOG.info("device %s disconnected", named(device.device_id))

    async def _receive(
        self, device: _Device, stream: Stream, requests: AsyncIterator[edge_pb2.ConnectRequest]
    ) -> None:
        beats = stream.heartbeats
        first = beats.silence if beats is not None else None
        async with Patience(who=f"device {device.device_id}", first=first) as patience:
            async for request in requests:
                patience.suspend()
                stream.session.confirmed = True
                await stream.has_room.wait()
                kind = request.WhichOneof("message")
                if kind == "hello":
                    raise InvalidRequest("hello is the first message of a stream and comes once", field="hello")
                if kind != "heartbeat":
                    apply = partial(self._apply, device, request)
                    stream.send(**await stream.session.take(request.sequence, apply))
                patience.heard(beats, request.heartbeat.bytes_to_follow)

    async def _apply(self, device: _Device, request: edge_pb2.ConnectRequest, again: bool) -> dict[str, Any]:
        """Do what a numbered message says; what to answer besides the acknowledgement."""
        match request.WhichOneof("message"):
            case "observation":
                # Also when it came before: its outcome may have been lost with the connection.
                return {"observation_outcome": await self._observe(device.device_id, request.observation)}
            case "step_result" if not again:
                self._settle(device, request.step_result)
            case None:
                _LOG.warning("device %s sent a message of a kind not known here", named(device.device_id))
        return {}

    async def _observe(self, device_id: str, observation: edge_pb2.Observation) -> edge_pb2.ObservationOutcome:
        outcome = edge_pb2.ObservationOutcome(observation_id=observation.observation_id)
        try:
            outcome.task_id = (await self._accept(device_id, observation)).task_id
        except PodiumError as error:
            if error.retryable:
                raise  # not acknowledged: the device keeps it and sends it again
            # Refused for good and told so: sending it for ever would block everything behind it.
            _LOG.warning("device %s: observation refused: %s (%s)", named(device_id), error.code, error.field)
            outcome.error.CopyFrom(error_detail(error))
        return outcome

    def _settle(self, device: _Device, result: edge_pb2.StepResult) -> None:
        key = (result.task_id, result.step, result.attempt)
        pending = device.pending.get(key)
        if pending is None or pending.outcome.done():
            _LOG.info("device %s: late or repeated result of a step ignored", named(device.device_id))
            return
        if (above := parsed(pending.request.traceparent)) is not None:
            record_work(
                "device.step",
                result.work,
                above.child(),
                parent_span_id=above.span_id,
                device_id=device.device_id,
                agent=pending.request.agent,
                error_code=result.error.code,
            )
        try:
            pending.outcome.set_result(_output(result, pending.request.agent))
        except PodiumError as error:
            pending.outcome.set_exception(error)


def _output(result: edge_pb2.StepResult, agent: str) -> Any:
    """The raw output of a result, or the error it carries as an exception."""
    if result.WhichOneof("outcome") == "output_json":
        try:
            return checked_json(result.output_json, "output_json")
        except InvalidRequest as error:
            raise OutputContractBroken(f"{agent} on the device: {error.message}", agent=agent) from error
    detail = result.error
    kind = catalogue().get(detail.code, AgentCrashed)
    if not issubclass(kind, AgentError):
        kind = AgentCrashed
    message = detail.message if kind.code == detail.code else f"{detail.code}: {detail.message}"
    raise kind(message, next_step=detail.next_step, evidence=tuple(detail.evidence), agent=agent)
