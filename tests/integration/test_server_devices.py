"""`EdgeService` over the wire, with a device that the test plays itself."""

import json
import queue
import threading
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import grpc
import pytest

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import edge_pb2, edge_pb2_grpc, result_pb2, status_pb2
from tests.integration.server import Running

READING = {
    "name": "a page",
    "sha256": "0" * 64,
    "media_type": "image/png",
    "pages": [{"page": 1, "width": 10, "height": 10, "sharpness": 200.0, "lines": []}],
    "findings": [],
    "crops": [],
}


class Device:
    """One connection of a device; `messages` holds what came down."""

    def __init__(
        self, server: Running, device_id: str, *, session: str = "s1", capabilities: list[str] | None = None
    ):
        self._outgoing: queue.Queue[edge_pb2.ConnectRequest | None] = queue.Queue()
        self._channel = server.channel()
        self.messages: queue.Queue[edge_pb2.ConnectResponse | grpc.RpcError | None] = queue.Queue()
        capabilities = ["relay_reread"] if capabilities is None else capabilities
        self.send(
            hello=edge_pb2.Hello(device_id=device_id, session_id=session, capabilities=capabilities), sequence=0
        )

    def __enter__(self) -> Self:
        call = edge_pb2_grpc.EdgeServiceStub(self._channel).Connect(self._requests())
        self._call = call

        def listen() -> None:
            try:
                for response in call:
                    self.messages.put(response)
                self.messages.put(None)
            except grpc.RpcError as error:
                self.messages.put(error)

        self._thread = threading.Thread(target=listen)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call.cancel()
        self._outgoing.put(None)
        self._thread.join(10)
        self._channel.close()

    def _requests(self) -> Iterator[edge_pb2.ConnectRequest]:
        while (request := self._outgoing.get()) is not None:
            yield request

    def send(self, *, sequence: int, **message: Any) -> None:
        self._outgoing.put(edge_pb2.ConnectRequest(sequence=sequence, **message))

    def receive(self, kind: str) -> edge_pb2.ConnectResponse:
        """The next message of a kind; others before it are passed over."""
        while True:
            message = self.messages.get(timeout=20)
            assert isinstance(message, edge_pb2.ConnectResponse), message
            if (message.WhichOneof("message") or "ack") == kind:
                return message

    def ended(self) -> grpc.RpcError | None:
        """How the connection ended."""
        while True:
            message = self.messages.get(timeout=20)
            if not isinstance(message, edge_pb2.ConnectResponse):
                return message


def _observation(**fields: Any) -> edge_pb2.Observation:
    fields.setdefault("observation_id", str(uuid.uuid4()))
    fields.setdefault("kind", "document_reading")
    fields.setdefault("payload_json", json.dumps(READING).encode())
    return edge_pb2.Observation(**fields)


def _answer(request: edge_pb2.StepRequest, **changes: Any) -> edge_pb2.StepResult:
    output = {"words": 3, "confidence_score": 0.9, "sources": []}
    fields = {"task_id": request.task_id, "step": request.step, "attempt": request.attempt}
    if "error" not in changes:
        fields["output_json"] = json.dumps(output).encode()
    return edge_pb2.StepResult(**(fields | changes))


def _code(error: grpc.RpcError | None) -> str:
    assert error is not None
    return str(error.code().name)


def test_an_observation_becomes_a_task_whose_step_runs_on_the_device(server: Running) -> None:
    with Device(server, "pi-1") as device, Client(Address.of(server.address)) as client:
        assert device.receive("welcome").welcome.software_version
        observation = _observation()
        device.send(sequence=1, observation=observation)
        outcome = device.receive("observation_outcome")
        assert outcome.ack_through == 1
        task_id = outcome.observation_outcome.task_id
        step = device.receive("step_request").step_request
        assert (step.task_id, step.step, step.attempt, step.agent) == (task_id, 0, 1, "relay_reread")
        assert json.loads(step.input_json) == {"text": "a page"}
        assert step.time_limit.seconds == 5
        device.send(sequence=2, step_result=_answer(step))
        assert device.receive("ack").ack_through == 2
        task = client.wait(task_id)
        assert task.result.answer_markdown.startswith("There are 3 words.")
        assert task.device_id == "pi-1"

        device.send(sequence=3, observation=observation)  # the same observation is the same task
        assert device.receive("observation_outcome").observation_outcome.task_id == task_id
        device.send(sequence=4, step_result=_answer(step))  # late: on record only
        assert device.receive("ack").ack_through == 4
        assert client.get(task_id).last_sequence == task.last_sequence


