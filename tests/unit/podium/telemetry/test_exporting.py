"""Spans leave the process without ever holding it up."""

import json
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from podium.errors import InvalidRequest
from podium.telemetry import FinishedSpan, new_trace
from podium.telemetry.exporting import SpanExport, SpanFile
from podium.telemetry.otlp import OtlpCollector
from podium.telemetry.sending import sending_spans
from podium.telemetry.spans import recording, span
from tests.integration.telemetry.collector import collecting


def finished(name: str = "work") -> FinishedSpan:
    return FinishedSpan(
        name=name, kind="internal", context=new_trace(), parent_span_id="", start_ns=1, end_ns=2, attributes={}
    )


class Stuck:
    """A destination that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.entered = threading.Event()
        self.closed = False

    def write(self, spans: Sequence[FinishedSpan]) -> bool:
        self.entered.set()
        self.go.wait(30)
        return True

    def close(self) -> None:
        self.closed = True
        self.go.set()


def test_what_the_queue_has_no_room_for_is_dropped_and_counted() -> None:
    stuck = Stuck()
    export = SpanExport([stuck], queued_at_most=10)
    export.record(finished())
    assert stuck.entered.wait(10)
    begun = time.perf_counter()
    for _ in range(1000):
        export.record(finished())
    assert time.perf_counter() - begun < 1
    assert export.dropped == 990
    stuck.go.set()
    export.close()
    assert export.exported == 11


def test_a_destination_that_hangs_does_not_keep_the_process() -> None:
    stuck = Stuck()
    export = SpanExport([stuck], queued_at_most=2)
    for _ in range(5):
        export.record(finished())
    begun = time.perf_counter()
    export.close(within=timedelta(seconds=0.3))
    assert time.perf_counter() - begun < 3
    assert stuck.closed
    export.record(finished())
    assert export.dropped >= 1


def test_a_file_is_begun_anew_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "traces.jsonl"
    file = SpanFile(path, service="podium-test", largest_bytes=2000)
    for _ in range(20):
        assert file.write([finished()])
    assert path.stat().st_size <= 2000
    assert path.with_name("traces.jsonl.1").stat().st_size <= 2000
    assert len(list(path.parent.iterdir())) == 2
    entry = json.loads(path.read_text().splitlines()[0])
    assert (entry["name"], entry["service"], len(entry["trace_id"])) == ("work", "podium-test", 32)


def test_a_file_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidRequest, match="cannot be written"):
        SpanFile(tmp_path / "file" / "traces.jsonl", service="podium-test")


def _collector(address: str) -> OtlpCollector:
    return OtlpCollector(address, service="podium-test", version="1", instance="1", insecure=True)


def test_a_collector_that_is_away_costs_the_spans_and_nothing_else() -> None:
    export = SpanExport([_collector("127.0.0.1:1")])
    export.record(finished())
    begun = time.perf_counter()
    export.close(within=timedelta(seconds=1))
    assert time.perf_counter() - begun < 5


def test_a_collector_that_hangs_costs_the_spans_and_nothing_else() -> None:
    with collecting(hanging=True) as collector:
        export = SpanExport([_collector(collector.address)], queued_at_most=100)
        begun = time.perf_counter()
        for _ in range(1000):
            export.record(finished())
        assert time.perf_counter() - begun < 1
        export.close(within=timedelta(seconds=0.5))
        assert time.perf_counter() - begun < 6
        assert export.dropped >= 800


def test_spans_leave_the_machine_with_tls_only() -> None:
    with pytest.raises(InvalidRequest, match="only sent to it with TLS"):
        _collector("collector.example:4317")


def test_a_process_sends_its_spans_while_it_serves(tmp_path: Path) -> None:
    with collecting() as collector:
        with sending_spans("podium-test", version="1", instance="1", otlp=collector.address), span("work"):
            assert recording()
        assert not recording()
        assert [(one.service, one.name) for one in collector.spans] == [("podium-test", "work")]
    nowhere = sending_spans("podium-test", version="1", instance="1", otlp="nowhere")
    with pytest.raises(InvalidRequest, match="HOST:PORT"), nowhere:
        pass
