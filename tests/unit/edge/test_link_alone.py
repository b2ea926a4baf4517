"""The device's end of the link where no cloud is needed, or one that says nothing."""

import asyncio
import random
import socket
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.protobuf import duration_pb2, timestamp_pb2

from cloud.identity.authority import Authority
from edge.link import DeviceLink
from podium.errors import ServerUnavailable
from podium.link import Address
from podium.link.liveness import DEFAULT_HEARTBEATS
from podium.link.outbox import OutboxFull, OutboxLimits
from podium.link.reconnecting import Backoff, Connection
from podium.v1 import edge_pb2, edge_pb2_grpc


def _observation(name):
    return edge_pb2.Observation(observation_id=name, text="Check this invoice.", kind="document_reading")


async def _within(work, seconds=20):
    async with asyncio.timeout(seconds):
        return await work


def _unconnected(**settings):
    return DeviceLink(
        lambda: Address.of("127.0.0.1:1"),
        device_id="d1",
        software_version="1",
        capabilities=[],
        handle_step=settings.pop("handle_step", None),
        jitter=random.Random(1),
        **settings,
    )


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (timedelta(seconds=30), "connected"),
        (timedelta(minutes=-3), "connected; this machine's clock is 3 min behind the server's"),
        (timedelta(days=400), "connected; this machine's clock is 400 days ahead of the server's"),
    ],
)
def test_a_clock_that_is_off_is_said_to_be(off, said):
    states = []
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    link = _unconnected(on_state=states.append, clock=lambda: now + off)
    welcome = edge_pb2.Welcome()
    welcome.time.FromDatetime(now)
    link._receive(Connection(Address.of("127.0.0.1:1")), edge_pb2.ConnectResponse(welcome=welcome))
    assert states[0].startswith(said)
    assert ("set it" in states[0]) == (off > timedelta(seconds=60) or off < -timedelta(seconds=60))


def test_a_cloud_that_greets_with_times_that_cannot_be_does_not_end_the_link():
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    link = _unconnected(clock=lambda: now)
    connection = Connection(Address.of("127.0.0.1:1"))
    welcome = edge_pb2.Welcome(
        heartbeat_interval=duration_pb2.Duration(seconds=2**62), time=timestamp_pb2.Timestamp(seconds=2**62)
    )
    link._receive(connection, edge_pb2.ConnectResponse(welcome=welcome))
    assert connection.welcomed
    assert connection.heartbeats == DEFAULT_HEARTBEATS
    assert link.clock_offset == timedelta(0)


def test_a_cancelled_attempt_leaves_the_other_attempts_of_its_step_running():
    async def scenario():
        ended = []
        started = asyncio.Event()

        async def handle(request):
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(request.attempt)
                raise

        link = _unconnected(handle_step=handle)
        connection = Connection(Address.of("127.0.0.1:1"))
        for attempt in (1, 2, 3):
            request = edge_pb2.StepRequest(task_id="t", step=0, attempt=attempt)
            link._receive(connection, edge_pb2.ConnectResponse(step_request=request))
        await started.wait()

        async def cancel(attempt):
            message = edge_pb2.StepCancel(task_id="t", step=0, attempt=attempt)
            link._receive(connection, edge_pb2.ConnectResponse(step_cancel=message))
            for _ in range(5):
                await asyncio.sleep(0)

        await cancel(2)
        assert ended == [2]
        await cancel(0)
        assert ended == [2, 1, 3]

    asyncio.run(scenario())


def test_a_cloud_that_accepts_and_never_greets_is_given_up():
    async def scenario():
        class Mute(edge_pb2_grpc.EdgeServiceServicer):
            async def Connect(self, request_iterator, context):  # noqa: N802 - gRPC's name
                await asyncio.Event().wait()
                yield edge_pb2.ConnectResponse()

        server = grpc.aio.server()
        edge_pb2_grpc.add_EdgeServiceServicer_to_server(Mute(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        link = DeviceLink(
            lambda: Address.of(f"127.0.0.1:{port}"),
            device_id="d1",
            software_version="1",
            capabilities=[],
            handle_step=None,
            jitter=random.Random(1),
            welcome_within=timedelta(seconds=0.5),
        )
        with pytest.raises(ServerUnavailable, match="nothing was heard of the cloud"):
            await _within(link.run(attempts=1), seconds=10)
        await server.stop(0)

    asyncio.run(scenario())


@contextmanager
def _never_shaking_hands():
    """The kernel takes the connection; nobody reads, so a TLS handshake never ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@contextmanager
def _dropping_connections():
    """A port whose queue is full: the kernel drops every SYN, as a firewall does."""
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(8):
            filling = sockets.enter_context(socket.socket())
            filling.settimeout(0.3)
            try:
                filling.connect(("127.0.0.1", port))
            except TimeoutError:
                break
        else:
            raise AssertionError("the queue takes every connection")
        yield port


@pytest.mark.parametrize("ground", [_never_shaking_hands, _dropping_connections])
@pytest.mark.parametrize("tls", [False, True])
def test_a_connection_that_never_comes_about_is_given_up_and_tried_again(ground, tls, tmp_path):
    failures = []
    ca_pem = Authority.load_or_make(tmp_path, datetime.now(UTC)).pem if tls else None

    async def scenario(port):
        link = DeviceLink(
            lambda: Address(target=f"127.0.0.1:{port}", ca_pem=ca_pem),
            device_id="d1",
            software_version="1",
            capabilities=[],
            handle_step=None,
            jitter=random.Random(1),
            welcome_within=timedelta(seconds=0.5),
            on_failure=failures.append,
            backoff=Backoff(first=timedelta(milliseconds=1)),
        )
        with pytest.raises(ServerUnavailable, match="nothing was heard of the cloud"):
            await _within(link.run(attempts=2), seconds=10)

    with ground() as port:
        asyncio.run(scenario(port))
    assert [failure.code for failure in failures] == ["PEER_SILENT"]


def test_what_does_not_fit_into_memory_is_refused_before_it_is_taken():
    async def scenario():
        link = _unconnected(limits=OutboxLimits(messages=1))
        first = asyncio.create_task(link.send(_observation("o1")))
        await asyncio.sleep(0)
        with pytest.raises(OutboxFull):
            await link.send(_observation("o2"))
        again = asyncio.create_task(link.send(_observation("o1")))
        await asyncio.sleep(0)
        assert not again.done()
        for task in (first, again):
            task.cancel()

    asyncio.run(scenario())
