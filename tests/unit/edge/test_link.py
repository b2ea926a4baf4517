"""The device's end of the link, against a real gRPC server that breaks off, repeats itself and asks for steps."""

import asyncio
import itertools
import json
import random
from contextlib import asynccontextmanager

import grpc
import pytest

from edge.link import DeviceLink
from podium.errors import InvalidRequest, ServerUnavailable
from podium.link import Address
from podium.link.reconnecting import Connection
from podium.v1 import edge_pb2, edge_pb2_grpc, result_pb2


class ScriptedCloud(edge_pb2_grpc.EdgeServiceServicer):
    """Accepts every observation once.

    `break_after` ends that many streams at their first observation, `lose_outcomes` that many after storing it
    but before the outcome is sent; `hang_up` ends every stream after the welcome; `boast` acknowledges more than
    was sent; `forget_result` ends one stream at its first step result.
    """

    def __init__(
        self,
        *,
        break_after=0,
        lose_outcomes=0,
        steps=(),
        refuse=False,
        hang_up=False,
        boast=0,
        forget_result=False,
    ):
        self.break_after = break_after
        self.lose_outcomes = lose_outcomes
        self.hang_up = hang_up
        self.boast = boast
        self.forget_result = forget_result
        self.applied = 0
        self.steps = steps
        self.refuse = refuse
        self.hellos = []
        self.received = []
        self.results = asyncio.Queue()

    async def Connect(self, request_iterator, context):  # noqa: C901, N802 - a script of faults; gRPC's name
        async for request in request_iterator:
            kind = request.WhichOneof("message")
            if kind == "hello":
                self.hellos.append(request.hello)
                yield edge_pb2.ConnectResponse(
                    ack_through=self.applied + self.boast, welcome=edge_pb2.Welcome(software_version="test")
                )
                if self.hang_up:
                    return
                for step in self.steps:
                    yield edge_pb2.ConnectResponse(step_request=step)
            elif kind == "observation":
                self.received.append((request.sequence, request.observation.observation_id))
                if self.break_after > 0:
                    self.break_after -= 1
                    return
                self.applied = request.sequence
                if self.lose_outcomes > 0:
                    self.lose_outcomes -= 1
                    return
                outcome = edge_pb2.ObservationOutcome(observation_id=request.observation.observation_id)
                if self.refuse:
                    outcome.error.CopyFrom(result_pb2.ErrorDetail(code="INVALID_REQUEST", message="no"))
                else:
                    outcome.task_id = f"task-of-{request.observation.observation_id}"
                yield edge_pb2.ConnectResponse(ack_through=request.sequence, observation_outcome=outcome)
            elif kind == "step_result":
                await self.results.put(request.step_result)
                if self.forget_result:
                    self.forget_result = False
                    return
                yield edge_pb2.ConnectResponse(ack_through=request.sequence)


