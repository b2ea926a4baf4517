"""Traces and logs that every process of Podium shares; nothing here needs an SDK, except `otlp`."""

from podium.telemetry.spans import (
    FinishedSpan,
    Span,
    current,
    current_task,
    named,
    outgoing,
    record,
    record_spans_with,
    recording,
    span,
)
from podium.telemetry.tasks import on_task, place_of_task
from podium.telemetry.trace_context import TRACEPARENT, TraceContext, new_trace, of_metadata, parsed

__all__ = [
    "TRACEPARENT",
    "FinishedSpan",
    "Span",
    "TraceContext",
    "current",
    "current_task",
    "named",
    "new_trace",
    "of_metadata",
    "on_task",
    "outgoing",
    "parsed",
    "place_of_task",
    "record",
    "record_spans_with",
    "recording",
    "span",
]
