"""The device link against plain gRPC streaming: messages a second, round trips, and how soon it is back.

    python -m bench.link [--quick] [--json]

Both run in the same process over loopback, one after the other in each round. `plain` is a bidirectional stream
of the same messages, answered one by one, without kept numbers, marks on disk or reconnects: the ratio is what the
link's promises cost. The inbox writes its marks to a file, as a server does.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloud.devices import DeviceHub
from cloud.inbox import SqliteInbox
from cloud.serving import grpc_server
from conductor.bus import Acceptance
from edge.link import DeviceLink
from podium.link import Address, async_channel
from podium.v1 import edge_pb2, edge_pb2_grpc
from tests.contract.link.faults import BREAKS, break_off

_PAYLOAD = b"x" * 500
_IN_FLIGHT = 200
Send = Callable[[int], Awaitable[None]]


class _Hub(edge_pb2_grpc.EdgeServiceServicer):
    def __init__(self, hub: DeviceHub) -> None:
        self._hub = hub

    async def Connect(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - gRPC's name
        async for response in self._hub.connect(request_iterator):
            yield response


class _Plain(edge_pb2_grpc.EdgeServiceServicer):
    async def Connect(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - gRPC's name
        async for request in request_iterator:
            outcome = edge_pb2.ObservationOutcome(
                observation_id=request.observation.observation_id, task_id="task"
            )
            yield edge_pb2.ConnectResponse(observation_outcome=outcome)


async def _accept(device_id: str, observation: edge_pb2.Observation) -> Acceptance:
    return Acceptance(task_id="task", duplicate=False)


def _observation(number: int) -> edge_pb2.Observation:
    return edge_pb2.Observation(observation_id=str(number), payload_json=_PAYLOAD)


@asynccontextmanager
async def _server(servicer: edge_pb2_grpc.EdgeServiceServicer) -> AsyncIterator[Address]:
    server = grpc_server([])
    edge_pb2_grpc.add_EdgeServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield Address.of(f"127.0.0.1:{port}")
    finally:
        await server.stop(0)


@asynccontextmanager
async def _link() -> AsyncIterator[Send]:
    with tempfile.TemporaryDirectory() as folder:
        inbox = await SqliteInbox.open(Path(folder) / "inbox.sqlite")
        hub = DeviceHub(accept=_accept, clock=lambda: datetime.now(UTC), software_version="1", inbox=inbox)
        async with _server(_Hub(hub)) as address:

            async def no_steps(request: edge_pb2.StepRequest) -> bytes:
                raise RuntimeError("no step was expected")

            link = DeviceLink(
                lambda: address,
                device_id="pi",
                software_version="1",
                capabilities=[],
                handle_step=no_steps,
                jitter=random.Random(1),
            )
            running = asyncio.create_task(link.run())

            async def send(number: int) -> None:
                await link.send(_observation(number))

            yield send
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        await inbox.close()


@asynccontextmanager
async def _plain() -> AsyncIterator[Send]:
    async with _server(_Plain()) as address, async_channel(address) as channel:
        outgoing: asyncio.Queue[edge_pb2.ConnectRequest] = asyncio.Queue()
        waiting: dict[str, asyncio.Future[None]] = {}

        async def requests() -> AsyncIterator[edge_pb2.ConnectRequest]:
            while True:
                yield await outgoing.get()

        call = edge_pb2_grpc.EdgeServiceStub(channel).Connect(requests())

        async def listen() -> None:
            async for response in call:
                waiting.pop(response.observation_outcome.observation_id).set_result(None)

        listening = asyncio.create_task(listen())

        async def send(number: int) -> None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting[str(number)] = future
            outgoing.put_nowait(edge_pb2.ConnectRequest(observation=_observation(number)))
            await future

        yield send
        call.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def _measure(send: Send, *, messages: int, round_trips: int, first: int) -> tuple[float, list[float]]:
    """Messages a second with many in flight, and seconds of single round trips."""
    room = asyncio.Semaphore(_IN_FLIGHT)

    async def one(number: int) -> None:
        async with room:
            await send(number)

    began_s = time.perf_counter()
    await asyncio.gather(*(one(first + number) for number in range(messages)))
    rate = messages / (time.perf_counter() - began_s)
    trips = []
    for number in range(round_trips):
        began_s = time.perf_counter()
        await send(first + messages + number)
        trips.append(time.perf_counter() - began_s)
    return rate, trips


async def _compare(*, rounds: int, messages: int, round_trips: int) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"link": [], "plain": []}
    trips: dict[str, list[float]] = {"link": [], "plain": []}
    async with _link() as link, _plain() as plain:
        await asyncio.gather(link(-1), plain(-1))
        for number in range(rounds):
            for name, send in (("link", link), ("plain", plain)):
                first = number * (messages + round_trips)
                rate, times = await _measure(send, messages=messages, round_trips=round_trips, first=first)
                rates[name].append(rate)
                trips[name] += times
    result: dict[str, Any] = {}
    for name in rates:
        result[name] = {
            "messages_per_s": round(statistics.median(rates[name])),
            "round_trip_p50_ms": round(1000 * _share(trips[name], 0.5), 3),
            "round_trip_p99_ms": round(1000 * _share(trips[name], 0.99), 3),
        }
    result["ratio"] = {key: round(result["link"][key] / result["plain"][key], 2) for key in result["plain"]}
    return result


def _share(values: list[float], share: float) -> float:
    """The value that a share of all keep (nearest rank)."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def _faults() -> list[dict[str, Any]]:
    outcomes = await asyncio.gather(*(break_off("device", fault) for fault in BREAKS))
    return [
        {
            "fault": fault.value,
            "noticed_by_machine_s": round(outcome.machine_noticed_s, 2),
            "noticed_by_server_s": round(outcome.server_noticed_s, 2),
            "recovered_s": round(outcome.recovered_s, 2),
        }
        for fault, outcome in zip(BREAKS, outcomes, strict=True)
    ]


def main() -> None:
    """Run both parts and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no faults")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    result = asyncio.run(
        _compare(rounds=2, messages=1_000, round_trips=200)
        if arguments.quick
        else _compare(rounds=5, messages=5_000, round_trips=1_000)
    )
    if not arguments.quick:
        result["faults"] = asyncio.run(_faults())
    if arguments.json:
        print(json.dumps(result))
        return
    for name in ("link", "plain", "ratio"):
        print(f"{name:6}", *(f"{key} {value}" for key, value in result[name].items()), sep="  ")
    for fault in result.get("faults", ()):
        print(*(f"{key} {value}" for key, value in fault.items()), sep="  ")


if __name__ == "__main__":
    main()
