"""Who uses the link, each between a machine and a server: the suite runs on all of them.

A new user (site, worker) adds a class like these two and its line in `USERS`.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol, Self

from grpc_status import rpc_status

from cloud.devices import DeviceHub
from cloud.serving import grpc_server
from conductor.bus import Acceptance
from edge.link import DeviceLink
from podium.errors import PodiumError
from podium.link import Address, async_channel
from podium.link.inbox import Inbox, InboxSession, InboxStore, MemoryInbox
from podium.link.liveness import DEFAULT_HEARTBEATS, Heartbeats, Patience
from podium.link.outbox import MemoryOutbox, Outbox
from podium.link.reconnecting import DEFAULT_BACKOFF, Backoff, Connection, Reconnecting
from podium.link.uplink import hold, upward
from podium.rpc_status import to_status
from podium.v1 import edge_pb2, edge_pb2_grpc

NAME = "machine-1"


def observation(number: int, size_bytes: int = 0) -> edge_pb2.Observation:
    """A message whose number the server reads back from its id."""
    return edge_pb2.Observation(observation_id=str(uuid.UUID(int=number)), payload_json=b"x" * size_bytes)


def number_of(message: edge_pb2.Observation) -> int:
    return uuid.UUID(message.observation_id).int


class EffectLog:
    """What the server did, in order. Like the task desk it knows an observation that it has seen."""

    def __init__(self) -> None:
        self.effects: list[int] = []
        self.asked_again = 0
        self._known: set[int] = set()

    async def accept(self, device_id: str, message: edge_pb2.Observation) -> Acceptance:
        number = number_of(message)
        if again := number in self._known:
            self.asked_again += 1
        else:
            await asyncio.sleep(0)  # an effect takes a while, in which its connection may break
            self._known.add(number)
            self.effects.append(number)
        return Acceptance(task_id=f"task-{number}", duplicate=again)


class Server(Protocol):
    """The server's side of a user."""

    effects: list[int]

    def online(self) -> bool:
        """Whether the server believes that the machine is connected."""
        ...

    def servicer(self) -> edge_pb2_grpc.EdgeServiceServicer:
        """What is served."""
        ...


class Machine(Protocol):
    """The machine's side of a user."""

    async def send(self, number: int, size_bytes: int = 0) -> None:
        """Returns once the server says that it has it."""
        ...

    async def run(self) -> None: ...


