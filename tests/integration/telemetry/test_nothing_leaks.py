"""A planted card number and a planted name appear in no log, trace or metric, whatever becomes of tasks."""

import json
import re
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest

from cloud.commands.task import events_of
from podium.client import Client
from podium.link import channel_options
from podium.status import ENDED
from podium.v1 import edge_pb2, edge_pb2_grpc, status_pb2, task_pb2, task_pb2_grpc
from tests.integration.server import ServerProcess
from tests.integration.telemetry.collector import Collector, collecting
from tests.integration.telemetry.ground import CARD, FOREIGN, PERSON, device, host, server
from tests.integration.telemetry.recorded_device import reading_of

PLANTED = (CARD, CARD.replace(" ", ""), CARD.replace(" ", "-"), "4111", "1111111", *PERSON.split())
TEXT = f"{{}} of {PERSON} {CARD}"


def _submit(client: Client, channel: grpc.Channel, word: str, *, seconds: float = 60) -> task_pb2.Task:
    request = task_pb2.SubmitTaskRequest(
        request_id=str(uuid.uuid4()), text=TEXT.format(word), labels={"customer": PERSON, PERSON: CARD}
    )
    request.time_limit.FromTimedelta(timedelta(seconds=seconds))
    return task_pb2_grpc.TaskServiceStub(channel).SubmitTask(request).task


def _ended(client: Client, task_id: str) -> task_pb2.Task:
    ends = time.monotonic() + 40
    while (task := client.get(task_id)).status not in ENDED:
        if task.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
            client.resolve_review(task_id, verdict=status_pb2.REVIEW_VERDICT_REJECTED, note=f"{PERSON} {CARD}")
        assert time.monotonic() < ends, task
        time.sleep(0.05)
    return task


def _running(client: Client, task_id: str) -> None:
    """Until a step of it runs."""
    for response in client.watch(task_id):
        if response.event.WhichOneof("payload") == "step_started":
            return
    raise AssertionError("nothing ran")


