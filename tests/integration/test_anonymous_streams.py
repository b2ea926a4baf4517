"""Anybody may watch health and ask for reflection, and nobody takes a server's streams with it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cloud.services.anonymous_streams import MOST_FROM_ONE_PLACE, AnonymousStreams
from podium.client import Client
from podium.errors import LimitExceeded
from podium.link import channel_options
from podium.rpc_status import from_rpc_error
from tests.integration.server import Running, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("open") / "data", insecure_loopback=False) as running:
        yield running


def _channel(server: Running) -> grpc.Channel:
    trusted = grpc.ssl_channel_credentials((server.data / "tls" / "ca.pem").read_bytes())
    return grpc.secure_channel(server.address, trusted, options=channel_options())


def _watch(channel: grpc.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)


def _reflect(channel: grpc.Channel) -> Any:
    def ask() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        held.wait(60)

    held = threading.Event()
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(ask(), timeout=60)
    call.add_done_callback(lambda _: held.set())
    return call


def test_streams_without_credentials_are_limited_and_come_back(server: Running) -> None:
    with ExitStack() as stack:
        # Each over a connection of its own, as somebody would who wants to get past a limit for connections.
        channels = [stack.enter_context(_channel(server)) for _ in range(MOST_FROM_ONE_PLACE + 1)]
        calls = [(_watch if number % 2 else _reflect)(channel) for number, channel in enumerate(channels[:-1])]
        assert all(next(call) for call in calls)
        for begin in (_watch, _reflect):
            with pytest.raises(grpc.RpcError) as refused:
                next(begin(channels[-1]))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            told = from_rpc_error(refused.value)
            assert isinstance(told, LimitExceeded)
            assert "Check" in told.next_step
        # Checks and calls with credentials are none of them.
        stub = health_pb2_grpc.HealthStub(channels[-1])
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status
        with Client(server.tls_address()) as client:
            assert client.wait(client.submit("relay the words please").task_id).task_id
        for call in calls:
            call.cancel()
        ends = 200
        while True:  # the server hears of it a moment later
            try:
                assert next(_watch(channels[-1])).status
                return
            except grpc.RpcError:
                ends -= 1
                assert ends, "ended streams still count"


def test_many_places_together_are_limited_too() -> None:
    streams = AnonymousStreams(most=3, most_from_one_place=2)
    with ExitStack() as stack:
        for host in (1, 2, 3):
            stack.enter_context(streams.one(f"ipv4:192.0.2.{host}:5000"))
        with pytest.raises(LimitExceeded, match="3 of 3 in all"), streams.one("ipv4:192.0.2.4:5000"):
            pass
    with streams.one("ipv6:[2001:db8::1]:1"), streams.one("ipv6:[2001:db8::2]:1"):  # one network
        with pytest.raises(LimitExceeded, match="2001:db8::/64"), streams.one("ipv6:[2001:db8::3]:1"):
            pass
        with streams.one("ipv4:192.0.2.4:5000"):
            pass
