"""The connected devices: what they saw becomes tasks, and steps of tasks go down to them and come back.

Nothing is lost and nothing applied twice: a message is acknowledged only after what it says is on disk, an
observation seen again is the same task by its id, and the result of a step counts once, for the attempt that
waits.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from agents.canonical import canonical_json
from agents.invocation import Invocation
from cloud.services.fields import checked_json, checked_text
from conductor.bus import Acceptance
from conductor.journal import timestamp_of
from podium.errors import (
    AgentCrashed,
    AgentError,
    DeviceLost,
    DeviceOffline,
    InvalidRequest,
    LimitExceeded,
    OutputContractBroken,
    PodiumError,
    ServerUnavailable,
    catalogue,
)
from podium.v1 import edge_pb2, result_pb2

_LOG = logging.getLogger(__name__)

MAX_DEVICE_ID_CHARACTERS = 100
MAX_CAPABILITIES = 100
_HELLO_WITHIN = timedelta(seconds=10)
_REMEMBERED_SESSIONS = 10_000
_REMEMBERED_STEPS = 10_000
_MAX_OUTGOING = 256

AcceptObservation = Callable[[str, edge_pb2.Observation], Awaitable[Acceptance]]
"""Given the device and what it saw: the task it became, on disk; raises `PodiumError`."""


class DeviceCannot(AgentError):
    """The device that a step must run on does not offer the agent."""

    code = "DEVICE_CANNOT"
    advice = "Update the device's software, or plan the step with an agent of the cloud."


class SequenceGap(InvalidRequest):
    """A device's messages are not numbered one after the other."""

    code = "SEQUENCE_GAP"
    advice = "Connect again and send every unacknowledged message in order."


@dataclass(slots=True)
class _Pending:
    request: edge_pb2.StepRequest
    outcome: "asyncio.Future[Any]"


@dataclass(slots=True)
class _Session:
    """One run of a device's process; its numbering goes on over reconnects."""

    session_id: str
    applied: int | None = None
    """Everything up to this number is on disk; None before the first message, whose number is then believed."""


@dataclass(slots=True)
class _Stream:
    """One connection. What it sends waits in `outgoing`; None or an error ends it."""

    session: _Session
    outgoing: "asyncio.Queue[edge_pb2.ConnectResponse | BaseException | None]" = field(
        default_factory=asyncio.Queue
    )
    has_room: asyncio.Event = field(default_factory=asyncio.Event)
    """Unset while the device does not read what it is sent; then nothing more is read from it either."""

    def send(self, **message: Any) -> None:
        """Queue a message with the present acknowledgement."""
        self.outgoing.put_nowait(edge_pb2.ConnectResponse(ack_through=self.session.applied or 0, **message))
        if self.outgoing.qsize() >= _MAX_OUTGOING:
            self.has_room.clear()

    async def next(self) -> edge_pb2.ConnectResponse | BaseException | None:
        """What is to be sent next."""
        response = await self.outgoing.get()
        if self.outgoing.qsize() < _MAX_OUTGOING:
            self.has_room.set()
        return response


@dataclass(slots=True)
class _Device:
    device_id: str
    capabilities: frozenset[str]
    stream: _Stream
    pending: dict[tuple[str, int, int], _Pending] = field(default_factory=dict)


