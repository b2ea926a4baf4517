"""The device's end of `EdgeService.Connect`: observations up, steps down, over as many connections as it takes.

Every message up has a sequence number and stays in the outbox until the cloud acknowledges it as stored; after a
reconnect what is not acknowledged is sent again, and the cloud applies nothing twice. An observation whose
acknowledgement came but whose outcome was lost with the connection is sent once more under a new number: by its
id it becomes the same task. (A durable outbox is not part of this pipeline yet: what is unsent when the process
dies is read from its file again.)
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from edge.steps import MAX_PART_BYTES, StepHandler, Steps
from podium.errors import InvalidRequest, PodiumError
from podium.link import Address, async_channel
from podium.link.liveness import DEFAULT_HEARTBEATS, Heartbeats
from podium.link.outbox import MemoryOutbox, Outbox, OutboxLimits
from podium.link.reconnecting import DEFAULT_BACKOFF, Backoff, Connection, Reconnecting
from podium.link.renewing import clock_warning
from podium.link.uplink import WELCOME_WITHIN, hold, upward
from podium.rpc_status import error_of
from podium.v1 import edge_pb2, edge_pb2_grpc

DEFAULT_LIMITS = OutboxLimits()
CLOCK_TOLERANCE = timedelta(seconds=60)
"""A clock that is off by more is said to be."""


class ObservationRefused(InvalidRequest):
    """The cloud will not take what the device saw."""

    code = "OBSERVATION_REFUSED"
    advice = "Read the cloud's message; sending the same again changes nothing."


@dataclass(slots=True)
class _Awaited:
    """An observation whose outcome has not come yet."""

    observation: edge_pb2.Observation
    outcome: "asyncio.Future[str]"


class DeviceLink:
    """One device's connection to the cloud; `run` keeps it up until it is cancelled."""

    def __init__(
        self,
        address: Callable[[], Address],
        *,
        device_id: str,
        software_version: str,
        capabilities: Iterable[str],
        handle_step: StepHandler,
        jitter: random.Random,
        on_state: Callable[[str], None] = lambda state: None,
        on_failure: Callable[[PodiumError], None] = lambda error: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        backoff: Backoff = DEFAULT_BACKOFF,
        limits: OutboxLimits = DEFAULT_LIMITS,
        welcome_within: timedelta = WELCOME_WITHIN,
    ) -> None:
        """Connects only in `run`.

        Args:
            address: where the cloud is and as whom to connect; asked before every connection.
            device_id: the device's name.
            software_version: told to the cloud.
            capabilities: agents that `handle_step` can run.
            handle_step: runs a step of the cloud.
            jitter: spreads reconnects and makes the session's id.
            on_state: told about the connection, in words.
            on_failure: told why each connection ended.
            clock: compared with the cloud's: a difference is said, and times of work are told by the cloud's.
            backoff: how long to wait between attempts.
            limits: how much may wait to be acknowledged.
            welcome_within: how long a connection may take until the cloud has greeted.
        """
        self._device_id = device_id
        self._software_version = software_version
        self._capabilities = tuple(capabilities)
        self._on_state = on_state
        self._clock = clock
        self._welcome_within = welcome_within
        session_id = str(uuid.UUID(int=jitter.getrandbits(128), version=4))
        self._outbox = Outbox(MemoryOutbox[edge_pb2.ConnectRequest](session_id), limits)
        self._awaited: dict[str, _Awaited] = {}
        self.clock_offset = timedelta(0)
        """The cloud's clock minus this one, as of the last greeting; it only places spans in a trace."""
        self._steps = Steps(
            handle_step,
            answer=lambda result: self._put(essential=True, step_result=result),
            clock=lambda: self._clock() + self.clock_offset,
        )
        self._connection: Connection | None = None
        self._reconnecting = Reconnecting(
            address, self._serve, jitter=jitter, on_state=on_state, on_failure=on_failure, backoff=backoff
        )

    async def send(self, observation: edge_pb2.Observation) -> str:
        """Send an observation and return the id of the task it became, once that is on disk in the cloud.

        One that is on its way already is not sent twice; cancelling does not take it back.

        Raises:
            InvalidRequest: the cloud refused it, with the cloud's own error, or it is too large to travel.
            OutboxFull: too much waits to be sent; nothing of this one was taken.
        """
        if (size_bytes := observation.ByteSize()) > MAX_PART_BYTES:
            # The cloud would end the connection over it, and every reconnect would send it again.
            raise InvalidRequest(
                f"the observation has {size_bytes} bytes; {MAX_PART_BYTES} can be sent",
                next_step="Split the document and scan its parts.",
                field="payload_json",
            )
        awaited = self._awaited.get(observation.observation_id)
        if awaited is None:
            self._put(observation=observation)
            outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            # A sender that was cancelled reads no outcome; asyncio would complain of a refusal nobody looked at.
            outcome.add_done_callback(lambda done: done.exception())
            awaited = self._awaited[observation.observation_id] = _Awaited(observation, outcome)
        return await asyncio.shield(awaited.outcome)

    async def run(self, *, attempts: int | None = None) -> None:
        """Connect, and connect again whenever the connection ends; see `Reconnecting.run`.

        Raises:
            ServerUnavailable: `attempts` were used up.
            PodiumError: the cloud will never accept this device.
        """
        await self._reconnecting.run(attempts=attempts)

    def connect_anew(self) -> None:
        """End the present connection and make another at once: the address or the certificate is a new one."""
        self._reconnecting.connect_anew()

    async def _serve(self, connection: Connection) -> None:
        """Hold one connection until it ends."""
        self._connection = connection
        async with async_channel(connection.address, patient=True) as channel:
            call = edge_pb2_grpc.EdgeServiceStub(channel).Connect(self._upward(connection))
            receive = partial(self._receive, connection)
            await hold(connection, call, receive, who="the cloud", welcome_within=self._welcome_within)

    def _upward(self, connection: Connection) -> AsyncIterator[edge_pb2.ConnectRequest]:
        hello = edge_pb2.Hello(
            device_id=self._device_id,
            software_version=self._software_version,
            capabilities=self._capabilities,
            session_id=self._outbox.session_id,
            next_sequence=self._outbox.next_sequence,
            heartbeats=True,
        )
        return upward(connection, self._outbox, hello=edge_pb2.ConnectRequest(hello=hello), heartbeat=_heartbeat)

    def _put(
        self,
        *,
        essential: bool = False,
        observation: edge_pb2.Observation | None = None,
        step_result: edge_pb2.StepResult | None = None,
    ) -> None:
        request = edge_pb2.ConnectRequest(observation=observation, step_result=step_result)
        self._outbox.put(request, essential=essential)
        if self._connection is not None:
            self._connection.wake.set()

    def _receive(self, connection: Connection, response: edge_pb2.ConnectResponse) -> int:
        """Take one message; how many bytes it announces of the next."""
        self._outbox.acknowledge(response.ack_through)
        kind = response.WhichOneof("message")
        connection.progressed |= kind not in ("welcome", "heartbeat")
        match kind:
            case "welcome":
                self._greet(connection, response.welcome)
            case "observation_outcome":
                self._settle(response.observation_outcome)
            case "step_request":
                self._steps.start(
                    response.step_request, answered=(message.step_result for message in self._outbox)
                )
            case "step_cancel":
                self._steps.cancel(response.step_cancel)
        return response.heartbeat.bytes_to_follow

    def _greet(self, connection: Connection, welcome: edge_pb2.Welcome) -> None:
        connection.welcomed = True
        if welcome.HasField("heartbeat_interval"):
            connection.heartbeats = _agreed(welcome.heartbeat_interval)
        warning = ""
        if welcome.HasField("time") and (theirs := _moment(welcome.time)) is not None:
            ours = self._clock()
            self.clock_offset = theirs - ours
            warning = clock_warning(ours, theirs, tolerance=CLOCK_TOLERANCE)
        self._on_state(f"connected; {warning}" if warning else "connected")
        self._send_again_what_has_no_outcome()
        connection.wake.set()

    def _send_again_what_has_no_outcome(self) -> None:
        """Its acknowledgement came, its outcome was on the way when the connection broke."""
        pending = {request.observation.observation_id for request in self._outbox}
        for name, awaited in self._awaited.items():
            if name not in pending:
                self._put(essential=True, observation=awaited.observation)

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


def _agreed(asked: Duration) -> Heartbeats:
    """What the cloud asks for; one that asks for none or for a flood gets what is usual."""
    try:
        interval = asked.ToTimedelta()
    except (ValueError, OverflowError):
        return DEFAULT_HEARTBEATS
    sound = timedelta(milliseconds=100) <= interval <= timedelta(minutes=10)
    return Heartbeats(interval=interval) if sound else DEFAULT_HEARTBEATS


def _moment(stamp: Timestamp) -> datetime | None:
    """The moment that the cloud names; None for one that no calendar has."""
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _heartbeat(bytes_to_follow: int) -> edge_pb2.ConnectRequest:
    return edge_pb2.ConnectRequest(heartbeat=edge_pb2.Heartbeat(bytes_to_follow=bytes_to_follow))
