"""What is counted, and that its labels stay few."""

import re
from datetime import timedelta
from pathlib import Path

from cloud.telemetry.metrics import AGENTS_AT_MOST, Metrics
from cloud.telemetry.now import Now

DOCS = Path(__file__).parents[4] / "docs" / "telemetry.md"


def _metrics() -> Metrics:
    return Metrics(lambda name: name.startswith("agent"), process=False)


def test_a_page_holds_what_was_counted_and_what_is_now() -> None:
    metrics = _metrics()
    metrics.task_accepted("device")
    metrics.task_ended("succeeded", 0.2)
    metrics.step_ended("agent_a", "failed", "AGENT_TIMEOUT", 2)
    metrics.recovered("retry")
    metrics.call_began("EdgeService/Connect", streams=True)
    now = Now(queue_depth=3, queue_age=timedelta(seconds=7), devices_online=2, blob_bytes=10, spans_dropped=4)
    metrics.page(now)
    page = metrics.page(now).decode()
    for line in (
        'podium_tasks_accepted_total{origin="device"} 1.0',
        'podium_tasks_ended_total{status="succeeded"} 1.0',
        'podium_steps_total{agent="agent_a",code="AGENT_TIMEOUT",outcome="failed"} 1.0',
        'podium_step_recoveries_total{recovery="retry"} 1.0',
        'podium_streams_open{method="EdgeService/Connect"} 1.0',
        "podium_queue_tasks 3.0",
        "podium_queue_oldest_seconds 7.0",
        'podium_spans_total{outcome="dropped"} 4.0',
    ):
        assert line in page.splitlines()


def test_labels_take_no_text_of_callers_and_stay_few() -> None:
    metrics = _metrics()
    for number in range(AGENTS_AT_MOST + 500):
        metrics.step_ended(f"agent_{number}", "failed", f"MADE_UP_{number}", 1)
    metrics.step_ended("Erika Mustermann", "failed", "Erika", 1)
    metrics.planned("Erika", "adopted")
    page = metrics.page(Now()).decode()
    assert "Erika" not in page
    assert len(re.findall(r"^podium_steps_total\{", page, re.M)) == AGENTS_AT_MOST + 1


def test_the_table_in_the_docs_names_every_metric() -> None:
    rows = re.findall(r"^\| `(podium_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", DOCS.read_text(), re.M)
    documented = {name: (kind, labels.strip(), meaning.strip()) for name, kind, labels, meaning in rows}
    known = _metrics().described().items()
    assert documented == {name: (kind, ", ".join(labels), text) for name, (kind, text, labels) in known}
