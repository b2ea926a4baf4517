"""The device's end of `EdgeService.Connect`: observations up, steps down, over as many connections as it takes.

Every message up has a sequence number and stays in memory until the cloud acknowledges it as stored; after a
reconnect what is not acknowledged is sent again, and the cloud applies nothing twice. (A durable outbox is not
part of this pipeline yet: what is unsent when the process dies is read from its file again.)
"""

import asyncio
import random
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
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
        self._unacknowledged: OrderedDict[int, edge_pb2.ConnectRequest] = OrderedDict()
        self._outcomes: dict[str, asyncio.Future[str]] = {}
        self._steps: dict[tuple[str, int, int], asyncio.Task[None]] = {}
        self._wake = asyncio.Event()

    async def send(self, observation: edge_pb2.Observation) -> str:
        """Send an observation and return the id of the task it became, once that is on disk in the cloud.

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
        outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._outcomes[observation.observation_id] = outcome
        self._enqueue(edge_pb2.ConnectRequest(observation=observation))
        try:
            return await outcome
        finally:
            self._outcomes.pop(observation.observation_id, None)

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
            welcomed = False

            def note_welcome() -> None:
                nonlocal welcomed
                welcomed = True

            try:
                await self._one_connection(note_welcome)
                error: PodiumError = ServerUnavailable("the cloud closed the connection")
            except grpc.aio.AioRpcError as rpc_error:
                error = unreachable(self._address, from_rpc_error(rpc_error))
                # What is wrong with the greeting stays wrong; after it, connecting again can put things right.
                misfit = not welcomed and rpc_error.code() is grpc.StatusCode.INVALID_ARGUMENT
                if misfit or rpc_error.code() in _PERMANENT:
                    raise error from rpc_error
            failures = 1 if welcomed else failures + 1
            known = known or welcomed
            if attempts is not None and failures >= attempts * (2 if known else 1):
                raise ServerUnavailable(
                    f"{self._address.target} cannot be reached: {error.message}", next_step=error.next_step
                ) from error
            self._on_state(f"not connected: {error.message}")
            ceiling_s = min(LAST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 10)).total_seconds()
            await asyncio.sleep(self._jitter.uniform(ceiling_s / 2, ceiling_s))

    async def _one_connection(self, note_welcome: Callable[[], None]) -> None:
        async with async_channel(self._address) as channel:
            stub = edge_pb2_grpc.EdgeServiceStub(channel)
            call = stub.Connect(self._upward())
            try:
                async for response in call:
                    if response.WhichOneof("message") == "welcome":
                        note_welcome()
                        self._on_state("connected")
                    self._receive(response)
            finally:
                call.cancel()

    async def _upward(self) -> AsyncIterator[edge_pb2.ConnectRequest]:
        yield edge_pb2.ConnectRequest(hello=self._hello)
        sent = 0
        while True:
            self._wake.clear()
            for sequence in [number for number in self._unacknowledged if number > sent]:
                # It may have been acknowledged while the one before it was written.
                if (request := self._unacknowledged.get(sequence)) is not None:
                    yield request
                sent = sequence
            await self._wake.wait()

    def _enqueue(self, request: edge_pb2.ConnectRequest) -> None:
        self._sequence += 1
        request.sequence = self._sequence
        self._unacknowledged[self._sequence] = request
        self._wake.set()

    def _receive(self, response: edge_pb2.ConnectResponse) -> None:
        while self._unacknowledged and next(iter(self._unacknowledged)) <= response.ack_through:
            self._unacknowledged.popitem(last=False)
        match response.WhichOneof("message"):
            case "observation_outcome":
                self._settle(response.observation_outcome)
            case "step_request":
                self._start_step(response.step_request)
            case "step_cancel":
                cancel = response.step_cancel
                for (task_id, step, _), running in list(self._steps.items()):
                    if (task_id, step) == (cancel.task_id, cancel.step):
                        running.cancel()

    def _settle(self, outcome: edge_pb2.ObservationOutcome) -> None:
        waiting = self._outcomes.get(outcome.observation_id)
        if waiting is None or waiting.done():
            return
        if outcome.task_id:
            waiting.set_result(outcome.task_id)
        else:
            detail = outcome.error
            waiting.set_exception(
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
        if key in self._steps:
            # Sent again after a reconnect: it is still running and will answer once.
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