class HubService(edge_pb2_grpc.EdgeServiceServicer):
    """The hub without the question who calls: that is not the link's business."""

    def __init__(self, hub: DeviceHub) -> None:
        self._hub = hub

    async def Connect(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - gRPC's name
        try:
            async for response in self._hub.connect(request_iterator):
                yield response
        except PodiumError as error:
            await context.abort_with_status(rpc_status.to_status(to_status(error)))


class DeviceServer:
    """`cloud.devices` behind its service."""

    def __init__(self, heartbeats: Heartbeats, store: InboxStore) -> None:
        self.log = EffectLog()
        self.effects = self.log.effects
        self.hub = DeviceHub(
            accept=self.log.accept,
            clock=lambda: datetime.now(UTC),
            software_version="1",
            inbox=store,
            heartbeats=heartbeats,
        )

    def online(self) -> bool:
        return self.hub.online(NAME)

    def servicer(self) -> edge_pb2_grpc.EdgeServiceServicer:
        return HubService(self.hub)


class DeviceMachine:
    """`edge.link`."""

    def __init__(self, address: Any, *, seed: int, on_state: Any, backoff: Backoff) -> None:
        self.link = DeviceLink(
            address,
            device_id=NAME,
            software_version="1",
            capabilities=[],
            handle_step=_no_steps,
            jitter=random.Random(seed),
            on_state=on_state,
            backoff=backoff,
        )

    async def send(self, number: int, size_bytes: int = 0) -> None:
        assert await self.link.send(observation(number, size_bytes)) == f"task-{number}"

    async def run(self) -> None:
        await self.link.run()


async def _no_steps(request: edge_pb2.StepRequest) -> bytes:
    raise AssertionError("no step was expected")


class PlainServer(edge_pb2_grpc.EdgeServiceServicer):
    """Nothing but `podium.link`: effects that know no key, so that only the inbox keeps them from coming twice."""

    def __init__(self, heartbeats: Heartbeats, store: InboxStore) -> None:
        self.effects: list[int] = []
        self._heartbeats = heartbeats
        self._inbox = Inbox(store)
        self._connected: object | None = None

    def online(self) -> bool:
        return self._connected is not None

    def servicer(self) -> edge_pb2_grpc.EdgeServiceServicer:
        return self

    async def Connect(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - gRPC's name
        hello = (await anext(request_iterator)).hello
        session = await self._inbox.open(
            hello.device_id, hello.session_id, next_sequence=hello.next_sequence, connected=self.online
        )
        me = self._connected = object()
        answers: asyncio.Queue[edge_pb2.ConnectResponse] = asyncio.Queue()
        welcome = edge_pb2.Welcome()
        welcome.heartbeat_interval.FromTimedelta(self._heartbeats.interval)
        answers.put_nowait(edge_pb2.ConnectResponse(ack_through=session.applied_through, welcome=welcome))
        receiving = asyncio.create_task(self._receive(session, request_iterator, answers, me))
        try:
            while not receiving.done():
                try:
                    async with asyncio.timeout(self._heartbeats.interval.total_seconds()):
                        answer = await answers.get()
                except TimeoutError:
                    answer = edge_pb2.ConnectResponse(ack_through=session.applied_through)
                yield answer
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)

    async def _receive(self, session: InboxSession, requests: Any, answers: Any, me: object) -> None:
        try:
            async with Patience(who=NAME, first=self._heartbeats.silence) as patience:
                async for request in requests:
                    patience.suspend()
                    session.confirmed = True
                    if request.WhichOneof("message") != "heartbeat":
                        await session.take(request.sequence, partial(self._apply, request))
                        answers.put_nowait(edge_pb2.ConnectResponse(ack_through=session.applied_through))
                    patience.heard(self._heartbeats, request.heartbeat.bytes_to_follow)
        finally:
            if self._connected is me:
                self._connected = None

    async def _apply(self, request: edge_pb2.ConnectRequest, again: bool) -> None:
        if not again:
            await asyncio.sleep(0)
            self.effects.append(number_of(request.observation))


class PlainMachine:
    """Nothing but `podium.link`, as a worker or a site would use it."""

    def __init__(self, address: Any, *, seed: int, on_state: Any, backoff: Backoff) -> None:
        self._outbox = Outbox(MemoryOutbox[edge_pb2.ConnectRequest](f"session-{seed}"))
        self._on_state = on_state
        self._connection: Connection | None = None
        self._progress = asyncio.Event()
        self._reconnecting = Reconnecting(
            address, self._serve, jitter=random.Random(seed), on_state=on_state, backoff=backoff
        )

    async def send(self, number: int, size_bytes: int = 0) -> None:
        sequence = self._outbox.put(edge_pb2.ConnectRequest(observation=observation(number, size_bytes)))
        if self._connection is not None:
            self._connection.wake.set()
        while self._outbox.next_sequence <= sequence:
            await self._progress.wait()

    async def run(self) -> None:
        await self._reconnecting.run()

    async def _serve(self, connection: Connection) -> None:
        self._connection = connection
        async with async_channel(connection.address, patient=True) as channel:
            hello = edge_pb2.Hello(
                device_id=NAME,
                session_id=self._outbox.session_id,
                next_sequence=self._outbox.next_sequence,
                heartbeats=True,
            )
            going_up = upward(
                connection,
                self._outbox,
                hello=edge_pb2.ConnectRequest(hello=hello),
                heartbeat=lambda follow: edge_pb2.ConnectRequest(
                    heartbeat=edge_pb2.Heartbeat(bytes_to_follow=follow)
                ),
            )
            call = edge_pb2_grpc.EdgeServiceStub(channel).Connect(going_up)
            await hold(connection, call, partial(self._receive, connection), who="the server")

    def _receive(self, connection: Connection, response: edge_pb2.ConnectResponse) -> int:
        self._outbox.acknowledge(response.ack_through)
        self._progress.set()
        self._progress = asyncio.Event()
        if response.HasField("welcome"):
            connection.welcomed = True
            interval = response.welcome.heartbeat_interval.ToTimedelta()
            connection.heartbeats = Heartbeats(interval=interval)
            self._on_state("connected")
            connection.wake.set()
        else:
            connection.progressed = True
        return response.heartbeat.bytes_to_follow


USERS: dict[str, tuple[type[Any], type[Any]]] = {
    "device": (DeviceMachine, DeviceServer),
    "plain": (PlainMachine, PlainServer),
}


class Rig:
    """A user's machine and server with something between them; an async context manager."""

    def __init__(
        self,
        user: str,
        *,
        seed: int = 1,
        heartbeats: Heartbeats = DEFAULT_HEARTBEATS,
        backoff: Backoff = DEFAULT_BACKOFF,
        store: InboxStore | None = None,
    ) -> None:
        make_machine, make_server = USERS[user]
        self.server: Server = make_server(heartbeats, store or MemoryInbox())
        self.target = ""
        """HOST:PORT that the machine connects to; by default the server's own."""
        self.states: list[tuple[float, str]] = []
        self._changed = asyncio.Event()
        self.machine: Machine = make_machine(
            lambda: Address(target=self.target, ca_pem=None), seed=seed, on_state=self._note, backoff=backoff
        )
        self._grpc = grpc_server([])
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        edge_pb2_grpc.add_EdgeServiceServicer_to_server(self.server.servicer(), self._grpc)
        self.target = self.server_target = f"127.0.0.1:{self._grpc.add_insecure_port('127.0.0.1:0')}"
        await self._grpc.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._grpc.stop(0)

    def start(self) -> None:
        """Let the machine connect."""
        self._running = asyncio.create_task(self.machine.run())

    def _note(self, state: str) -> None:
        self.states.append((asyncio.get_running_loop().time(), state))
        self._changed.set()
        self._changed = asyncio.Event()

    async def connected(self, *, within: timedelta) -> None:
        """Wait until the machine's last word is that it is connected."""
        async with asyncio.timeout(within.total_seconds()):
            while not (self.states and self.states[-1][1].startswith("connected")):
                await self._changed.wait()

    async def state_after(self, moment_s: float, begins: str, *, within: timedelta) -> float:
        """Seconds from a moment of the loop's clock until the machine said so."""
        async with asyncio.timeout(within.total_seconds()):
            while True:
                changed = self._changed
                for at_s, state in self.states:
                    if at_s >= moment_s and state.startswith(begins):
                        return at_s - moment_s
                if self._running is not None and self._running.done():
                    self._running.result()
                await changed.wait()


async def until(holds: Any, *, within: timedelta) -> float:
    """Seconds until something observable holds."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with asyncio.timeout(within.total_seconds()):
        # What is observed tells nobody, so it is looked at again and again.
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return loop.time() - began_s