class DeviceHub:
    """Behind `EdgeService.Connect`; also the `agents.engines.device.DeviceLink` that steps go through."""

    def __init__(
        self,
        *,
        accept: AcceptObservation,
        clock: Callable[[], datetime],
        software_version: str,
    ) -> None:
        self._accept = accept
        self._clock = clock
        self._software_version = software_version
        self._devices: dict[str, _Device] = {}
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._attempts: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._closed = False

    def online(self, device_id: str) -> bool:
        """Whether the device is connected now."""
        return device_id in self._devices

    async def invoke(self, device_id: str, invocation: Invocation) -> Any:
        """Send the step and wait for its raw output; being cancelled takes the step back.

        Raises:
            DeviceOffline: the device is not connected.
            DeviceLost: its connection ended before the answer.
            DeviceCannot: it does not offer the agent.
            AgentError: what the device says went wrong.
        """
        name = invocation.spec.name
        device = self._devices.get(device_id)
        if device is None:
            raise DeviceOffline(f"device {device_id} is not connected", agent=name)
        if name not in device.capabilities:
            raise DeviceCannot(f"device {device_id} does not offer {name}", agent=name)
        request = self._step_request(invocation)
        key = (request.task_id, request.step, request.attempt)
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        device.pending[key] = _Pending(request, outcome)
        device.stream.send(step_request=request)
        try:
            return await outcome
        except asyncio.CancelledError:
            device.stream.send(step_cancel=edge_pb2.StepCancel(task_id=request.task_id, step=request.step))
            raise
        finally:
            del device.pending[key]

    async def connect(
        self, requests: AsyncIterator[edge_pb2.ConnectRequest]
    ) -> AsyncIterator[edge_pb2.ConnectResponse]:
        """Serve one connection until it ends; a newer connection of the same device ends it too.

        Raises:
            InvalidRequest: the device breaks the protocol.
            StorageFull: something cannot be stored; it was not acknowledged, so the device sends it again.
            ServerUnavailable: the server is stopping.
        """
        hello = await _hello(requests)
        device = self._attach(hello)
        stream = device.stream
        welcome = edge_pb2.Welcome(software_version=self._software_version, time=timestamp_of(self._clock()))
        stream.send(welcome=welcome)
        for pending in device.pending.values():
            # The connection before may have died with these; the device answers each attempt once.
            stream.send(step_request=pending.request)
        receiving = asyncio.create_task(self._receive(device, stream, requests))
        receiving.add_done_callback(lambda done: stream.outgoing.put_nowait(_ending(done)))
        try:
            while isinstance(response := await stream.next(), edge_pb2.ConnectResponse):
                yield response
            if response is not None:
                raise response
        finally:
            receiving.cancel()
            self._detach(device, stream)

    def close(self) -> None:
        """Take no more connections and end those there are."""
        self._closed = True
        for device in self._devices.values():
            device.stream.outgoing.put_nowait(ServerUnavailable("the server is stopping"))

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
        )

    def _attach(self, hello: edge_pb2.Hello) -> _Device:
        if self._closed:
            raise ServerUnavailable("the server is stopping")
        device_id = hello.device_id
        session = self._sessions.get(device_id)
        # A device that names no session may have started anew, so its numbers are believed anew.
        if session is None or not hello.session_id or session.session_id != hello.session_id:
            session = _Session(session_id=hello.session_id)
        self._sessions[device_id] = session
        self._sessions.move_to_end(device_id)
        if len(self._sessions) > _REMEMBERED_SESSIONS:
            self._sessions.popitem(last=False)
        stream = _Stream(session)
        stream.has_room.set()
        capabilities = frozenset(hello.capabilities)
        device = self._devices.get(device_id)
        if device is None:
            device = self._devices[device_id] = _Device(device_id, capabilities, stream)
        else:
            device.stream.outgoing.put_nowait(ServerUnavailable(f"device {device_id} connected anew elsewhere"))
            device.stream, device.capabilities = stream, capabilities
        _LOG.info("device %s connected", device_id)
        return device

    def _detach(self, device: _Device, stream: _Stream) -> None:
        if device.stream is not stream:
            return  # a newer connection goes on with what waits
        del self._devices[device.device_id]
        for pending in device.pending.values():
            if not pending.outcome.done():
                pending.outcome.set_exception(
                    DeviceLost(
                        f"device {device.device_id} lost its connection during the step",
                        agent=pending.request.agent,
                    )
                )
        _LOG.info("device %s disconnected", device.device_id)

    async def _receive(
        self, device: _Device, stream: _Stream, requests: AsyncIterator[edge_pb2.ConnectRequest]
    ) -> None:
        session = stream.session
        async for request in requests:
            await stream.has_room.wait()
            if session.applied is None and request.sequence > 0:
                session.applied = request.sequence - 1
            applied = session.applied or 0
            if request.sequence == 0 or request.sequence > applied + 1:
                raise SequenceGap(f"message {request.sequence} follows message {applied}", field="sequence")
            again = request.sequence <= applied
            match request.WhichOneof("message"):
                case "observation":
                    # Also when it came before: its outcome may have been lost with the connection.
                    outcome = await self._observe(device.device_id, request.observation)
                    session.applied = max(applied, request.sequence)
                    stream.send(observation_outcome=outcome)
                    continue
                case "step_result" if not again:
                    self._settle(device, request.step_result)
                case "hello":
                    raise InvalidRequest("hello is the first message of a stream and comes once", field="hello")
                case None:
                    _LOG.warning("device %s sent a message of a kind not known here", device.device_id)
            session.applied = max(applied, request.sequence)
            stream.send()

    async def _observe(self, device_id: str, observation: edge_pb2.Observation) -> edge_pb2.ObservationOutcome:
        outcome = edge_pb2.ObservationOutcome(observation_id=observation.observation_id)
        try:
            outcome.task_id = (await self._accept(device_id, observation)).task_id
        except PodiumError as error:
            if error.retryable:
                raise  # not acknowledged: the device keeps it and sends it again
            # Refused for good and told so: sending it for ever would block everything behind it.
            _LOG.warning("device %s: observation refused: %s (%s)", device_id, error.code, error.field)
            outcome.error.CopyFrom(_detail(error))
        return outcome

    def _settle(self, device: _Device, result: edge_pb2.StepResult) -> None:
        key = (result.task_id, result.step, result.attempt)
        pending = device.pending.get(key)
        if pending is None or pending.outcome.done():
            _LOG.info("device %s: late or repeated result of %s/%d#%d ignored", device.device_id, *key)
            return
        try:
            pending.outcome.set_result(_output(result, pending.request.agent))
        except PodiumError as error:
            pending.outcome.set_exception(error)


async def _hello(requests: AsyncIterator[edge_pb2.ConnectRequest]) -> edge_pb2.Hello:
    try:
        async with asyncio.timeout(_HELLO_WITHIN.total_seconds()):
            first = await anext(requests, None)
    except TimeoutError as error:
        raise InvalidRequest("no hello came", field="hello") from error
    if first is None or first.WhichOneof("message") != "hello":
        raise InvalidRequest("the first message of a stream must be hello", field="hello")
    hello = first.hello
    checked_text(hello.device_id, "hello.device_id", max_characters=MAX_DEVICE_ID_CHARACTERS, required=True)
    checked_text(hello.session_id, "hello.session_id", max_characters=MAX_DEVICE_ID_CHARACTERS)
    if len(hello.capabilities) > MAX_CAPABILITIES:
        raise LimitExceeded(f"{len(hello.capabilities)} capabilities; {MAX_CAPABILITIES} are allowed")
    return hello


def _ending(done: "asyncio.Task[None]") -> BaseException | None:
    """How a stream ends after its receiving side did."""
    return None if done.cancelled() else done.exception()


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


def _detail(error: PodiumError) -> result_pb2.ErrorDetail:
    return result_pb2.ErrorDetail(
        code=error.code,
        message=error.message,
        next_step=error.next_step,
        evidence=error.evidence,
        agent=error.agent,
    )
