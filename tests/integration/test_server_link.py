"""The transport: pings, TLS, calls that defects cut short."""

import time
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from podium.v1 import task_pb2, task_pb2_grpc
from tests.integration.server import Running, serving


def test_a_client_that_pings_on_a_quiet_stream_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.serving._PINGS_AT_MOST_EVERY_MS", 200)
    options = [
        ("grpc.keepalive_time_ms", 1_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with serving(tmp_path / "data") as server, grpc.insecure_channel(server.address, options=options) as channel:
        begun = time.monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            list(health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=4.5))
        # With gRPC's own limit of 300 s between pings the third one, after 3 s, ends the connection.
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - begun > 4


def test_a_defect_is_told_by_its_incident_only_and_logged_in_full(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:

    monkeypatch.setattr("cloud.services.task.task_view", lambda state: 1 // 0)
    with server.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        task_pb2_grpc.TaskServiceStub(channel).SubmitTask(
            task_pb2.SubmitTaskRequest(request_id="00000000-0000-4000-8000-00000000000a", text="relay the words")
        )
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "division" not in str(caught.value.details())
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    incident = str(caught.value.details()).rsplit(" ", 1)[-1]
    assert incident in info.metadata["next_step"]
    logged = next(record for record in caplog.records if incident in record.getMessage())
    assert logged.exc_info is not None
    assert logged.exc_info[0] is ZeroDivisionError


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with serving(tmp_path / "data", call_limit_seconds=0.000001) as server, server.channel() as channel:
        with pytest.raises(grpc.RpcError) as caught:
            task_pb2_grpc.TaskServiceStub(channel).GetTask(task_pb2.GetTaskRequest(task_id="x"))
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
