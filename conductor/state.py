"""A task's state: the pure fold over its events.

`apply` takes a state and the next event and returns the new state; nothing else changes a task. Payloads written
by a newer Podium are skipped (their sequence number counts), so an old log and a newer writer both still fold.
"""

from collections.abc import Iterable, Mapping

from conductor import step_transitions as on_step
from conductor import task_transitions as on_task
from conductor.progress import ENDED, FINISHED, Changes, TaskState
from conductor.step_transitions import moment
from conductor.task_transitions import Handler
from podium.errors import DataCorrupt
from podium.v1 import event_pb2, status_pb2

__all__ = ["ENDED", "TaskState", "apply", "fold", "moment"]


def fold(events: Iterable[event_pb2.Event], state: TaskState | None = None) -> TaskState:
    """The state after a sequence of events.

    Raises:
        DataCorrupt: the events are not in order or contradict each other.
    """
    state = state or TaskState()
    for event in events:
        state = apply(state, event)
    return state


def apply(state: TaskState, event: event_pb2.Event) -> TaskState:
    """The state after the next event.

    Raises:
        DataCorrupt: the event is not the next one, or names a step or plan that there is not.
    """
    header = event.header
    if header.sequence != state.last_sequence + 1:
        raise DataCorrupt(
            f"event {header.sequence} of task {header.task_id} follows event {state.last_sequence}: "
            "the log has a gap, a repetition or a wrong order"
        )
    now = moment(header.time)
    kind = event.WhichOneof("payload")
    handler = _HANDLERS.get(kind or "")
    changes: Changes = {}
    if handler is not None:
        if (state.task_id == "") != (kind == "task_accepted"):
            raise DataCorrupt(f"event {header.sequence} ({kind}) does not fit the beginning of a task's log")
        changes = handler(state, event, now)
    state = state.changed(**changes, last_sequence=header.sequence, update_time=now)
    if handler is not None and not state.ended and (status := _status(state)) != state.status:
        state = state.changed(status=status)
    return state


def _status(state: TaskState) -> status_pb2.TaskStatus.ValueType:
    """Where a task that has not ended stands: it waits only when nothing else can go on."""
    if state.request is None and state.plan is None and state.question is None and not state.reviews:
        return status_pb2.TASK_STATUS_ACCEPTED
    if state.question is not None:
        return status_pb2.TASK_STATUS_WAITING_INPUT
    if state.rejection:
        return status_pb2.TASK_STATUS_RUNNING
    whole_task = any(review.step is None for review in state.reviews)
    waiting = [step for step in state.steps if step.status == status_pb2.STEP_STATUS_WAITING]
    if not whole_task and (not waiting or state.replan_reason or _something_can_run(state)):
        return status_pb2.TASK_STATUS_RUNNING
    if state.reviews:
        return status_pb2.TASK_STATUS_WAITING_REVIEW
    return status_pb2.TASK_STATUS_WAITING_DEVICE


def _something_can_run(state: TaskState) -> bool:
    if state.plan is None:
        return True
    done = {step.index for step in state.steps if step.status in FINISHED}
    return any(
        step.status == status_pb2.STEP_STATUS_RUNNING
        or (
            step.status == status_pb2.STEP_STATUS_PENDING
            and done.issuperset(state.plan.steps[step.index].depends_on)
        )
        for step in state.steps
    )


_HANDLERS: Mapping[str, Handler] = {
    "task_accepted": on_task.accepted,
    "request_normalized": on_task.normalized,
    "plan_adopted": on_task.adopted,
    "plan_refused": on_task.refused,
    "step_started": on_step.started,
    "step_succeeded": on_step.succeeded,
    "step_failed": on_step.failed,
    "step_skipped": on_step.skipped,
    "device_awaited": on_step.device_awaited,
    "device_returned": on_step.device_returned,
    "question_asked": on_task.asked,
    "input_provided": on_task.answered,
    "review_requested": on_step.review_requested,
    "review_resolved": on_step.review_resolved,
    "reward_computed": on_task.rewarded,
    "task_succeeded": on_task.ended(status_pb2.TASK_STATUS_SUCCEEDED),
    "task_failed": on_task.ended(status_pb2.TASK_STATUS_FAILED),
    "task_cancelled": on_task.ended(status_pb2.TASK_STATUS_CANCELLED),
    "task_expired": on_task.ended(status_pb2.TASK_STATUS_EXPIRED),
}
