"""The span of a task: it outlives processes, so its place follows from the task and is never made anew."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from podium.telemetry.spans import working_on
from podium.telemetry.trace_context import TraceContext

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


def place_of_task(task_id: str, trace_id: str) -> TraceContext | None:
    """Where a task's span is: the same in every process that works on it, also after one was killed.

    Args:
        task_id: the task.
        trace_id: on each of its events; None comes of one that is no trace id.
    """
    if _TRACE_ID.fullmatch(trace_id) is None:
        return None
    return TraceContext(trace_id, hashlib.sha256(b"podium task " + task_id.encode()).hexdigest()[:16])


@contextmanager
def on_task(task_id: str, trace_id: str) -> Iterator[None]:
    """What is done inside belongs to a task: its spans are the task's children, its log lines name it."""
    with working_on(task_id, place_of_task(task_id, trace_id)):
        yield
