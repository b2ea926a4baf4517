"""Every error there is, as long as it may be, through a real server and back as itself."""

import asyncio
import importlib
import pkgutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import grpc

from cloud.auth.authentication import Authentication
from cloud.auth.quotas import CallerQuotas, Quotas
from cloud.services.interceptor import GuardInterceptor
from cloud.services.live import LiveCalls
from podium.errors import PodiumError, catalogue
from podium.rpc_status import MAX_STATUS_BYTES, from_rpc_error, to_status
from podium.v1 import task_pb2, task_pb2_grpc

PACKAGES = ("agents", "cloud", "conductor", "edge", "federation", "podium", "tools")
LONG = "错误 🚫 " * 4_000
AFTER = timedelta(seconds=7, milliseconds=250)


def _every_module() -> Iterator[str]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("_pb2_grpc"):
                yield found.name


def _longest(kind: type[PodiumError]) -> PodiumError:
    error = kind.__new__(kind)
    # As long as anybody could make it, in signs of three and four bytes.
    PodiumError.__init__(
        error,
        f"{kind.code} {LONG}",
        next_step=LONG,
        evidence=[LONG] * 200,
        agent=LONG,
        field=LONG,
        retry_after=AFTER,
    )
    return error


class Raising(task_pb2_grpc.TaskServiceServicer):
    """Raises the error whose code is asked for."""

    async def GetTask(self, request, context):  # noqa: N802 - gRPC's name
        raise _longest(catalogue()[request.task_id])


def test_every_error_arrives_as_itself_with_its_status_in_under_4_kib() -> None:
    for name in _every_module():
        importlib.import_module(name)

    async def walk() -> int:
        live = LiveCalls(clock=lambda: datetime.now(UTC), quotas=Quotas(CallerQuotas(), monotonic_s=lambda: 0.0))
        open_to_all = Authentication(None, insecure=True)
        guard = GuardInterceptor(call_limit=timedelta(seconds=10), authentication=open_to_all, live=live)
        server = grpc.aio.server(interceptors=[guard])
        task_pb2_grpc.add_TaskServiceServicer_to_server(Raising(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        codes = {code: kind for code, kind in catalogue().items() if kind.__module__.split(".")[0] in PACKAGES}
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for code, kind in codes.items():
                assert to_status(_longest(kind)).ByteSize() < MAX_STATUS_BYTES == 4096
                try:
                    await task_pb2_grpc.TaskServiceStub(channel).GetTask(task_pb2.GetTaskRequest(task_id=code))
                except grpc.aio.AioRpcError as error:
                    (carried,) = [
                        value
                        for name, value in error.trailing_metadata() or ()
                        if name == "grpc-status-details-bin"
                    ]
                    received, status = from_rpc_error(error), error.code()
                else:
                    raise AssertionError(f"{code} did not arrive")
                assert len(carried) < MAX_STATUS_BYTES, code
                assert type(received) is kind
                assert (received.code, status) == (code, kind.status)
                assert received.message.startswith(code)
                assert received.next_step
                assert received.field
                assert received.agent
                assert received.retry_after == AFTER
        await server.stop(0)
        return len(codes)

    assert asyncio.run(walk()) > 60