@asynccontextmanager
async def linked(cloud, handle_step=None, *, port=0, attempts=None):
    async def no_steps(request):
        raise AssertionError("no step was expected")

    server = grpc.aio.server()
    edge_pb2_grpc.add_EdgeServiceServicer_to_server(cloud, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    link = DeviceLink(
        lambda: Address.of(f"127.0.0.1:{bound}"),
        device_id="d1",
        software_version="1",
        capabilities=["page_reread"],
        handle_step=handle_step or no_steps,
        jitter=random.Random(1),
    )
    running = asyncio.create_task(link.run(attempts=attempts))
    try:
        yield link
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop(0)


def _observation(name):
    return edge_pb2.Observation(observation_id=name, text="Check this invoice.", kind="document_reading")


async def _within(work, seconds=20):
    async with asyncio.timeout(seconds):
        return await work


def test_an_observation_becomes_a_task():
    async def scenario():
        cloud = ScriptedCloud()
        async with linked(cloud) as link:
            assert await _within(link.send(_observation("o1"))) == "task-of-o1"
            assert await _within(link.send(_observation("o2"))) == "task-of-o2"
        assert cloud.received == [(1, "o1"), (2, "o2")]
        assert cloud.hellos[0].device_id == "d1"
        assert list(cloud.hellos[0].capabilities) == ["page_reread"]

    asyncio.run(scenario())


def test_what_was_not_acknowledged_is_sent_again_with_its_number():
    async def scenario():
        cloud = ScriptedCloud(break_after=2)
        async with linked(cloud) as link:
            assert await _within(link.send(_observation("o1"))) == "task-of-o1"
        assert cloud.received == [(1, "o1")] * 3
        assert len({hello.session_id for hello in cloud.hellos}) == 1

    asyncio.run(scenario())


def test_an_outcome_that_was_lost_after_the_acknowledgement_is_asked_for_again():
    async def scenario():
        cloud = ScriptedCloud(lose_outcomes=2)
        async with linked(cloud) as link:
            assert await _within(link.send(_observation("o1"))) == "task-of-o1"
            assert await _within(link.send(_observation("o2"))) == "task-of-o2"
        numbers = [number for number, _ in cloud.received]
        assert all(after <= before + 1 for before, after in itertools.pairwise(numbers))
        assert [name for _, name in cloud.received] == ["o1"] * (len(numbers) - 1) + ["o2"]

    asyncio.run(scenario())


def test_what_was_never_sent_is_not_dropped_by_an_acknowledgement():
    async def scenario():
        cloud = ScriptedCloud(boast=100)
        async with linked(cloud) as link:
            assert await _within(link.send(_observation("o1"))) == "task-of-o1"
            assert await _within(link.send(_observation("o2"))) == "task-of-o2"

    asyncio.run(scenario())


def test_an_observation_on_its_way_is_sent_once_for_all_who_send_it():
    async def scenario():
        cloud = ScriptedCloud(break_after=1)
        async with linked(cloud) as link:
            cancelled = asyncio.create_task(link.send(_observation("o1")))
            others = [asyncio.create_task(link.send(_observation("o1"))) for _ in range(2)]
            await asyncio.sleep(0)
            cancelled.cancel()
            assert await _within(asyncio.gather(*others)) == ["task-of-o1"] * 2
        assert cloud.received == [(1, "o1")] * 2

    asyncio.run(scenario())


def test_nothing_is_left_running_after_connections_that_ended():
    async def scenario():
        cloud = ScriptedCloud(break_after=3)
        async with linked(cloud) as link:
            await _within(link.send(_observation("o1")))
            writing = [task for task in asyncio.all_tasks() if "_consume_request_iterator" in repr(task)]
            assert len(writing) == 1

    asyncio.run(scenario())


def test_a_refusal_reaches_the_sender():
    async def scenario():
        async with linked(ScriptedCloud(refuse=True)) as link:
            with pytest.raises(InvalidRequest, match="no"):
                await _within(link.send(_observation("o1")))

    asyncio.run(scenario())


def test_a_step_is_run_and_answered_once_even_when_it_is_asked_for_twice():
    step = edge_pb2.StepRequest(task_id="t", step=2, attempt=1, agent="page_reread", input_json=b"{}")
    step.time_limit.FromSeconds(10)
    calls = []

    async def handle(request):
        calls.append(request.step)
        await asyncio.sleep(0)
        return json.dumps({"ok": True}).encode()

    async def scenario():
        cloud = ScriptedCloud(steps=[step, step])
        async with linked(cloud, handle):
            result = await _within(cloud.results.get())
        assert (result.task_id, result.step, result.attempt) == ("t", 2, 1)
        assert json.loads(result.output_json) == {"ok": True}
        assert calls == [2]

    asyncio.run(scenario())


def test_a_step_whose_answer_is_on_the_way_is_not_run_again_after_a_reconnect():
    step = edge_pb2.StepRequest(task_id="t", step=2, attempt=1, agent="page_reread", input_json=b"{}")
    step.time_limit.FromSeconds(10)
    calls = []

    async def handle(request):
        calls.append(request.step)
        return b"{}"

    async def scenario():
        cloud = ScriptedCloud(steps=[step], forget_result=True)
        async with linked(cloud, handle) as link:
            first = await _within(cloud.results.get())
            assert await _within(cloud.results.get()) == first  # sent again, not made again
            await _within(link.send(_observation("o1")))
        assert calls == [2]

    asyncio.run(scenario())


def test_an_error_of_a_step_travels_as_what_it_is():
    step = edge_pb2.StepRequest(task_id="t", step=0, attempt=1, agent="page_reread", input_json=b"{}")
    step.time_limit.FromSeconds(10)

    async def handle(request):
        raise InvalidRequest("the place lies outside the page", evidence=["box"])

    async def scenario():
        cloud = ScriptedCloud(steps=[step])
        async with linked(cloud, handle):
            result = await _within(cloud.results.get())
        assert result.error.code == "INVALID_REQUEST"
        assert list(result.error.evidence) == ["box"]

    asyncio.run(scenario())


def test_an_error_that_says_too_much_is_cut_and_does_not_end_the_connection():
    step = edge_pb2.StepRequest(task_id="t", step=0, attempt=1, agent="page_reread", input_json=b"{}")

    async def handle(request):
        raise InvalidRequest("x" * 5_000_000, evidence=["y" * 5_000_000] * 2)

    async def scenario():
        cloud = ScriptedCloud(steps=[step])
        async with linked(cloud, handle):
            result = await _within(cloud.results.get())
        assert result.error.code == "INVALID_REQUEST"
        assert result.error.message == "x" * 2000
        assert len(cloud.hellos) == 1

    asyncio.run(scenario())


def test_a_step_past_its_time_limit_is_a_timeout():
    step = edge_pb2.StepRequest(task_id="t", step=0, attempt=1, agent="page_reread", input_json=b"{}")
    step.time_limit.FromMilliseconds(50)

    async def handle(request):
        await asyncio.Event().wait()

    async def scenario():
        cloud = ScriptedCloud(steps=[step])
        async with linked(cloud, handle):
            result = await _within(cloud.results.get())
        assert result.error.code == "AGENT_TIMEOUT"

    asyncio.run(scenario())


def test_a_server_that_is_not_there_is_given_up_after_the_attempts_allowed():
    async def scenario():
        link = DeviceLink(
            lambda: Address.of("127.0.0.1:1"),
            device_id="d1",
            software_version="1",
            capabilities=[],
            handle_step=None,
            jitter=random.Random(1),
        )
        with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:1 cannot be reached"):
            await _within(link.run(attempts=2))

    asyncio.run(scenario())


def test_a_cloud_that_greets_and_hangs_up_is_given_up_too():
    async def scenario():
        cloud = ScriptedCloud(hang_up=True)
        server = grpc.aio.server()
        edge_pb2_grpc.add_EdgeServiceServicer_to_server(cloud, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        link = DeviceLink(
            lambda: Address.of(f"127.0.0.1:{port}"),
            device_id="d1",
            software_version="1",
            capabilities=[],
            handle_step=None,
            jitter=random.Random(1),
        )
        with pytest.raises(ServerUnavailable, match="closed the connection"):
            await _within(link.run(attempts=1))
        assert len(cloud.hellos) == 2  # twice as many attempts, because it had answered
        await server.stop(0)

    asyncio.run(scenario())


def test_an_acknowledged_observation_without_outcome_gets_a_new_number_at_the_next_welcome():
    """Whether acknowledgement or end comes first is a race over the wire, so the link is driven by hand."""

    async def scenario():
        link = DeviceLink(
            lambda: Address.of("127.0.0.1:1"),
            device_id="d1",
            software_version="1",
            capabilities=[],
            handle_step=None,
            jitter=random.Random(1),
        )

        async def next_up(ack_through):
            """What a new connection carries after its hello, and after the cloud's welcome."""
            connection = link._connection = Connection(Address.of("127.0.0.1:1"))
            upward = link._upward(connection)
            hello = (await anext(upward)).hello
            link._receive(
                connection, edge_pb2.ConnectResponse(ack_through=ack_through, welcome=edge_pb2.Welcome())
            )
            message = await anext(upward)
            return hello.next_sequence, message.sequence, message.observation.observation_id

        sending = asyncio.create_task(link.send(_observation("o1")))
        await asyncio.sleep(0)
        assert await next_up(0) == (1, 1, "o1")
        assert await next_up(1) == (1, 2, "o1")
        outcome = edge_pb2.ObservationOutcome(observation_id="o1", task_id="t")
        link._receive(link._connection, edge_pb2.ConnectResponse(ack_through=2, observation_outcome=outcome))
        assert await sending == "t"

    asyncio.run(scenario())
