"""The hub without a wire: what is hard to bring about over one."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.invocation import AgentContext, Caller, Invocation
from agents.spec import AgentSpec
from cloud.devices import DeviceCannot, DeviceHub
from conductor.bus import Acceptance
from podium.errors import DeviceLost, DeviceOffline, StorageFull
from podium.link.inbox import MemoryInbox
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

    def __init__(self, hub: DeviceHub, session: str = "s") -> None:
        self.up: asyncio.Queue[edge_pb2.ConnectRequest] = asyncio.Queue()
        self.down = hub.connect(self._requests())
        hello = edge_pb2.Hello(device_id="pi", session_id=session, capabilities=["page_reread"])
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


def _hub(tasks: _Tasks | None = None) -> DeviceHub:
    return DeviceHub(
        accept=(tasks or _Tasks()).accept, clock=lambda: NOW, software_version="1", inbox=MemoryInbox()
    )


@in_loop
async def test_an_attempt_number_is_never_given_twice_so_an_old_result_settles_nothing_new() -> None:
    hub = _hub()
    wire = _Wire(hub)
    await wire.receive()
    given_up = asyncio.create_task(hub.invoke("pi", _invocation()))
    old = (await wire.receive()).step_request
    given_up.cancel()
    assert (await wire.receive()).step_cancel.task_id == "t"
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
