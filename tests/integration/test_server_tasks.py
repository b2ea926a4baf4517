"""`TaskService` over the wire: what is promised, and what bad requests are told."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from podium.client import Client
from podium.errors import Conflict, NotFound
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import blob_pb2, registry_pb2, registry_pb2_grpc, review_pb2, status_pb2, task_pb2, task_pb2_grpc
from tests.integration.server import Running

SUBMIT = "/podium.v1.TaskService/SubmitTask"


def _stub(channel: grpc.Channel) -> task_pb2_grpc.TaskServiceStub:
    return task_pb2_grpc.TaskServiceStub(channel)


def _request(text: str = "relay the words please", **fields: Any) -> task_pb2.SubmitTaskRequest:
    fields.setdefault("request_id", str(uuid.uuid4()))
    return task_pb2.SubmitTaskRequest(text=text, **fields)


def _violation(error: grpc.RpcError) -> str:
    """The field that a BadRequest names."""
    bad = error_details_pb2.BadRequest()
    for detail in rpc_status.from_call(error).details:
        if detail.Unpack(bad):
            return bad.field_violations[0].field
    return ""


def test_a_task_is_submitted_watched_read_reported_and_listed(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        task = client.submit("relay the words please", labels={"team": "a"})
        assert task_status_name(task.status) == "accepted"
        seen = list(client.watch(task.task_id))
        assert [response.event.header.sequence for response in seen] == list(range(1, len(seen) + 1))
        assert seen[-1].event.WhichOneof("payload") == "task_succeeded"
        assert seen[-1].status == status_pb2.TASK_STATUS_SUCCEEDED
        traces = {response.event.header.trace_id for response in seen}
        assert len(traces) == 1
        assert len(traces.pop()) == 32

        done = client.get(task.task_id)
        assert done.result.answer_markdown == "There are 4 words. [Source: S1]"
        assert dict(done.labels) == {"team": "a"}
        assert done.last_sequence == len(seen)
        listed = client.list(statuses=[status_pb2.TASK_STATUS_SUCCEEDED])
        assert task.task_id in [entry.task_id for entry in listed.tasks]
        late = list(client.watch(task.task_id, after_sequence=len(seen) - 2))
        assert [response.event.header.sequence for response in late] == [len(seen) - 1, len(seen)]
        assert list(client.watch(task.task_id, after_sequence=len(seen))) == []
    # The report is written right after the last event: the next task comes after it on the same worker or later.
    _eventually(lambda: (server.data / "reports" / f"{task.task_id}.md").exists())
    assert (server.data / "reports" / f"{task.task_id}.md").read_text() == "There are 4 words. [Source: S1]"


def _eventually(holds: Callable[[], bool]) -> None:
    changed = threading.Event()
    for _ in range(500):
        if holds():
            return
        changed.wait(0.01)
    raise AssertionError("it never came to hold")


def test_the_same_request_id_is_the_same_task_however_it_is_sent(channel: grpc.Channel) -> None:
    stub = _stub(channel)
    request = _request()
    futures = [stub.SubmitTask.future(request) for _ in range(20)]
    answers = [future.result() for future in futures]
    assert len({answer.task.task_id for answer in answers}) == 1
    assert sum(not answer.duplicate for answer in answers) == 1
    shouted = _request(text="something else", request_id=request.request_id.upper())
    assert stub.SubmitTask(shouted).task.text == request.text


def test_lists_come_in_pages(channel: grpc.Channel) -> None:
    stub = _stub(channel)
    ids = [stub.SubmitTask(_request()).task.task_id for _ in range(5)]
    seen: list[str] = []
    token = ""
    while len(seen) < 5:
        page = stub.ListTasks(task_pb2.ListTasksRequest(page_size=2, page_token=token))
        seen += [task.task_id for task in page.tasks]
        token = page.next_page_token
    assert seen[:5] == ids[::-1]
    assert token


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"request_id": ""}, "request_id"),
        ({"request_id": "not-a-uuid"}, "request_id"),
        ({"request_id": uuid.uuid4().hex}, "request_id"),
        ({"text": ""}, "text"),
        ({"text": " \n\t "}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"text": "relay\0the words"}, "text"),
        ({"priority": 77}, "priority"),
        ({"as_of": Timestamp(seconds=-1)}, "as_of"),
        ({"as_of": Timestamp(seconds=2**62)}, "as_of"),
        ({"as_of": Timestamp(nanos=-5)}, "as_of"),
        ({"time_limit": Duration(seconds=0)}, "time_limit"),
        ({"time_limit": Duration(seconds=-5)}, "time_limit"),
        ({"time_limit": Duration(seconds=2**62)}, "time_limit"),
        ({"labels": {"": "x"}}, "labels"),
        ({"labels": {"a": "x" * 257}}, "labels[a]"),
        ({"labels": {str(n): "" for n in range(33)}}, "labels"),
        ({"attachments": [blob_pb2.BlobRef(sha256="../../etc/passwd", size_bytes=1)]}, "attachments[0].sha256"),
        ({"attachments": [blob_pb2.BlobRef(sha256="0" * 64, size_bytes=1)]}, "attachments[0].sha256"),
        ({"attachments": [blob_pb2.BlobRef(sha256="0" * 64, size_bytes=2**63)] * 21}, "attachments"),
    ],
)
def test_a_field_that_breaks_the_rules_is_named(channel: grpc.Channel, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        _stub(channel).SubmitTask(_request(**fields))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert _violation(caught.value) == named


@pytest.mark.parametrize("text", ["relay 🧾 👩‍👩‍👧 words", "relay the words " * 250, "relay e\u0301 \u202e words"])
def test_unusual_text_is_kept_as_it_was(channel: grpc.Channel, text: str) -> None:
    task_id = _stub(channel).SubmitTask(_request(text)).task.task_id
    assert _stub(channel).GetTask(task_pb2.GetTaskRequest(task_id=task_id)).task.text == text


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x0a\x24" + str(uuid.UUID(int=7)).encode() + b"\x12\x03\xed\xa0\x80",  # text is a lone surrogate
    ],
)
def test_bytes_that_are_no_message_get_a_typed_error(channel: grpc.Channel, data: bytes) -> None:
    call = channel.unary_unary(SUBMIT, request_serializer=None, response_deserializer=None)
    with pytest.raises(grpc.RpcError) as caught:
        call(data)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.reason == "INVALID_REQUEST"


def test_unknown_enum_values_of_newer_clients_are_named_in_lists_and_verdicts(channel: grpc.Channel) -> None:
    listing = task_pb2.ListTasksRequest()
    listing.statuses.extend([status_pb2.TASK_STATUS_FAILED, 99])
    with pytest.raises(grpc.RpcError) as caught:
        _stub(channel).ListTasks(listing)
    assert _violation(caught.value) == "statuses[1]"
    verdict = channel.unary_unary(
        "/podium.v1.ReviewService/ResolveReview",
        request_serializer=review_pb2.ResolveReviewRequest.SerializeToString,
        response_deserializer=review_pb2.ResolveReviewResponse.FromString,
    )
    with pytest.raises(grpc.RpcError) as caught:
        verdict(review_pb2.ResolveReviewRequest(task_id="x", verdict=42))
    assert _violation(caught.value) == "verdict"


def test_a_message_of_64_megabytes_is_refused_and_the_server_lives(server: Running) -> None:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(server.address, options=options) as channel:
        call = channel.unary_unary(SUBMIT, request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.RpcError) as caught:
            call(b"\x12" + b"x" * (64 * 2**20))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert _stub(channel).SubmitTask(_request()).task.task_id


def test_what_is_not_there_is_not_found(server: Running, channel: grpc.Channel) -> None:
    with Client(Address.of(server.address)) as client:
        for call in (client.get, client.cancel, lambda task_id: list(client.watch(task_id))):
            with pytest.raises(NotFound):
                call("nobody")
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/podium.v1.TaskService/Fly", None, None)(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    with pytest.raises(grpc.RpcError) as caught:
        _stub(channel).ListTasks(task_pb2.ListTasksRequest(page_token="nobody"))
    assert _violation(caught.value) == "page_token"


def test_a_question_is_asked_answered_once_and_the_task_goes_on(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        task = client.wait(client.submit("frobnicate the thing").task_id)
        assert task_status_name(task.status) == "waiting_input"
        with pytest.raises(NotFound):
            client.answer(task.task_id, "relay the words", question_id="no such question")
        answered = client.answer(task.task_id, "relay the words please")
        assert answered.status != status_pb2.TASK_STATUS_WAITING_INPUT
        done = client.wait(task.task_id)
        assert task_status_name(done.status) in ("succeeded", "waiting_input")


def test_a_watch_of_a_waiting_task_ends_at_its_deadline(channel: grpc.Channel) -> None:
    stub = _stub(channel)
    task_id = stub.SubmitTask(_request("frobnicate the thing")).task.task_id
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.WatchTask(task_pb2.WatchTaskRequest(task_id=task_id), timeout=1))
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_cancelling_ends_a_task_and_leaves_an_ended_one_alone(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        task_id = client.wait(client.submit("frobnicate the thing").task_id).task_id
        cancelled = client.cancel(task_id, "changed my mind")
        assert task_status_name(cancelled.status) == "cancelled"
        assert client.cancel(task_id, "again").last_sequence == cancelled.last_sequence
        with pytest.raises((Conflict, NotFound)):
            client.answer(task_id, "relay the words", question_id="q1")


def test_an_agent_that_returns_prose_fails_its_task_with_a_typed_error(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        task = client.wait(client.submit("babble please").task_id)
        assert task.error.code == "OUTPUT_CONTRACT_BROKEN"
        assert client.submit("relay the words please").task_id


def test_a_task_expires_at_its_time_limit(server: Running) -> None:
    with Client(Address.of(server.address)) as client:
        task = client.submit("frobnicate the thing", time_limit=timedelta(milliseconds=300))
        ended = client.wait(task.task_id, until_asked=False, time_limit=timedelta(seconds=20))
        assert task_status_name(ended.status) == "expired"


def test_agents_are_described(server: Running, channel: grpc.Channel) -> None:
    with Client(Address.of(server.address)) as client:
        names = [agent.name for agent in client.agents("relay")]
    assert names == sorted(names)
    assert "relay_mark" in names
    registry = registry_pb2_grpc.RegistryServiceStub(channel)
    agent = registry.GetAgent(registry_pb2.GetAgentRequest(name="relay_mark")).agent
    assert agent.input_schema_json.startswith(b"{")
    with pytest.raises(grpc.RpcError) as caught:
        registry.GetAgent(registry_pb2.GetAgentRequest(name="nobody"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_health_says_serving(channel: grpc.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", "podium.v1.TaskService"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