@contextmanager
def _talkative() -> Iterator[str]:
    """Agents elsewhere, of every protocol, that say what is personal in cards, errors and headers."""
    said = f"{PERSON} {CARD}"
    cards = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            nonlocal cards
            cards += 1
            url = f"http://127.0.0.1:{server.server_address[1]}/rpc"
            self._answer(
                200,
                {
                    "name": said,
                    "version": f"{CARD}.{cards}",
                    "description": said,
                    "capabilities": {"streaming": False},
                    "skills": [{"id": "lookup", "name": said, "description": said, "tags": [said]}],
                    "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                },
            )

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.startswith("/v1"):
                self._answer(400, {"error": {"message": said, "type": said, "code": CARD}})
                return
            error = {"code": -32000, "message": said, "data": {"detail": said}}
            self._answer(200, {"jsonrpc": "2.0", "id": asked.get("id"), "error": error})

        def _answer(self, status: int, body: dict[str, object]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status, said)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.send_header("X-Who", said)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Not on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _misuse(channel: grpc.Channel) -> None:
    """Calls and observations that are refused, each with what is personal in another place."""
    tasks = task_pb2_grpc.TaskServiceStub(channel)
    for refused in (
        task_pb2.SubmitTaskRequest(request_id=f"{PERSON} {CARD}", text="x"),
        task_pb2.SubmitTaskRequest(request_id=str(uuid.uuid4()), text="relay", labels={CARD * 20: PERSON}),
        task_pb2.SubmitTaskRequest(request_id=str(uuid.uuid4()), text=PERSON * 5000),
    ):
        with pytest.raises(grpc.RpcError):
            tasks.SubmitTask(refused)
    with pytest.raises(grpc.RpcError):
        tasks.GetTask(task_pb2.GetTaskRequest(task_id=PERSON), metadata=(("traceparent", f"00-{PERSON}"),))
    kinds: list[dict[str, object]] = [
        {"kind": f"{PERSON} {CARD}", "payload_json": b"{}"},
        {"kind": "document_reading", "payload_json": f'"{PERSON} {CARD}"'.encode()},
        {"kind": "document_reading", "payload_json": json.dumps(reading_of(PERSON) | {PERSON: CARD}).encode()},
    ]
    for name in (f"{PERSON} {CARD}", f"{PERSON} " * 20, "pi-planted"):
        messages = [edge_pb2.ConnectRequest(hello=edge_pb2.Hello(device_id=name, session_id="s"))]
        for number, fields in enumerate(kinds, 1):
            observation = edge_pb2.Observation(observation_id=str(uuid.uuid4()), traceparent=PERSON, **fields)
            messages.append(edge_pb2.ConnectRequest(sequence=number, observation=observation))
        call = edge_pb2_grpc.EdgeServiceStub(channel).Connect(iter(messages))
        try:
            told = [one.observation_outcome.error.code for one in call if one.HasField("observation_outcome")]
            assert told == ["INVALID_REQUEST", "INVALID_REQUEST", ""]
        except grpc.RpcError:
            assert len(name) > 100, "the name alone is a reason to refuse"


@contextmanager
def _cloud(
    folder: Path, collector: Collector, address: str, foreign: str = "http://127.0.0.1:1"
) -> Iterator[ServerProcess]:
    with server(
        folder,
        address,
        foreign=foreign,
        otlp_endpoint=collector.address,
        otlp_insecure="true",
        traces_file=str(folder / "traces.jsonl"),
        metrics_listen="127.0.0.1:0",
        log_level="debug",
        grace_seconds="1",
    ) as running:
        yield running


def _metrics(log: str) -> str:
    """The metrics page of the server whose log this is."""
    address = re.findall(r"metrics are served on ([0-9.:]+)", log)[-1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        return str(page.read().decode())


@pytest.mark.slow
def test_what_is_planted_leaves_in_no_log_trace_or_metric(tmp_path: Path) -> None:
    person_file = tmp_path / f"{PERSON} {CARD}.png"
    person_file.write_bytes(b"recorded")
    refused_file = tmp_path / f"refuse {PERSON} {CARD}.png"
    refused_file.write_bytes(b"recorded")
    outcomes: dict[str, int] = {}
    codes: set[str] = set()
    quoted: dict[str, bool] = {}
    with (
        collecting() as collector,
        host(tmp_path, "--otlp", collector.address, "--traces-file", str(tmp_path / "host.jsonl")) as address,
    ):
        with (
            _talkative() as foreign,
            _cloud(tmp_path, collector, address, foreign) as cloud,
            Client(cloud.address) as client,
            grpc.insecure_channel(cloud.target, options=channel_options()) as channel,
        ):
            assert device(tmp_path, cloud.target, "pi-1", person_file)["status"] == 6
            device(tmp_path, cloud.target, "pi-2", person_file, "fail")
            device(tmp_path, cloud.target, "pi-3", refused_file)
            tasks = {word: _submit(client, channel, word).task_id for word in ("relay", "stumble", "babble")}
            tasks["cancelled"] = _submit(client, channel, "stumble linger").task_id
            _running(client, tasks["cancelled"])
            client.cancel(tasks["cancelled"], reason=f"{PERSON} {CARD}")
            tasks["expired"] = _submit(client, channel, "stumble linger", seconds=1).task_id
            for word, task_id in tasks.items():
                outcomes[word] = _ended(client, task_id).status
            for word in (*FOREIGN, *FOREIGN):  # again, so that a card is seen to have changed
                task_id = _submit(client, channel, f"elsewhere{word}").task_id
                assert _ended(client, task_id).status == status_pb2.TASK_STATUS_FAILED
                failed = [
                    one.step_failed.error for one in events_of(client, task_id) if one.HasField("step_failed")
                ]
                quoted[word] = any(PERSON in f"{error.message} {list(error.evidence)}" for error in failed)
            _misuse(channel)
            for task in client.list(page_size=100).tasks:
                events = events_of(client, task.task_id)
                codes |= {one.step_failed.error.code for one in events if one.HasField("step_failed")}
                assert any(PERSON in str(event) for event in events), "the log of events is where it belongs"
            pages = [_metrics(cloud.log())]
            crashed = _submit(client, channel, "stumble linger").task_id
            _running(client, crashed)
            cloud.kill()
        with _cloud(tmp_path, collector, address) as cloud, Client(cloud.address) as client:
            _ended(client, crashed)
            pages.append(_metrics(cloud.log()))
            trace_of_crashed = client.get(crashed).trace_id
            collector.until(lambda spans: any(s.attributes.get("podium.task.id") == crashed for s in spans))

    assert outcomes == {
        "relay": status_pb2.TASK_STATUS_SUCCEEDED,
        "stumble": status_pb2.TASK_STATUS_FAILED,
        "babble": status_pb2.TASK_STATUS_FAILED,
        "cancelled": status_pb2.TASK_STATUS_CANCELLED,
        "expired": status_pb2.TASK_STATUS_EXPIRED,
    }
    assert "AGENT_CRASHED" in codes
    assert all(quoted.values()), f"what agents elsewhere said came as far as the log of events: {quoted}"
    places = {
        "collector": b"".join(collector.received).decode("latin-1"),
        "metrics": "".join(pages),
        **{name: (tmp_path / name).read_text() for name in ("server.log", "host.log", "device.log")},
        **{name: (tmp_path / name).read_text() for name in ("traces.jsonl", "host.jsonl")},
    }
    found = {
        (place, planted): text[max(0, text.find(planted) - 200) :][:400]
        for place, text in places.items()
        for planted in PLANTED
        if _leaks(text, planted)
    }
    assert not found
    # That they say nothing of what was planted is not because they say nothing.
    assert {"device.read", "podium.agent", "podium.task", "podium.step"} <= {s.name for s in collector.spans}
    assert places["metrics"].count("podium_steps_total{") >= 5
    assert 'podium_tasks_ended_total{status="cancelled"} 1.0' in places["metrics"]
    roots = [
        s for s in collector.spans if s.attributes.get("podium.task.id") == crashed and s.name == "podium.task"
    ]
    assert [root.trace_id for root in roots] == [trace_of_crashed], "killed in between, and still one trace"
    assert any(
        line.get("task_id") and line.get("trace_id") for line in map(json.loads, _lines(places["server.log"]))
    )


def _lines(log: str) -> list[str]:
    return [line for line in log.splitlines() if line.startswith("{")]


def _leaks(text: str, planted: str) -> bool:
    if planted.isdecimal() and len(planted) < 13:
        # By chance within ids and times; on its own it would be a part of the card's number.
        return re.search(rf"(?<![0-9A-Za-z.]){planted}(?![0-9A-Za-z])", text) is not None
    return planted in text
