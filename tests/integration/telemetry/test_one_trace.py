"""One trace over three real processes: a device, the server and an agent host."""

from pathlib import Path

from podium.v1 import status_pb2
from tests.integration.telemetry.collector import Seen, collecting
from tests.integration.telemetry.ground import device, host, server


def _one(spans: list[Seen], service: str, name: str, **attributes: object) -> Seen:
    found = [
        span
        for span in spans
        if (span.service, span.name) == (service, name) and attributes.items() <= span.attributes.items()
    ]
    assert len(found) == 1, (service, name, found)
    return found[0]


def test_one_trace_spans_device_cloud_and_remote_agent(tmp_path: Path) -> None:
    file = tmp_path / "page.png"
    file.write_bytes(b"recorded")
    with (
        collecting() as collector,
        host(tmp_path, "--otlp", collector.address) as address,
        server(tmp_path, address, otlp_endpoint=collector.address, otlp_insecure="true") as cloud,
    ):
        answer = device(tmp_path, cloud.target, "pi-1", file)
        assert answer["status"] == status_pb2.TASK_STATUS_SUCCEEDED
        spans = collector.until(
            lambda seen: (
                any(span.name == "podium.task" for span in seen)
                and any(span.service == "podium-agent-host" for span in seen)
            )
        )
    spans = [span for span in spans if span.trace_id == answer["trace_id"]]

    read = _one(spans, "podium-device", "device.read")
    observation = _one(spans, "podium-server", "podium.observation")
    task = _one(spans, "podium-server", "podium.task")
    reread = _one(spans, "podium-server", "podium.step", **{"podium.agent": "page_reread"})
    to_device = _one(spans, "podium-server", "podium.agent.call", **{"podium.engine": "device"})
    on_device = _one(spans, "podium-device", "device.step")
    count = _one(spans, "podium-server", "podium.step", **{"podium.agent": "remote_count"})
    to_host = _one(spans, "podium-server", "podium.agent.call", **{"podium.engine": "grpc"})
    on_host = _one(spans, "podium-agent-host", "podium.agent")
    plan = _one(spans, "podium-server", "podium.plan")
    told = _one(spans, "podium-server", "podium.step", **{"podium.agent": "relay_tell"})

    parents = {
        read: "",
        observation: read.span_id,
        task: observation.span_id,
        plan: task.span_id,
        reread: task.span_id,
        to_device: reread.span_id,
        on_device: to_device.span_id,
        count: task.span_id,
        to_host: count.span_id,
        on_host: to_host.span_id,
        told: task.span_id,
    }
    assert {(span.service, span.name): span.parent for span in parents} == {
        (span.service, span.name): parent for span, parent in parents.items()
    }
    assert len({span.span_id for span in spans}) == len(spans)
    for inner, outer in ((on_host, to_host), (on_device, to_device), (to_host, count), (count, task)):
        assert outer.start_ns - 5_000_000 <= inner.start_ns <= inner.end_ns <= outer.end_ns + 5_000_000
    assert read.end_ns - read.start_ns >= 50_000_000
