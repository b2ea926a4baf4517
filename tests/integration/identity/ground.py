"""Servers with TLS and machines enrolled with them, over real sockets."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc

from podium.client.machines import MachinesClient
from podium.errors import PodiumError
from podium.identity.enrolling import Enrolled, enroll
from podium.link import Address, MachineIdentity, sync_channel, unreachable
from podium.rpc_status import from_rpc_error
from podium.v1 import edge_pb2, edge_pb2_grpc, identity_pb2
from tests.integration.server import Running, serving

DEVICE = identity_pb2.IDENTITY_KIND_DEVICE
SITE = identity_pb2.IDENTITY_KIND_SITE


def now() -> datetime:
    return datetime.now(UTC)


def shifted(**units: float) -> Callable[[], datetime]:
    """A clock that is off by this much."""
    return lambda: datetime.now(UTC) + timedelta(**units)


@contextmanager
def tls_serving(data: Path, **settings: Any) -> Iterator[Running]:
    """A server with TLS and a port for machines."""
    with serving(data, insecure_loopback=False, **settings) as running:
        yield running


def operator(server: Running) -> MachinesClient:
    return MachinesClient(server.tls_address())


def token(server: Running, name: str = "", **more: Any) -> str:
    with operator(server) as client:
        return client.invite(more.pop("kind", DEVICE), name=name, **more).token


def enrolled(server: Running, folder: Path, name: str = "pi-1", clock: Callable[[], datetime] = now) -> Enrolled:
    return enroll(server.address, token(server, name), folder, kind="device", clock=clock)


class Stream:
    """A device's stream, held open."""

    def __init__(self, address: Address, device_id: str = "pi-1", *, session: str = "a") -> None:
        self._address = address
        self._channel = sync_channel(address)
        self._open = True

        def requests() -> Iterator[edge_pb2.ConnectRequest]:
            yield edge_pb2.ConnectRequest(hello=edge_pb2.Hello(device_id=device_id, session_id=session))
            # Something that the cloud acknowledges: a late result of a step that nobody waits for.
            yield edge_pb2.ConnectRequest(sequence=1, step_result=edge_pb2.StepResult(task_id="x"))
            while self._open:
                time.sleep(0.02)  # the request side of an open stream; nothing is waited for

        self._responses = edge_pb2_grpc.EdgeServiceStub(self._channel).Connect(requests(), timeout=30)

    @classmethod
    def of(cls, folder: Path, **more: Any) -> "Stream":
        """With the files of an enrolled machine, at the address in them."""
        return cls(Address.of_machine(MachineIdentity.load(folder)), **more)

    def welcome(self) -> edge_pb2.Welcome:
        """The cloud's greeting.

        Raises:
            PodiumError: the stream was refused, in the words of `podium.link`.
        """
        return self._next().welcome

    def acknowledged(self) -> None:
        """The cloud has heard from this side after its greeting."""
        while not self._next().ack_through:
            pass

    def ended_with(self) -> PodiumError:
        """How the server ended it."""
        while True:
            try:
                self._next()
            except PodiumError as error:
                return error

    def _next(self) -> edge_pb2.ConnectResponse:
        try:
            return next(self._responses)
        except grpc.RpcError as error:
            raise unreachable(self._address, from_rpc_error(error)) from error

    def close(self) -> None:
        self._open = False
        self._responses.cancel()
        self._channel.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