@pytest.mark.parametrize(
    "fields",
    [
        {"observation_id": "x"},
        {"payload_json": b"{}"},
        {"payload_json": b'{"name": NaN}'},
        {"payload_json": b"\xff\xfe"},
        {"payload_json": b"[" * 100_000},
        {"payload_json": json.dumps(READING | {"name": "\ud800"}).encode()},
        {"kind": "thought_reading"},
        {"kind": "", "payload_json": b"{}"},
        {"kind": "", "payload_json": b"", "text": ""},
        {"text": "a\0b"},
    ],
)
def test_a_bad_observation_is_refused_with_a_typed_error_and_acknowledged(
    server: Running, fields: dict[str, Any]
) -> None:
    with Device(server, f"pi-{uuid.uuid4()}") as device:
        device.send(sequence=1, observation=_observation(**fields))
        outcome = device.receive("observation_outcome")
        assert outcome.observation_outcome.task_id == ""
        assert outcome.observation_outcome.error.code == "INVALID_REQUEST"
        assert outcome.observation_outcome.error.next_step
        assert outcome.ack_through == 1
        device.send(sequence=2, observation=_observation())
        assert device.receive("observation_outcome").observation_outcome.task_id


def test_messages_seen_before_are_acknowledged_over_reconnects_and_gaps_are_refused(server: Running) -> None:
    observation = _observation()
    with Device(server, "pi-3", session="boot-1", capabilities=[]) as device:
        device.send(sequence=1, observation=observation)
        task_id = device.receive("observation_outcome").observation_outcome.task_id
    with Device(server, "pi-3", session="boot-1", capabilities=[]) as device:
        assert device.receive("welcome").ack_through == 1
        device.send(sequence=1, observation=observation)
        assert device.receive("observation_outcome").observation_outcome.task_id == task_id
        device.send(sequence=3, observation=_observation())
        assert _code(device.ended()) == "INVALID_ARGUMENT"
    with Device(server, "pi-3", session="boot-2", capabilities=[]) as device:  # a restarted device counts anew
        assert device.receive("welcome").ack_through == 0
        other = _observation()
        device.send(sequence=1, observation=other)
        assert device.receive("observation_outcome").observation_outcome.task_id != task_id


def test_a_step_whose_device_went_away_waits_and_is_done_when_it_is_back(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        with Device(server, "pi-4") as device:
            device.send(sequence=1, observation=_observation())
            task_id = device.receive("observation_outcome").observation_outcome.task_id
            first = device.receive("step_request").step_request
        for response in client.watch(task_id):
            if response.status == status_pb2.TASK_STATUS_WAITING_DEVICE:
                break
        with Device(server, "pi-4") as device:
            again = device.receive("step_request").step_request
            assert (again.task_id, again.attempt) == (task_id, first.attempt + 1)
            device.send(sequence=2, step_result=_answer(first))  # of the attempt given up: ignored
            device.send(sequence=3, step_result=_answer(again))
            assert task_status_name(client.wait(task_id).status) == "succeeded"


def test_a_second_connection_replaces_the_first_and_is_sent_what_waits(server: Running) -> None:
    with Client(Address.of(server.address)) as client, Device(server, "pi-5") as first:
        first.send(sequence=1, observation=_observation())
        task_id = first.receive("observation_outcome").observation_outcome.task_id
        step = first.receive("step_request").step_request
        with Device(server, "pi-5") as second:
            assert _code(first.ended()) == "UNAVAILABLE"
            assert second.receive("step_request").step_request == step
            second.send(sequence=2, step_result=_answer(step))
            assert task_status_name(client.wait(task_id).status) == "succeeded"


def test_what_a_device_says_went_wrong_reaches_the_task(server: Running) -> None:
    with Client(Address.of(server.address)) as client, Device(server, "pi-6") as device:
        device.send(sequence=1, observation=_observation())
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        step = device.receive("step_request").step_request
        device.send(
            sequence=2,
            step_result=_answer(step, error=result_pb2.ErrorDetail(code="AGENT_TIMEOUT", message="too slow")),
        )
        again = device.receive("step_request").step_request
        assert again.attempt == 2
        device.send(sequence=3, step_result=_answer(again, output_json=b"{nonsense"))
        codes: list[str] = []
        for response in client.watch(task_id):
            if response.event.WhichOneof("payload") == "step_failed":
                codes.append(response.event.step_failed.error.code)
            if len(codes) == 2:
                break
        assert codes == ["AGENT_TIMEOUT", "OUTPUT_CONTRACT_BROKEN"]
        assert task_status_name(client.wait(task_id).status) == "waiting_review"


@pytest.mark.parametrize(
    "first",
    [
        {"sequence": 1, "observation": _observation()},
        {"sequence": 0, "hello": edge_pb2.Hello(device_id="")},
        {"sequence": 0, "hello": edge_pb2.Hello(device_id="x" * 101)},
        {"sequence": 0, "hello": edge_pb2.Hello(device_id="a\0")},
        {"sequence": 0},
    ],
)
def test_a_stream_begins_with_a_proper_hello(channel: grpc.Channel, first: dict[str, Any]) -> None:
    requests = iter([edge_pb2.ConnectRequest(**first)])
    with pytest.raises(grpc.RpcError) as caught:
        list(edge_pb2_grpc.EdgeServiceStub(channel).Connect(requests))
    assert _code(caught.value) == "INVALID_ARGUMENT"
