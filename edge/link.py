"""The device's end of `EdgeService.Connect`: observations up, steps down, over as many connections as it takes.

Every message up has a sequence number and stays in memory until the cloud acknowledges it as stored; after a
reconnect what is not acknowledged is sent again, and the cloud applies nothing twice. An observation whose
acknowledgement came but whose outcome was lost with the connection is sent once more under a new number: by its
id it becomes the same task. (A durable outbox is not part of this pipeline yet: what is unsent when the process
dies is read from its file again.)
"""

import asyncio
import random
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import grpc

from podium.errors import InvalidRequest, LimitExceeded, PodiumError, ServerUnavailable
from podium.link import MAX_MESSAGE_BYTES, Address, async_channel, unreachable
from podium.rpc_status import error_of, from_rpc_error
from podium.v1 import edge_pb2, edge_pb2_grpc, result_pb2

StepHandler = Callable[[edge_pb2.StepRequest], Awaitable[bytes]]
"""Runs one step and returns its output as canonical JSON; raises `PodiumError`."""

FIRST_DELAY = timedelta(seconds=0.5)
LAST_DELAY = timedelta(seconds=30)
_PERMANENT = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)
_LARGEST_PART_BYTES = MAX_MESSAGE_BYTES - 1024
"""Of an observation or an output; the rest of its message is small."""


class ObservationRefused(InvalidRequest):
    """The cloud will not take what the device saw."""

    code = "OBSERVATION_REFUSED"
    advice = "Read the cloud's message; sending the same again changes nothing."


@dataclass(slots=True)
class _Connection:
    """One stream. What it needs to know is its own: a stream that has ended may still be writing for a while."""

    wake: asyncio.Event = field(default_factory=asyncio.Event)
    welcomed: bool = False
    progressed: bool = False
    """Whether the cloud answered anything after its welcome."""
    ended: bool = False


@dataclass(slots=True)
class _Awaited:
    """An observation whose outcome has not come yet."""

    observation: edge_pb2.Observation
    outcome: "asyncio.Future[str]"
    carried_by: _Connection | None = None
    """The last connection it was written to."""


