"""A task's state as callers see it."""

from datetime import datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from conductor.progress import StepProgress, TaskState
from podium.v1 import status_pb2, task_pb2


def task_view(state: TaskState) -> task_pb2.Task:
    """The `podium.v1.Task` of a state."""
    task = task_pb2.Task(
        task_id=state.task_id,
        request_id=state.request_id,
        status=state.status,
        text=state.text,
        plan_version=state.plan_version,
        steps=[_step(step) for step in state.steps],
        last_sequence=state.last_sequence,
        device_id=state.device_id,
        labels=dict(state.labels),
        caller=state.caller,
        trace_id=state.trace_id,
        planner=state.planner,
        route=state.route,
    )
    _set_time(task.as_of, state.as_of)
    _set_time(task.create_time, state.create_time)
    _set_time(task.update_time, state.update_time)
    if state.plan is not None:
        task.plan.CopyFrom(state.plan.to_proto())
    parts: tuple[tuple[Any, Any], ...] = (
        (task.question, state.question),
        (task.result, state.result),
        (task.error, state.error),
        (task.reward, state.reward),
    )
    for field, message in parts:
        if message is not None:
            field.CopyFrom(message)
    return task


def _step(step: StepProgress) -> task_pb2.StepState:
    message = task_pb2.StepState(
        index=step.index,
        agent=step.acting_agent,
        status=step.status,
        attempts=step.attempts,
        confidence=step.confidence,
        error=None if step.status == status_pb2.STEP_STATUS_SUCCEEDED else step.error,
    )
    _set_time(message.start_time, step.started_at)
    _set_time(message.end_time, step.ended_at)
    return message


def _set_time(field: Timestamp, moment: datetime | None) -> None:
    if moment is not None:
        field.FromDatetime(moment)
