"""Places in a trace, spans and what may be said in them."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from podium.errors import InvalidRequest
from podium.telemetry import (
    FinishedSpan,
    TraceContext,
    current,
    current_task,
    new_trace,
    of_metadata,
    on_task,
    parsed,
    place_of_task,
    record,
    record_spans_with,
    span,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def recorded() -> Iterator[list[FinishedSpan]]:
    spans: list[FinishedSpan] = []
    record_spans_with(spans.append)
    yield spans
    record_spans_with(None)


def test_a_traceparent_is_read_and_written_again() -> None:
    place = parsed(f"00-{TRACE}-{SPAN}-01")
    assert place == TraceContext(TRACE, SPAN)
    assert place.traceparent == f"00-{TRACE}-{SPAN}-01"


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert parsed(f"cc-{TRACE}-{SPAN}-01-what the future holds".replace(" ", "_")) == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "00",
        None,
        7,
        b"00-" + TRACE.encode(),
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{'٣' * 32}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 100_000,
    ],
)
def test_what_is_no_traceparent_is_taken_as_none(hostile: object) -> None:
    assert parsed(hostile) is None


def test_two_traceparents_are_none() -> None:
    entry = ("traceparent", f"00-{TRACE}-{SPAN}-01")
    assert of_metadata([entry]) == TraceContext(TRACE, SPAN)
    assert of_metadata([entry, entry]) is None
    assert of_metadata(None) is None


def test_spans_nest_and_end_where_they_began(recorded: list[FinishedSpan]) -> None:
    assert current() is None
    with span("outer", kind="server", parent=TraceContext(TRACE, SPAN)) as outer, span("inner"):
        assert current() != outer.context
    assert current() is None
    inner, first = recorded
    assert (first.name, first.parent_span_id, first.kind) == ("outer", SPAN, "server")
    assert (inner.context.trace_id, inner.parent_span_id) == (TRACE, first.context.span_id)
    assert first.start_ns <= inner.start_ns <= inner.end_ns <= first.end_ns


def test_without_anybody_who_records_the_place_above_is_passed_on() -> None:
    above = TraceContext(TRACE, SPAN)
    with span("work", parent=above) as work:
        assert work.context == above == current()
    with span("work", parent=above, always=True) as work:
        assert work.context.trace_id == TRACE
        assert work.context.span_id != SPAN


def test_an_error_is_noted_with_its_code_and_never_with_what_it_says(recorded: list[FinishedSpan]) -> None:
    with pytest.raises(InvalidRequest), span("work"):
        raise InvalidRequest("Erika Mustermann")
    with pytest.raises(KeyError), span("work"):
        raise KeyError("Erika Mustermann")
    assert [one.error_code for one in recorded] == ["INVALID_REQUEST", "KeyError"]
    assert "Erika" not in str(recorded)


def test_attributes_that_are_not_listed_or_not_of_their_form_are_left_out(recorded: list[FinishedSpan]) -> None:
    with span("work", attributes={"podium.agent": "coder", "podium.step": 3}) as work:
        work.set("podium.agent.version", "Erika Mustermann")
        work.set("request", "anything")
        work.set("podium.planner", "rules\nErika")
        work.set("podium.steps", "many")
        work.set("podium.step.attempt", True)
        work.failed("what Erika said")
    record(
        FinishedSpan(
            name="device.read",
            kind="internal",
            context=new_trace(),
            parent_span_id="",
            start_ns=0,
            end_ns=1,
            attributes={"podium.device.id": "Erika Mustermann", "text": "x"},
            device_id="Erika Mustermann",
            error_code="Erika Mustermann",
        )
    )
    assert recorded[0].attributes == {"podium.agent": "coder", "podium.step": 3}
    assert recorded[0].error_code == "OTHER"
    assert recorded[1].attributes == {}
    assert "Erika" not in str(recorded)


def test_the_span_of_a_task_is_where_any_process_finds_it() -> None:
    place = place_of_task("a-task", TRACE)
    assert place is not None
    assert place == place_of_task("a-task", TRACE) != place_of_task("b-task", TRACE)
    assert place_of_task("a-task", "no trace id") is None
    with on_task("a-task", TRACE):
        assert (current(), current_task()) == (place, "a-task")
    assert (current(), current_task()) == (None, "")


def test_a_device_needs_no_sdk() -> None:
    unwanted = "{'opentelemetry', 'prometheus_client'} & {*sys.modules}"
    code = f"import edge.device, sys; sys.exit(str({unwanted}) if {unwanted} else 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
