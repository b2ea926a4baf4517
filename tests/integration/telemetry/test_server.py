"""What a server tells of its calls and tasks, and what becomes of a caller's trace."""

import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest

from cloud.commands.task import events_of
from podium.client import Client
from podium.link import Address
from podium.status import ENDED
from podium.telemetry import TraceContext, span
from podium.v1 import task_pb2, task_pb2_grpc
from tests.integration.server import Running, serving
from tests.integration.telemetry.collector import collecting

ABOVE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


def _finished(client: Client, task: task_pb2.Task) -> task_pb2.Task:
    return client.wait(task.task_id)


def _spans(file: Path, trace_id: str, *, until: str) -> list[dict[str, Any]]:
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        entries = [json.loads(line) for line in file.read_text().splitlines()]
        found = [entry for entry in entries if entry["trace_id"] == trace_id]
        if any(entry["name"] == until for entry in found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {until} in {file.read_text()}")


def _page(server: Running, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{server.app.metrics_address}{path}", timeout=10) as page:
        return str(page.read().decode())


def test_a_callers_trace_goes_on_in_the_task(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with (
        serving(tmp_path / "data", traces_file=file, metrics_listen="127.0.0.1:0") as server,
        Client(Address.of(server.address)) as client,
    ):
        with span("a caller", parent=ABOVE):
            task = client.submit("relay the words please")
        assert _finished(client, task).status in ENDED
        assert task.trace_id == ABOVE.trace_id
        events = events_of(client, task.task_id)
        assert {event.header.trace_id for event in events} == {ABOVE.trace_id}
        spans = {entry["name"]: entry for entry in _spans(file, ABOVE.trace_id, until="podium.task")}
        submit = spans["TaskService/SubmitTask"]
        # Its span is recorded too: it runs in the server's process here.
        assert spans["a caller"]["parent_span_id"] == ABOVE.span_id
        assert submit["parent_span_id"] == spans["a caller"]["span_id"]
        assert submit["attributes"]["rpc.response.status_code"] == "OK"
        assert spans["podium.task"]["parent_span_id"] == submit["span_id"]
        assert spans["podium.verify"]["parent_span_id"] == spans["podium.plan"]["span_id"]
        assert spans["podium.step"]["parent_span_id"] == spans["podium.task"]["span_id"]
        page = _page(server)
        for line in (
            'podium_rpcs_total{code="OK",method="TaskService/SubmitTask"} 1.0',
            'podium_tasks_accepted_total{origin="caller"} 1.0',
            'podium_tasks_ended_total{status="succeeded"} 1.0',
            'podium_steps_total{agent="relay_tell",code="",outcome="succeeded"} 1.0',
            'podium_plans_total{outcome="adopted",planner="rules"} 1.0',
            "podium_queue_tasks 0.0",
        ):
            assert line in page.splitlines()
        assert "process_resident_memory_bytes" in page
        with pytest.raises(urllib.error.HTTPError, match="404"):
            _page(server, "/")


@pytest.mark.parametrize("hostile", ["", "00-zz", f"00-{'0' * 32}-{'0' * 16}-01", "x" * 4000])
def test_a_traceparent_that_is_none_is_ignored(tmp_path: Path, hostile: str) -> None:
    with serving(tmp_path / "data") as server, server.channel() as channel:
        request = task_pb2.SubmitTaskRequest(request_id=str(uuid.uuid4()), text="relay")
        stub = task_pb2_grpc.TaskServiceStub(channel)
        task = stub.SubmitTask(request, metadata=(("traceparent", hostile),)).task
        assert len(task.trace_id) == 32
        assert set(task.trace_id) != {"0"}


def test_a_refused_call_is_a_span_with_its_code(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with serving(tmp_path / "data", traces_file=file) as server, server.channel() as channel:
        with pytest.raises(grpc.RpcError):
            task_pb2_grpc.TaskServiceStub(channel).GetTask(
                task_pb2.GetTaskRequest(task_id="nobody's"), metadata=(("traceparent", ABOVE.traceparent),)
            )
        (entry,) = _spans(file, ABOVE.trace_id, until="TaskService/GetTask")
    assert (entry["error"], entry["kind"]) == ("NOT_FOUND", "server")
    assert entry["attributes"]["rpc.response.status_code"] == "NOT_FOUND"


def test_a_collector_that_hangs_holds_neither_tasks_nor_the_stop_up(tmp_path: Path) -> None:
    with collecting(hanging=True) as collector:
        settings = {"otlp_endpoint": collector.address, "otlp_insecure": True, "metrics_listen": "127.0.0.1:0"}
        with serving(tmp_path / "data", **settings) as server, Client(Address.of(server.address)) as client:
            for _ in range(3):
                assert _finished(client, client.submit("relay the words please")).status in ENDED
            begun = time.monotonic()
        assert time.monotonic() - begun < 12
        assert not [thread for thread in threading.enumerate() if thread.name == "spans" and not thread.daemon]