class DeviceLink:
    """One device's connection to the cloud; `run` keeps it up until it is cancelled."""

    def __init__(
        self,
        address: Address,
        *,
        device_id: str,
        software_version: str,
        capabilities: Iterable[str],
        handle_step: StepHandler,
        jitter: random.Random,
        on_state: Callable[[str], None] = lambda state: None,
    ) -> None:
        self._address = address
        self._hello = edge_pb2.Hello(
            device_id=device_id,
            software_version=software_version,
            capabilities=capabilities,
            session_id=str(uuid.UUID(int=jitter.getrandbits(128), version=4)),
        )
        self._handle_step = handle_step
        self._jitter = jitter
        self._on_state = on_state
        self._sequence = 0
        self._last_sent = 0
        self._unacknowledged: OrderedDict[int, edge_pb2.ConnectRequest] = OrderedDict()
        self._awaited: dict[str, _Awaited] = {}
        self._steps: dict[tuple[str, int, int], asyncio.Task[None]] = {}
        self._connection = _Connection(ended=True)

    async def send(self, observation: edge_pb2.Observation) -> str:
        """Send an observation and return the id of the task it became, once that is on disk in the cloud.

        One that is on its way already is not sent twice; cancelling does not take it back.

        Raises:
            InvalidRequest: the cloud refused it, with the cloud's own error, or it is too large to travel.
        """
        if (size_bytes := observation.ByteSize()) > _LARGEST_PART_BYTES:
            # The cloud would end the connection over it, and every reconnect would send it again.
            raise InvalidRequest(
                f"the observation has {size_bytes} bytes; {_LARGEST_PART_BYTES} can be sent",
                next_step="Split the document and scan its parts.",
                field="payload_json",
            )
        awaited = self._awaited.get(observation.observation_id)
        if awaited is None:
            outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            # A sender that was cancelled reads no outcome; asyncio would complain of a refusal nobody looked at.
            outcome.add_done_callback(lambda done: done.exception())
            awaited = self._awaited[observation.observation_id] = _Awaited(observation, outcome)
            self._enqueue(edge_pb2.ConnectRequest(observation=observation))
        return await asyncio.shield(awaited.outcome)

    async def run(self, *, attempts: int | None = None) -> None:
        """Connect, and connect again with growing, jittered delays whenever the connection ends.

        Args:
            attempts: give up after this many failed attempts in a row, or after twice as many when the cloud has
                answered before, because then it is restarting; None never gives up.

        Raises:
            ServerUnavailable: `attempts` were used up.
            PodiumError: the cloud will never accept this device.
        """
        failures = 0
        known = False
        while True:
            connection = _Connection()
            began_s = asyncio.get_running_loop().time()
            try:
                await self._serve(connection)
                error: PodiumError = ServerUnavailable("the cloud closed the connection")
            except grpc.aio.AioRpcError as rpc_error:
                error = unreachable(self._address, from_rpc_error(rpc_error))
                # What is wrong with the greeting stays wrong; after it, connecting again can put things right.
                misfit = not connection.welcomed and rpc_error.code() is grpc.StatusCode.INVALID_ARGUMENT
                if misfit or rpc_error.code() in _PERMANENT:
                    raise error from rpc_error
            lasted_s = asyncio.get_running_loop().time() - began_s
            # A cloud that greets and hangs up, each time, is as good as none: only a connection that was of some
            # use starts the count anew.
            useful = connection.progressed or (connection.welcomed and lasted_s >= LAST_DELAY.total_seconds())
            failures = 1 if useful else failures + 1
            known = known or connection.welcomed
            if attempts is not None and failures >= attempts * (2 if known else 1):
                raise ServerUnavailable(
                    f"{self._address.target} cannot be reached: {error.message}", next_step=error.next_step
                ) from error
            self._on_state(f"not connected: {error.message}")
            ceiling_s = min(LAST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 10)).total_seconds()
            await asyncio.sleep(self._jitter.uniform(ceiling_s / 2, ceiling_s))

    async def _serve(self, connection: _Connection) -> None:
        """Hold one connection until it ends."""
        self._connection = connection
        async with async_channel(self._address) as channel:
            call = edge_pb2_grpc.EdgeServiceStub(channel).Connect(self._upward(connection))
            try:
                async for response in call:
                    self._receive(response)
            finally:
                call.cancel()
                # gRPC leaves the writing side of a stream that the cloud ended waiting for ever.
                connection.ended = True
                connection.wake.set()

    async def _upward(self, connection: _Connection) -> AsyncIterator[edge_pb2.ConnectRequest]:
        yield edge_pb2.ConnectRequest(hello=self._hello)
        sent = 0
        while not connection.ended:
            connection.wake.clear()
            for sequence in [number for number in self._unacknowledged if number > sent]:
                # It may have been acknowledged while the one before it was written.
                if (request := self._unacknowledged.get(sequence)) is not None:
                    self._note_sent(request, connection)
                    yield request
                sent = sequence
            await connection.wake.wait()

    def _note_sent(self, request: edge_pb2.ConnectRequest, connection: _Connection) -> None:
        self._last_sent = max(self._last_sent, request.sequence)
        if (awaited := self._awaited.get(request.observation.observation_id)) is not None:
            awaited.carried_by = connection

    def _enqueue(self, request: edge_pb2.ConnectRequest) -> None:
        self._sequence += 1
        request.sequence = self._sequence
        self._unacknowledged[self._sequence] = request
        self._connection.wake.set()

    def _receive(self, response: edge_pb2.ConnectResponse) -> None:
        # What was never sent cannot have arrived, whatever the cloud says: it stays.
        through = min(response.ack_through, self._last_sent)
        while self._unacknowledged and next(iter(self._unacknowledged)) <= through:
            self._unacknowledged.popitem(last=False)
        kind = response.WhichOneof("message")
        self._connection.progressed |= kind != "welcome"
        match kind:
            case "welcome":
                self._connection.welcomed = True
                self._on_state("connected")
                self._send_again_what_has_no_outcome()
            case "observation_outcome":
                self._settle(response.observation_outcome)
            case "step_request":
                self._start_step(response.step_request)
            case "step_cancel":
                cancel = response.step_cancel
                for (task_id, step, _), running in list(self._steps.items()):
                    if (task_id, step) == (cancel.task_id, cancel.step):
                        running.cancel()

    def _send_again_what_has_no_outcome(self) -> None:
        """Its acknowledgement came, its outcome was on the way when the connection broke."""
        pending = {request.observation.observation_id for request in self._unacknowledged.values()}
        for name, awaited in self._awaited.items():
            if name not in pending and awaited.carried_by is not self._connection:
                self._enqueue(edge_pb2.ConnectRequest(observation=awaited.observation))

    def _settle(self, outcome: edge_pb2.ObservationOutcome) -> None:
        awaited = self._awaited.pop(outcome.observation_id, None)
        if awaited is None:
            return
        if outcome.task_id:
            awaited.outcome.set_result(outcome.task_id)
        else:
            detail = outcome.error
            awaited.outcome.set_exception(
                error_of(
                    detail.code,
                    detail.message,
                    otherwise=ObservationRefused,
                    next_step=detail.next_step,
                    evidence=detail.evidence,
                )
            )

    def _start_step(self, request: edge_pb2.StepRequest) -> None:
        key = (request.task_id, request.step, request.attempt)
        answered = (message.step_result for message in self._unacknowledged.values())
        if key in self._steps or key in {(result.task_id, result.step, result.attempt) for result in answered}:
            # Sent again after a reconnect: it is still running, or its answer is on the way.
            return
        task = asyncio.create_task(self._run_step(request))
        self._steps[key] = task
        task.add_done_callback(lambda _: self._steps.pop(key, None))

    async def _run_step(self, request: edge_pb2.StepRequest) -> None:
        result = edge_pb2.StepResult(task_id=request.task_id, step=request.step, attempt=request.attempt)
        try:
            async with asyncio.timeout(request.time_limit.ToTimedelta().total_seconds() or None):
                output = await self._handle_step(request)
            if len(output) > _LARGEST_PART_BYTES:
                raise LimitExceeded(f"the output has {len(output)} bytes; {_LARGEST_PART_BYTES} can be sent")
            result.output_json = output
        except PodiumError as error:
            result.error.CopyFrom(_detail(error))
        except TimeoutError:
            result.error.CopyFrom(
                result_pb2.ErrorDetail(
                    code="AGENT_TIMEOUT",
                    message=f"{request.agent} ran out of time on the device",
                    agent=request.agent,
                )
            )
        except Exception as error:  # noqa: BLE001 - the cloud is told, instead of waiting for its time limit
            message = f"{request.agent} raised {type(error).__name__}: {str(error)[:300]}"
            result.error.CopyFrom(
                result_pb2.ErrorDetail(code="AGENT_CRASHED", message=message, agent=request.agent)
            )
        self._enqueue(edge_pb2.ConnectRequest(step_result=result))


def _detail(error: PodiumError) -> result_pb2.ErrorDetail:
    return result_pb2.ErrorDetail(
        code=error.code,
        message=error.message,
        next_step=error.next_step,
        evidence=error.evidence,
        agent=error.agent,
    )
