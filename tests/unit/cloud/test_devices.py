"""The hub without a wire: what is hard to bring about over one."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.invocation import AgentContext, Caller, Invocation
from agents.spec import AgentSpec
from cloud.devices import DeviceCannot, DeviceHub
from conductor.bus import Acceptance
from podium.errors import DeviceLost, DeviceOffline, InputContractBroken, ServerUnavailable, StorageFull
from podium.link.inbox import IdentityShared, MemoryInbox
from podium.link.liveness import Heartbeats, PeerSilent
from podium.v1 import edge_pb2
from tests.contract.bus.scenario import in_loop

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _spec(name: str = "page_reread") -> AgentSpec:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    output = {
        "type": "object",
        "properties": {"confidence_score": {"type": "number"}, "sources": {"type": "array"}},
        "required": ["confidence_score", "sources"],
        "additionalProperties": False,
    }
    return AgentSpec(
        name=name,
        version="1.0.0",
        description="An agent on a device, for tests.",
        input_schema=schema,
        output_schema=output,
        capability_tags=("reread",),
        engine="device",
    )


def _invocation(*, name: str = "page_reread", attempt: int = 1) -> Invocation:
    context = AgentContext(
        task_id="t", step=0, attempt=attempt, idempotency_key="t/0", now=NOW, caller=Caller(name="anna")
    )
    return Invocation(spec=_spec(name), inputs={}, context=context, time_limit=timedelta(seconds=5))


class _Wire:
    """A device's stream, played by the test."""

    def __init__(self, hub: DeviceHub, session: str = "s", *, heartbeats: bool = False) -> None:
        self.up: asyncio.Queue[edge_pb2.ConnectRequest] = asyncio.Queue()
        self.down = hub.connect(self._requests())
        hello = edge_pb2.Hello(
            device_id="pi", session_id=session, capabilities=["page_reread"], heartbeats=heartbeats
        )
        self.up.put_nowait(edge_pb2.ConnectRequest(hello=hello))

    async def _requests(self) -> AsyncIterator[edge_pb2.ConnectRequest]:
        while True:
            yield await self.up.get()

    async def receive(self) -> edge_pb2.ConnectResponse:
        async with asyncio.timeout(10):
            return await anext(self.down)

    def answer(self, sequence: int, step: edge_pb2.StepRequest, value: Any) -> None:
        result = edge_pb2.StepResult(
            task_id=step.task_id, step=step.step, attempt=step.attempt, output_json=json.dumps(value).encode()
        )
        self.up.put_nowait(edge_pb2.ConnectRequest(sequence=sequence, step_result=result))


class _Tasks:
    """Accepts observations, or refuses them with the errors it is given first."""

    def __init__(self, *errors: StorageFull) -> None:
        self.errors = list(errors)
        self.seen: list[str] = []

    async def accept(self, device_id: str, observation: edge_pb2.Observation) -> Acceptance:
        if self.errors:
            raise self.errors.pop()
        self.seen.append(observation.observation_id)
        return Acceptance(task_id=f"task of {observation.observation_id}", duplicate=False)


def _hub(tasks: _Tasks | None = None, **settings: Any) -> DeviceHub:
    return DeviceHub(
        accept=(tasks or _Tasks()).accept,
        clock=lambda: NOW,
        software_version="1",
        inbox=MemoryInbox(),
        **settings,
    )


@in_loop
async def test_a_step_that_no_device_can_receive_is_refused_and_not_sent_for_ever() -> None:
    hub = _hub()
    wire = _Wire(hub)
    await wire.receive()
    huge = replace(_invocation(), inputs={"text": "x" * 5_000_000})
    with pytest.raises(InputContractBroken, match="a device takes"):
        await hub.invoke("pi", huge)
    asked = asyncio.create_task(hub.invoke("pi", _invocation()))
    step = (await wire.receive()).step_request
    wire.answer(1, step, {"still": "connected"})
    assert await asked == {"still": "connected"}


@in_loop
async def test_an_attempt_number_is_never_given_twice_so_an_old_result_settles_nothing_new() -> None:
    hub = _hub()
    wire = _Wire(hub)
    await wire.receive()
    given_up = asyncio.create_task(hub.invoke("pi", _invocation()))
    old = (await wire.receive()).step_request
    given_up.cancel()
    cancel = (await wire.receive()).step_cancel
    assert (cancel.task_id, cancel.step, cancel.attempt) == ("t", 0, 1)
    # A new plan counts this step's attempts from 1 again.
    running = asyncio.create_task(hub.invoke("pi", _invocation(attempt=1)))
    new = (await wire.receive()).step_request
    assert (old.attempt, new.attempt) == (1, 2)
    wire.answer(1, old, "old")
    wire.answer(2, new, "new")
    assert [(await wire.receive()).ack_through for _ in range(2)] == [1, 2]
    assert await running == "new"
    await wire.down.aclose()


@in_loop
async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again() -> None:
    tasks = _Tasks(StorageFull("no room left"))
    hub = _hub(tasks)
    message = edge_pb2.ConnectRequest(sequence=1, observation=edge_pb2.Observation(observation_id="o"))
    wire = _Wire(hub)
    await wire.receive()
    wire.up.put_nowait(message)
    with pytest.raises(StorageFull):
        await wire.receive()
    assert not hub.online("pi")
    again = _Wire(hub)
    assert (await again.receive()).ack_through == 0
    again.up.put_nowait(message)
    response = await again.receive()
    assert (response.ack_through, response.observation_outcome.task_id) == (1, "task of o")
    await again.down.aclose()


