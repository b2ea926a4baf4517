"""Requests that nobody should send: each gets a typed error, nothing accepted is lost, the server goes on."""

import hashlib
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cloud.blobs.files import partial_name
from podium.client import Client
from podium.errors import Conflict, InvalidRequest, NotFound, PodiumError, StorageFull, TimeLimitExceeded
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import blob_pb2, blob_pb2_grpc, status_pb2, task_pb2, task_pb2_grpc
from tests.integration.server import Running, serving

WITHIN = timedelta(seconds=60)
SUBMIT = "/podium.v1.TaskService/SubmitTask"
WORDS = "relay the words please"


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    """A client whose tasks from before and after the bad input both finish."""
    with Client(Address.of(server.address)) as client:
        before = client.submit(WORDS).task_id
        yield client
        after = client.submit(WORDS).task_id
        for task_id in (before, after):
            assert task_status_name(client.wait(task_id, time_limit=WITHIN).status) == "succeeded"


def _told(error: grpc.RpcError) -> error_details_pb2.ErrorInfo:
    """The ErrorInfo that every error of ours carries."""
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in rpc_status.from_call(error).details)
    assert info.reason
    assert info.metadata["next_step"]
    assert error.details()
    return info


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited protobuf field, however long."""
    length, size = b"", len(data)
    while size > 0x7F:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def _raw(channel: grpc.Channel, data: bytes, method: str = SUBMIT, **options: Any) -> bytes:
    return channel.unary_unary(method, None, None)(data, **options)


# Bytes on the wire


def test_64_megabytes_are_refused_before_they_are_read(server: Running, client: Client) -> None:
    with grpc.insecure_channel(server.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            _raw(channel, _field(2, b"x" * (64 * 2**20)))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "text",
    [b"\xed\xa0\x80", b"a\xed\xb0\x80b", b"\xf0\x9f\x98", b"\xff", b"a\0b"],
    ids=["high", "low", "half-emoji", "latin", "nul"],
)
def test_text_that_is_no_text_is_refused(server: Running, client: Client, text: bytes) -> None:
    with server.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        _raw(channel, _field(1, str(uuid.uuid4()).encode()) + _field(2, text))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert _told(caught.value).reason == "INVALID_REQUEST"


def test_a_lone_surrogate_does_not_leave_the_client(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        client.submit("half a \ud83d character")


@pytest.mark.parametrize("text", [f"{WORDS} 😀", f"{WORDS} 👩🏽‍🚀\u200d\u202e\ufeff", f"{WORDS} " + "𠀀" * 100])
def test_emoji_and_their_like_are_kept_as_they_came(client: Client, text: str) -> None:
    task = client.submit(text)
    assert task.text == text
    assert client.wait(task.task_id, time_limit=WITHIN).text == text


def test_an_enum_value_of_a_newer_client_is_named(server: Running, client: Client) -> None:
    good = _field(1, str(uuid.uuid4()).encode()) + _field(2, WORDS.encode())
    with server.channel() as channel:
        for number in (b"\x63", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"):
            with pytest.raises(grpc.RpcError) as caught:
                _raw(channel, good + b"\x30" + number)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "priority" in str(caught.value.details())
            assert "newer server" in _told(caught.value).metadata["next_step"]
        # A field that is not known at all is what a newer client may add: it is passed over.
        answer = task_pb2.SubmitTaskResponse.FromString(_raw(channel, good + _field(15, b"from the future")))
        assert answer.task.task_id


@pytest.mark.parametrize("data", [b"\x08", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 200, bytes(range(256))])
def test_bytes_that_are_no_message_are_refused(server: Running, client: Client, data: bytes) -> None:
    with server.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        _raw(channel, data)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert _told(caught.value).reason == "INVALID_REQUEST"


# Text


def test_the_longest_text_is_taken_and_the_next_character_is_not(client: Client) -> None:
    longest = (WORDS + " ") * 1000
    longest = longest[:3_999] + "."
    task = client.wait(client.submit(longest).task_id, time_limit=WITHIN)
    assert task.text == longest
    assert task_status_name(task.status) == "succeeded"
    with pytest.raises(InvalidRequest, match="4001 characters") as caught:
        client.submit(longest + ".")
    assert caught.value.field == "text"


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_an_empty_text_is_refused(client: Client, text: str) -> None:
    with pytest.raises(InvalidRequest, match="text is empty") as caught:
        client.submit(text)
    assert caught.value.field == "text"


@pytest.mark.parametrize("text", ["?" * 4_000, "relay" * 800, "\u0301" * 4_000, "(" * 4_000, "1" * 4_000])
def test_a_text_without_sense_is_asked_back_in_time(client: Client, text: str) -> None:
    task = client.wait(client.submit(text).task_id, time_limit=WITHIN)
    assert task_status_name(task.status) in ("waiting_input", "succeeded", "failed")
    assert len(task.question.text) < 5000


# Names


@pytest.mark.parametrize(
    "request_id", ["not-a-uuid", "1", str(uuid.uuid4()) + "0", "../" * 12, "{" + str(uuid.uuid4()) + "}"]
)
def test_a_request_id_that_is_no_uuid_is_named(client: Client, request_id: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        client.submit(WORDS, request_id=request_id)
    assert caught.value.field == "request_id"


def test_a_request_id_used_again_with_other_words_returns_the_first_task(server: Running, client: Client) -> None:
    request_id = str(uuid.uuid4())
    first = client.submit(WORDS, request_id=request_id)
    again = client.submit("babble something else entirely", request_id=request_id)
    assert (again.task_id, again.text) == (first.task_id, WORDS)


def test_200_submits_at_once_with_one_request_id_are_one_task(server: Running, client: Client) -> None:
    request_id = str(uuid.uuid4())
    request = task_pb2.SubmitTaskRequest(request_id=request_id, text=WORDS)
    with ThreadPoolExecutor(20) as pool, server.channel() as channel:
        stub = task_pb2_grpc.TaskServiceStub(channel)
        answers = list(pool.map(lambda _: stub.SubmitTask(request, timeout=60), range(200)))
    assert len({answer.task.task_id for answer in answers}) == 1
    assert sum(not answer.duplicate for answer in answers) == 1
    listed = [task for task in client.list(page_size=500).tasks if task.request_id == request_id]
    assert len(listed) == 1
    task = client.wait(listed[0].task_id, time_limit=WITHIN)
    assert task_status_name(task.status) == "succeeded"
    starts = [
        response.event.header.step
        for response in client.watch(task.task_id, time_limit=WITHIN)
        if response.event.WhichOneof("payload") == "step_started"
    ]
    assert sorted(starts) == [0, 1, 2, 3]


# Tasks at the wrong moment


def test_an_answer_to_a_question_that_was_not_asked_is_not_found(client: Client) -> None:
    asked = client.wait(client.submit("frobnicate the thing").task_id, time_limit=WITHIN)
    for task_id, question_id in ((asked.task_id, "q99"), (asked.task_id, "../q1"), ("nobody", "q1")):
        with pytest.raises(NotFound) as caught:
            client.answer(task_id, WORDS, question_id=question_id)
        assert caught.value.next_step
    for answer in ("", "  ", "a\0b", "x" * 5000):
        with pytest.raises(InvalidRequest):
            client.answer(asked.task_id, answer, question_id=asked.question.question_id)
    assert client.get(asked.task_id).status == status_pb2.TASK_STATUS_WAITING_INPUT
    done = client.wait(client.submit(WORDS).task_id, time_limit=WITHIN)
    with pytest.raises((NotFound, Conflict)):
        client.answer(done.task_id, "yes", question_id="q1")
    client.cancel(asked.task_id)


def test_cancelling_an_ended_task_changes_nothing(client: Client) -> None:
    done = client.wait(client.submit(WORDS).task_id, time_limit=WITHIN)
    for reason in ("too late", "too late", ""):
        assert client.cancel(done.task_id, reason) == done
    with pytest.raises(InvalidRequest):
        client.cancel(done.task_id, "x" * 2000)
    assert client.get(done.task_id) == done


def test_a_watch_from_past_the_end_ends_or_waits(server: Running, client: Client) -> None:
    done = client.wait(client.submit(WORDS).task_id, time_limit=WITHIN)
    for after in (done.last_sequence, done.last_sequence + 1, 2**63, 2**64 - 1):
        assert list(client.watch(done.task_id, after_sequence=after, time_limit=WITHIN)) == []
    asked = client.wait(client.submit("frobnicate the thing").task_id, time_limit=WITHIN)
    with pytest.raises(TimeLimitExceeded):
        list(client.watch(asked.task_id, after_sequence=2**60, time_limit=timedelta(milliseconds=200)))
    client.cancel(asked.task_id)


def test_deadlines_of_a_millisecond_lose_nothing(server: Running, client: Client) -> None:
    request_ids = [str(uuid.uuid4()) for _ in range(30)]
    with server.channel() as channel:
        stub = task_pb2_grpc.TaskServiceStub(channel)
        for request_id in request_ids:
            hurried = stub.SubmitTask.future(
                task_pb2.SubmitTaskRequest(request_id=request_id, text=WORDS), timeout=0.001
            )
            # Taken or not: either may be, and nothing else.
            assert hurried.code() in (grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED)
    # The caller does not know whether it was taken; asking again with the same name settles it, once.
    tasks = {client.submit(WORDS, request_id=request_id).task_id for request_id in request_ids}
    assert len(tasks) == len(request_ids)
    for task_id in tasks:
        assert task_status_name(client.wait(task_id, time_limit=WITHIN).status) == "succeeded"
    expired = client.submit(WORDS, time_limit=timedelta(milliseconds=1))
    ended = client.wait(expired.task_id, time_limit=WITHIN)
    assert task_status_name(ended.status) == "expired"
    assert ended.error.code
    assert ended.error.next_step


# Blobs


def test_an_attachment_that_was_never_uploaded_is_named(client: Client) -> None:
    ghost = blob_pb2.BlobRef(sha256="e" * 64, size_bytes=10, file_name="ghost.png")
    with pytest.raises(InvalidRequest, match="not stored") as caught:
        client.submit("check this invoice", attachments=[ghost])
    assert caught.value.field == "attachments[0].sha256"
    assert "Upload" in caught.value.next_step


def test_a_blob_with_another_hash_is_refused_and_gone(server: Running, client: Client) -> None:
    data = b"one thing"
    said = hashlib.sha256(b"another thing").hexdigest()
    blob = blob_pb2.BlobRef(sha256=said, size_bytes=len(data))
    with server.channel() as channel:
        stub = blob_pb2_grpc.BlobServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Upload(iter([blob_pb2.UploadRequest(blob=blob, data=data)]))
        assert caught.value.code() is grpc.StatusCode.DATA_LOSS
        assert _told(caught.value).reason == "HASH_MISMATCH"
        state = stub.Stat(blob_pb2.StatRequest(sha256=said))
        assert (state.committed_bytes, state.complete) == (0, False)


@pytest.mark.parametrize("name", ["~", "-rf", "$(id).png", "a" * 255, "名前.png", "a..b"])
def test_strange_names_stay_names(server: Running, client: Client, name: str) -> None:
    files = {path for path in server.data.parent.rglob("*") if "blobs" not in path.parts}
    blob = client.upload_bytes(uuid.uuid4().bytes, media_type="image/png", file_name=name)
    task = client.submit(WORDS, attachments=[blob])
    assert task_status_name(client.wait(task.task_id, time_limit=WITHIN).status) in ("succeeded", "waiting_input")
    assert client.submit(WORDS).task_id
    new = {path for path in server.data.parent.rglob("*") if "blobs" not in path.parts} - files
    assert all(path.parent.name in ("reports", "marks") for path in new), new


@pytest.mark.parametrize(
    "name",
    [
        "a\0.png",
        "a" * 256,
        "a" * 10_240,
        "../../etc/passwd",
        "/etc/passwd",
        "..\\x.png",
        "..",
        ".",
        "\u202egnp.exe",
    ],
)
def test_a_name_that_no_file_has_is_refused(client: Client, name: str) -> None:
    with pytest.raises(InvalidRequest):
        client.upload_bytes(b"data", media_type="image/png", file_name=name)


def test_an_empty_blob_is_told_to_be_empty(client: Client, tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    with pytest.raises(InvalidRequest, match="empty"):
        client.upload(tmp_path / "empty.png")


def test_an_upload_of_which_only_the_end_was_lost_is_finished(server: Running, client: Client) -> None:
    data = uuid.uuid4().bytes * 100
    blob = blob_pb2.BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    # All its bytes are there, as when the server was killed right before it gave the blob its name.
    (server.data / "blobs" / "partial" / partial_name(blob.sha256, "local")).write_bytes(data)
    assert client.upload_bytes(data, media_type="image/png").sha256 == blob.sha256
    assert b"".join(client.download(blob.sha256)) == data


# The disk


def test_a_full_event_log_is_told_and_what_was_accepted_finishes_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: dict[str, str] = {}
    refusals, told = 0, ("", False)
    with monkeypatch.context() as patch:
        from cloud.bus.embedded import EmbeddedBus

        whole = EmbeddedBus.open

        def small(path: Path, **options: Any) -> Any:
            return whole(path, max_pages=150, **options)

        patch.setattr(EmbeddedBus, "open", small)
        with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
            padding = " please" * 500
            for _ in range(300):
                request_id = str(uuid.uuid4())
                try:
                    accepted[request_id] = client.submit(WORDS + padding, request_id=request_id).task_id
                except StorageFull as error:
                    told = (error.code, bool(error.next_step))
                    refusals += 1
                    if refusals == 5:
                        break
            assert (refusals, told) == (5, ("STORAGE_FULL", True))
            assert accepted
            # It still answers: reads go on, and every accepted task is there.
            assert {task.task_id for task in client.list(page_size=500).tasks} == set(accepted.values())
            for task_id in accepted.values():
                assert client.get(task_id).task_id == task_id
    with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
        for request_id, task_id in accepted.items():
            assert client.submit(WORDS, request_id=request_id).task_id == task_id
            task = client.wait(task_id, time_limit=WITHIN)
            assert task_status_name(task.status) == "succeeded", task.error
        assert {task.task_id for task in client.list(page_size=500).tasks} == set(accepted.values())


def test_a_crowd_of_bad_and_good_requests_is_served_side_by_side(server: Running, client: Client) -> None:
    bad: list[PodiumError] = []
    good: list[str] = []

    def send(number: int) -> None:
        with Client(Address.of(server.address)) as own:
            try:
                if number % 2:
                    good.append(own.submit(WORDS, as_of=datetime(2026, 1, 5, tzinfo=UTC)).task_id)
                else:
                    own.submit("", request_id="x")
            except PodiumError as error:
                bad.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [error.code for error in bad] == ["INVALID_REQUEST"] * 10
    for task_id in good:
        assert task_status_name(client.wait(task_id, time_limit=WITHIN).status) == "succeeded"
    assert len(good) == 10
