"""Spans of what devices did, made of what they report: a small device has no SDK and reaches no collector.

Only the times are the device's. The name is ours, the trace is that of its own task, and a span ends at the latest
when word of it came, so a device with a wrong or a lying clock can misplace its own span and nothing else.
"""

import time
from datetime import timedelta

from google.protobuf.message import Message

from podium.errors import catalogue
from podium.telemetry import FinishedSpan, TraceContext, record, recording
from podium.v1 import edge_pb2

_LONGEST = timedelta(days=1)
_OLDEST = timedelta(days=366)


def record_work(
    name: str,
    work: edge_pb2.WorkTime,
    context: TraceContext,
    *,
    parent_span_id: str,
    device_id: str,
    agent: str = "",
    error_code: str = "",
) -> None:
    """Record a span of a device, if it told of one and its times can be.

    Args:
        name: what it did, in our words.
        work: when, in its words.
        context: the span's place.
        parent_span_id: '' for the first of a trace.
        device_id: whose work it was.
        agent: which agent of the device.
        error_code: what the device says went wrong.
    """
    if not recording() or not _sound(work):
        return
    now_ns = time.time_ns()
    length_ns = work.duration.ToNanoseconds()
    start_ns = work.start_time.ToNanoseconds()
    if not now_ns - _OLDEST // timedelta(microseconds=1) * 1000 <= start_ns <= now_ns - length_ns:
        start_ns = now_ns - length_ns
    attributes = {"podium.device.id": device_id} | ({"podium.agent": agent} if agent else {})
    record(
        FinishedSpan(
            name=name,
            kind="internal",
            context=context,
            parent_span_id=parent_span_id,
            start_ns=start_ns,
            end_ns=start_ns + length_ns,
            attributes=attributes,
            error_code=error_code if not error_code or error_code in catalogue() else "OTHER",
            device_id=device_id,
        )
    )


def _sound(work: edge_pb2.WorkTime) -> bool:
    try:
        length = work.duration.ToTimedelta()
        work.start_time.ToDatetime()
    except (ValueError, OverflowError):
        return False
    return timedelta(0) <= length <= _LONGEST and _is_set(work)


def _is_set(work: Message) -> bool:
    return work.HasField("start_time") and work.HasField("duration")
