"""Devices that lie, meddle or vanish: nobody else's task is touched, and every task ends in an honest state."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

import grpc
import pytest

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from podium.v1 import blob_pb2, edge_pb2, event_pb2, status_pb2
from tests.cases.pages import INVOICE, all_packs, reading_of_lines
from tests.integration.server import Running, serving
from tests.integration.test_server_devices import READING, Device

WITHIN = timedelta(seconds=60)
IBAN = "GB59WHAR20451863174402"


class JumpingClock(datetime):
    """`datetime` whose `now` is off by `offset`, as after a wrong clock was put right."""

    offset = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + cls.offset


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("devices")
    with pytest.MonkeyPatch.context() as patch, all_packs(folder / "packs") as packs:
        patch.setattr("tests.integration.server.datetime", JumpingClock)
        with serving(folder / "data", packs=packs) as running:
            yield running


@pytest.fixture(autouse=True)
def _right_time() -> Iterator[None]:
    yield
    JumpingClock.offset = timedelta(0)


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(Address.of(server.address)) as client:
        yield client
        after = client.submit("relay the words please").task_id
        assert task_status_name(client.wait(after, time_limit=WITHIN).status) == "succeeded"


def _observation(reading: Any = None, **fields: Any) -> edge_pb2.Observation:
    fields.setdefault("observation_id", str(uuid.uuid4()))
    fields.setdefault("kind", "document_reading")
    fields.setdefault("payload_json", json.dumps(READING if reading is None else reading).encode())
    return edge_pb2.Observation(**fields)


def _doubtful_reading() -> dict[str, Any]:
    """An invoice whose IBAN was misread in its last digit, so that the cloud asks its device to look again."""
    return reading_of_lines([line.format(number="HT-2026-118") for line in (*INVOICE, f"IBAN: {IBAN[:-1]}3")])


def _reread(request: edge_pb2.StepRequest) -> edge_pb2.StepResult:
    """What an honest device answers: at the place asked about it now reads the right IBAN."""
    line = _doubtful_reading()["pages"][0]["lines"][-1] | {"text": f"IBAN: {IBAN}", "confidence": 0.995}
    readings = [
        {
            "field": place["field"],
            "page": place["page"],
            "box": place["box"],
            "setting": "enlarged",
            "confidence": 0.995,
            "lines": [line],
        }
        for place in json.loads(request.input_json)["places"]
    ]
    source = {"id": "D1", "kind": "document", "label": "again", "location": "page 1", "sha256": "0" * 64}
    output = {"readings": readings, "confidence_score": 0.995, "sources": [source]}
    return edge_pb2.StepResult(
        task_id=request.task_id,
        step=request.step,
        attempt=request.attempt,
        output_json=json.dumps(output).encode(),
    )


def _until(client: Client, task_id: str, holds: Callable[[event_pb2.Event, int], bool]) -> event_pb2.Event:
    for response in client.watch(task_id, time_limit=WITHIN):
        if holds(response.event, response.status):
            return response.event
    raise AssertionError("it never came to hold")


def _events(client: Client, task_id: str) -> list[event_pb2.Event]:
    last = client.get(task_id).last_sequence
    events: list[event_pb2.Event] = []
    for response in client.watch(task_id, time_limit=WITHIN):
        events.append(response.event)
        if response.event.header.sequence >= last:
            break
    return events


def _failures(client: Client, task_id: str) -> list[str]:
    return [
        event.step_failed.error.code
        for event in _events(client, task_id)
        if event.WhichOneof("payload") == "step_failed"
    ]


# Payloads


def _page_with(**changes: Any) -> dict[str, Any]:
    return READING | {"pages": [READING["pages"][0] | changes]}


@pytest.mark.parametrize(
    "payload",
    [
        b"this is not JSON",
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{" * 10_000,
        json.dumps(_page_with(page="one")).encode(),
        json.dumps(_page_with(lines="none")).encode(),
        json.dumps(_page_with(lines=[{"text": "a", "quad": [1, 2], "confidence": 1}])).encode(),
        json.dumps(READING | {"pages": {"a": 1}}).encode(),
        json.dumps(_page_with()).replace('"width": 10', '"width": 1e999').encode(),
        json.dumps(_page_with()).replace('"sharpness": 200.0', '"sharpness": 1' + "0" * 400).encode(),
        json.dumps(_page_with()).replace('"sharpness": 200.0', '"sharpness": NaN').encode(),
        json.dumps(_page_with()).replace('"width": 10', '"width": 1' + "0" * 5000).encode(),
    ],
    ids=lambda payload: payload[:24].decode(),
)
def test_a_payload_that_is_no_reading_is_refused_and_the_next_one_taken(
    server: Running, client: Client, payload: bytes
) -> None:
    with Device(server, f"pi-{uuid.uuid4()}") as device:
        device.send(sequence=1, observation=_observation(payload_json=payload))
        refused = device.receive("observation_outcome")
        assert refused.ack_through == 1
        assert refused.observation_outcome.task_id == ""
        assert refused.observation_outcome.error.code == "INVALID_REQUEST"
        assert refused.observation_outcome.error.message
        assert refused.observation_outcome.error.next_step
        device.send(sequence=2, observation=_observation())
        assert device.receive("observation_outcome").observation_outcome.task_id


@pytest.mark.parametrize(
    "reading",
    [
        _page_with(width=10**30, height=10**30),
        _page_with(width=-5, height=0),
        _page_with(page=-1),
        _page_with(page=7),
        _page_with(lines=[{"text": "Total 5", "quad": [-1e300] * 8, "confidence": 0.5}]),
        _page_with(lines=[{"text": "Total 5", "quad": [0] * 8, "confidence": 55}]),
        _page_with(lines=[{"text": "x" * 100_000, "quad": [0, 0, 9, 0, 9, 9, 0, 9], "confidence": 0.5}]),
        _page_with(lines=[{"text": "", "quad": [0] * 8, "confidence": 0.0}] * 2500),
        READING | {"pages": []},
        READING | {"pages": READING["pages"] * 150},
        READING | {"sha256": "../../etc/passwd"},
    ],
    ids=lambda reading: json.dumps(reading["pages"])[:40],
)
def test_a_reading_that_cannot_be_is_no_end_of_the_server(
    server: Running, client: Client, reading: dict[str, Any]
) -> None:
    with Device(server, f"pi-{uuid.uuid4()}") as device:
        device.send(sequence=1, observation=_observation(reading))
        outcome = device.receive("observation_outcome").observation_outcome
        if not outcome.task_id:
            assert outcome.error.code == "INVALID_REQUEST"
            return
        task = client.wait(outcome.task_id, time_limit=WITHIN)
        assert task_status_name(task.status) in ("failed", "waiting_review", "succeeded")
        if task.status == status_pb2.TASK_STATUS_SUCCEEDED:
            answer = json.loads(task.result.fields_json)
            assert answer["needs_review"]
            assert all(field["value"] is None for field in answer["fields"].values())
        else:
            assert task.error.code
            assert task.error.message
            assert task.error.next_step


def test_a_message_too_large_for_the_link_ends_only_its_own_connection(server: Running, client: Client) -> None:
    with Device(server, "pi-large") as device:
        device.receive("welcome")
        device.send(sequence=1, observation=_observation(payload_json=b"x" * (5 * 2**20)))
        ended = device.ended()
        assert ended is not None
        assert ended.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with Device(server, "pi-large", session="s2") as device:
        device.send(sequence=1, observation=_observation())
        assert device.receive("observation_outcome").observation_outcome.task_id


@pytest.mark.parametrize(
    "blob",
    [
        blob_pb2.BlobRef(sha256="0" * 64, size_bytes=10),
        blob_pb2.BlobRef(sha256="../../../etc/passwd", size_bytes=10),
        blob_pb2.BlobRef(sha256="A" * 64, size_bytes=10),
        blob_pb2.BlobRef(),
    ],
    ids=["absent", "path", "capitals", "empty"],
)
def test_crops_that_were_never_uploaded_are_named(server: Running, client: Client, blob: blob_pb2.BlobRef) -> None:
    with Device(server, f"pi-{uuid.uuid4()}") as device:
        device.send(sequence=1, observation=_observation(blobs=[blob]))
        error = device.receive("observation_outcome").observation_outcome.error
        assert (error.code, bool(error.next_step)) == ("INVALID_REQUEST", True)


# Steps


def test_a_device_cannot_answer_for_another_nor_what_it_was_not_asked(server: Running, client: Client) -> None:
    with Device(server, "pi-own", capabilities=["page_reread"]) as own, Device(server, "pi-thief") as thief:
        own.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = own.receive("observation_outcome").observation_outcome.task_id
        step = own.receive("step_request").step_request

        # Another device answers with a better number of its own, then for a task that does not exist.
        forged = _reread(step)
        forged.output_json = forged.output_json.replace(IBAN.encode(), b"DE89370400440532013000")
        thief.send(sequence=1, step_result=forged)
        thief.send(sequence=2, step_result=edge_pb2.StepResult(task_id="nobody", step=0, output_json=b"{}"))
        assert thief.receive("ack").ack_through == 1
        assert thief.receive("ack").ack_through == 2

        # The right device answers another step, another attempt, and nothing at all.
        for sequence, changes in enumerate(({"step": step.step + 1}, {"attempt": step.attempt + 7}), start=2):
            wrong = _reread(step)
            for name, value in changes.items():
                setattr(wrong, name, value)
            own.send(sequence=sequence, step_result=wrong)
            assert own.receive("ack").ack_through == sequence
        assert client.get(task_id).status == status_pb2.TASK_STATUS_RUNNING
        assert _failures(client, task_id) == []

        own.send(sequence=4, step_result=_reread(step))
        assert own.receive("ack").ack_through == 4
        task = client.wait(task_id, time_limit=WITHIN)
        assert task_status_name(task.status) == "succeeded"
        assert _findings(task) == set()
        assert "DE89370400440532013000" not in str(_events(client, task_id))
        # An answer that comes again, or late, changes nothing.
        own.send(sequence=5, step_result=forged)
        assert own.receive("ack").ack_through == 5
        assert client.get(task_id) == task


@pytest.mark.parametrize(
    "output",
    [
        b"Sure, here is the reading.",
        b"",
        b"{}",
        b'{"readings": [], "confidence_score": NaN, "sources": []}',
        b"[" * 50_000,
        b'{"readings": "' + b"x" * 2_000_000 + b'", "confidence_score": 1, "sources": []}',
        b'{"readings": [], "confidence_score": 1, "sources": []}',
    ],
    ids=["prose", "empty", "bare", "nan", "deep", "huge", "unsourced"],
)
def test_a_broken_second_reading_is_refused_and_the_first_one_stands_for_review(
    server: Running, client: Client, output: bytes
) -> None:
    with Device(server, f"pi-{uuid.uuid4()}", capabilities=["page_reread"]) as device:
        device.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        for sequence in (2, 3):
            step = device.receive("step_request").step_request
            answer = edge_pb2.StepResult(
                task_id=step.task_id, step=step.step, attempt=step.attempt, output_json=output
            )
            device.send(sequence=sequence, step_result=answer)
        task = client.wait(task_id, time_limit=WITHIN)
    assert _failures(client, task_id)[:2] == ["OUTPUT_CONTRACT_BROKEN"] * 2
    _check_honest(task)


def _check_honest(task: Any) -> None:
    """Without a second reading the IBAN is still wrong and said to be, or a person has to settle the step."""
    if task.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
        assert task.error.code
        assert task.error.next_step
        return
    assert task_status_name(task.status) == "succeeded", task.error
    assert _findings(task) == {"iban_check_digits"}


def _findings(task: Any) -> set[str]:
    return {finding["code"] for finding in json.loads(task.result.fields_json)["findings"]}


def test_a_place_outside_the_document_changes_nothing(server: Running, client: Client) -> None:
    with Device(server, "pi-outside", capabilities=["page_reread"]) as device:
        device.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        step = device.receive("step_request").step_request
        answer = _reread(step)
        answer.output_json = answer.output_json.replace(b'"page": 1', b'"page": 99')
        device.send(sequence=2, step_result=answer)
        task = client.wait(task_id, time_limit=WITHIN)
    # The lie is told by its code, or passed over with the first reading standing; it never becomes a value.
    if task.status == status_pb2.TASK_STATUS_FAILED:
        assert task.error.code in ("INVALID_REQUEST", "INPUT_CONTRACT_BROKEN", "OUTPUT_CONTRACT_BROKEN")
        assert task.error.next_step
    else:
        _check_honest(task)


# Devices that vanish


def test_a_device_that_vanishes_in_a_step_is_waited_for_and_recovers_when_it_is_back(
    server: Running, client: Client
) -> None:
    with Device(server, "pi-away", capabilities=["page_reread"]) as device:
        device.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        device.receive("step_request")
    _until(client, task_id, lambda _, status: status == status_pb2.TASK_STATUS_WAITING_DEVICE)
    assert client.get(task_id).error.code in ("", "DEVICE_LOST")
    with Device(server, "pi-away", session="rebooted", capabilities=["page_reread"]) as device:
        step = device.receive("step_request").step_request
        assert step.task_id == task_id
        device.send(sequence=1, step_result=_reread(step))
        task = client.wait(task_id, time_limit=WITHIN)
    assert task_status_name(task.status) == "succeeded", task.error
    assert _findings(task) == set()


def test_a_device_that_stays_away_leaves_an_honest_answer(server: Running, client: Client) -> None:
    with Device(server, "pi-gone", capabilities=["page_reread"]) as device:
        device.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        device.receive("step_request")
    _until(client, task_id, lambda _, status: status == status_pb2.TASK_STATUS_WAITING_DEVICE)
    JumpingClock.offset = timedelta(minutes=31)
    task = client.wait(task_id, time_limit=WITHIN)
    _check_honest(task)
    assert set(_failures(client, task_id)) == {"DEVICE_LOST", "DEVICE_OFFLINE"}


def test_a_device_without_the_agent_is_told_apart_from_one_that_is_away(server: Running, client: Client) -> None:
    with Device(server, "pi-plain", capabilities=[]) as device:
        device.send(sequence=1, observation=_observation(_doubtful_reading()))
        task_id = device.receive("observation_outcome").observation_outcome.task_id
        task = client.wait(task_id, time_limit=WITHIN)
    assert "DEVICE_CANNOT" in _failures(client, task_id)
    _check_honest(task)


def test_a_device_that_comes_and_goes_all_the_time_makes_one_task(server: Running, client: Client) -> None:
    observation = _observation(_doubtful_reading())
    task_ids = set()
    for number in range(8):
        with Device(server, "pi-flap", session=f"boot-{number}", capabilities=["page_reread"]) as device:
            device.send(sequence=1, observation=observation)
            task_ids.add(device.receive("observation_outcome").observation_outcome.task_id)
    assert len(task_ids) == 1
    assert client.get(task_ids.pop()).status in (
        status_pb2.TASK_STATUS_WAITING_DEVICE,
        status_pb2.TASK_STATUS_RUNNING,
    )


# The clock


def test_a_clock_that_jumps_back_stops_no_task_and_turns_no_sequence_around(client: Client) -> None:
    JumpingClock.offset = timedelta(hours=2)
    early = client.submit("relay the words please").task_id
    _until(client, early, lambda event, _: event.WhichOneof("payload") == "step_started")
    JumpingClock.offset = timedelta(days=-400)
    late = client.submit("relay the words please").task_id
    waiting = client.wait(client.submit("frobnicate the thing").task_id, time_limit=WITHIN)
    assert task_status_name(waiting.status) == "waiting_input"
    for task_id in (early, late):
        assert task_status_name(client.wait(task_id, time_limit=WITHIN).status) == "succeeded"
        events = [response.event for response in client.watch(task_id, time_limit=WITHIN)]
        assert [event.header.sequence for event in events] == list(range(1, len(events) + 1))
        starts = [event.header.step for event in events if event.WhichOneof("payload") == "step_started"]
        assert len(starts) == len(set(starts))
    assert {early, late, waiting.task_id} <= {task.task_id for task in client.list(page_size=500).tasks}
    client.answer(waiting.task_id, "relay the words please")
    assert task_status_name(client.wait(waiting.task_id, time_limit=WITHIN).status) in (
        "succeeded",
        "waiting_input",
    )


def test_a_device_whose_clock_is_lost_is_not_believed(server: Running, client: Client) -> None:
    with Device(server, "pi-1970") as device:
        for sequence, seconds in enumerate((1, 2**33), start=1):
            observation = _observation()
            observation.observe_time.FromSeconds(seconds)
            device.send(sequence=sequence, observation=observation)
            outcome = device.receive("observation_outcome").observation_outcome
            if outcome.task_id:
                as_of = client.get(outcome.task_id).as_of.ToDatetime()
                assert abs(as_of - datetime.utcnow()) < timedelta(days=1)  # noqa: DTZ003 - protobuf's are naive
            else:
                assert (outcome.error.code, sequence) == ("INVALID_REQUEST", 2)