@in_loop
async def test_a_device_that_names_no_session_may_count_anew() -> None:
    tasks = _Tasks()
    hub = _hub(tasks)
    for name in ("first", "second"):
        wire = _Wire(hub, session="")
        assert (await wire.receive()).ack_through == 0
        observation = edge_pb2.Observation(observation_id=name)
        wire.up.put_nowait(edge_pb2.ConnectRequest(sequence=1, observation=observation))
        await wire.receive()
        await wire.down.aclose()
    assert tasks.seen == ["first", "second"]


@in_loop
async def test_steps_of_absent_devices_and_unknown_agents_are_refused_at_once() -> None:
    hub = _hub()
    with pytest.raises(DeviceOffline):
        await hub.invoke("pi", _invocation())
    wire = _Wire(hub)
    await wire.receive()
    with pytest.raises(DeviceCannot):
        await hub.invoke("pi", _invocation(name="fly"))
    running = asyncio.create_task(hub.invoke("pi", _invocation()))
    await wire.receive()
    await wire.down.aclose()
    with pytest.raises(DeviceLost):
        await running
    assert not hub.online("pi")


@in_loop
async def test_a_device_that_does_not_read_is_not_read_from_without_end() -> None:
    tasks = _Tasks()
    hub = _hub(tasks)
    wire = _Wire(hub)
    await wire.receive()
    for sequence in range(1, 1001):
        observation = edge_pb2.Observation(observation_id=str(sequence))
        wire.up.put_nowait(edge_pb2.ConnectRequest(sequence=sequence, observation=observation))
    for _ in range(2000):
        await asyncio.sleep(0)  # turns of the loop, in which it could read on
    assert 100 < len(tasks.seen) < 300
    acknowledged = [(await wire.receive()).ack_through for _ in range(1000)]
    assert acknowledged == list(range(1, 1001))
    await wire.down.aclose()


HEARTBEAT = edge_pb2.ConnectRequest(heartbeat=edge_pb2.Heartbeat())


@in_loop
async def test_a_device_that_shows_no_life_is_offline_and_its_steps_are_given_up() -> None:
    hub = _hub(heartbeats=Heartbeats(interval=timedelta(milliseconds=50)))
    wire = _Wire(hub, heartbeats=True)
    assert (await wire.receive()).welcome.heartbeat_interval.ToTimedelta() == timedelta(milliseconds=50)
    running = asyncio.create_task(hub.invoke("pi", _invocation()))
    assert (await wire.receive()).WhichOneof("message") == "step_request"
    # Nobody reads the stream meanwhile: its sending side is stuck, as on a line that is dead.
    with pytest.raises(DeviceLost):
        await running
    assert not hub.online("pi")
    with pytest.raises(PeerSilent):
        await wire.receive()


@in_loop
async def test_a_device_with_heartbeats_stays_and_is_sent_some() -> None:
    hub = _hub(heartbeats=Heartbeats(interval=timedelta(milliseconds=50)))
    wire = _Wire(hub, heartbeats=True)
    await wire.receive()
    for _ in range(30):  # longer than the silence that is borne
        wire.up.put_nowait(HEARTBEAT)
        assert (await wire.receive()).WhichOneof("message") == "heartbeat"
    assert hub.online("pi")
    await wire.down.aclose()


@in_loop
async def test_a_large_step_is_announced_so_that_a_slow_line_is_not_taken_for_a_dead_one() -> None:
    hub = _hub()
    wire = _Wire(hub, heartbeats=True)
    await wire.receive()
    invocation = _invocation()
    invocation = replace(invocation, inputs={"text": "x" * 50_000})
    running = asyncio.create_task(hub.invoke("pi", invocation))
    announced = (await wire.receive()).heartbeat.bytes_to_follow
    step = await wire.receive()
    assert announced == step.ByteSize() > 50_000
    running.cancel()
    await wire.down.aclose()


@in_loop
async def test_a_second_holder_is_named_refused_and_does_not_throw_the_newer_one_out() -> None:
    contested: list[str] = []
    hub = _hub(on_contested=contested.append)
    old = _Wire(hub, session="old")
    await old.receive()
    new = _Wire(hub, session="new")
    await new.receive()
    with pytest.raises(ServerUnavailable, match="connected anew elsewhere"):
        await old.receive()
    new.up.put_nowait(HEARTBEAT)
    observation = edge_pb2.Observation(observation_id="o")
    new.up.put_nowait(edge_pb2.ConnectRequest(sequence=1, observation=observation))
    await new.receive()
    with pytest.raises(IdentityShared, match="device pi"):
        await _Wire(hub, session="old").receive()
    assert contested == ["pi"]
    new.up.put_nowait(edge_pb2.ConnectRequest(sequence=2, observation=observation))
    assert (await new.receive()).ack_through == 2
    await new.down.aclose()


@in_loop
async def test_a_device_that_reconnects_or_is_started_anew_is_no_second_holder() -> None:
    contested: list[str] = []
    hub = _hub(on_contested=contested.append)
    for session in ("one", "one", "one", "two", "two", "three"):
        wire = _Wire(hub, session=session)
        await wire.receive()
        wire.up.put_nowait(HEARTBEAT)
        observation = edge_pb2.Observation(observation_id="o")
        wire.up.put_nowait(edge_pb2.ConnectRequest(sequence=1, observation=observation))
        await wire.receive()
    assert contested == []
    await wire.down.aclose()
