"""What each event about the task as a whole does to the state; called by `conductor.state` only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from conductor.document import JsonDocument
from conductor.plan import Plan
from conductor.progress import Changes, Clarification, StepProgress, TaskState
from conductor.step_transitions import moment
from podium.errors import DataCorrupt, TimeLimitExceeded
from podium.v1 import event_pb2, result_pb2, status_pb2

Handler = Callable[[TaskState, event_pb2.Event, datetime], Changes]
"""Given a state and the next event: the fields that change."""
ANSWERED = "the caller answered a question"
"""The reason to plan anew that does not count as a failure."""


def accepted(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The first event: the task exists."""
    payload = event.task_accepted
    return dict(
        task_id=event.header.task_id,
        trace_id=event.header.trace_id,
        request_id=payload.request_id,
        text=payload.text,
        as_of=moment(payload.as_of) if payload.HasField("as_of") else now,
        create_time=now,
        expire_time=moment(payload.expire_time) if payload.HasField("expire_time") else None,
        priority=payload.priority,
        labels=MappingProxyType(dict(payload.labels)),
        caller=payload.caller,
        caller_roles=frozenset(payload.caller_roles),
        tenant=payload.tenant,
        device_id=payload.device_id,
        payload_kind=payload.payload_kind,
        payload=JsonDocument(payload.payload_json) if payload.payload_json else None,
        attachments=tuple(payload.attachments),
    )


def normalized(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The request has its normal form."""
    return dict(request=JsonDocument(event.request_normalized.request_json), request_stale=False)


def adopted(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A new plan is in force; kept steps keep their name and all that is known of them."""
    payload = event.plan_adopted
    plan = Plan.from_proto(payload.plan)
    kept: dict[int, StepProgress] = {}
    for pair in payload.kept:
        if pair.old_index >= len(state.steps) or pair.new_index >= len(plan.steps):
            raise DataCorrupt(f"plan {payload.version} keeps step {pair.old_index}, which there is not")
        kept[pair.new_index] = state.steps[pair.old_index].changed(index=pair.new_index)
    moved = {pair.old_index: pair.new_index for pair in payload.kept}
    answered = state.planner == "" or state.request_stale or state.replan_reason == ANSWERED
    return dict(
        plan=plan,
        plan_version=payload.version,
        planner=payload.planner,
        origin=payload.origin,
        route=tuple(payload.route),
        person_plan=None,
        plan_reason=payload.reason,
        plan_warnings=tuple(payload.warnings),
        answer_step=payload.answer_step if payload.HasField("answer_step") else len(plan.steps) - 1,
        steps=tuple(
            kept.get(index) or StepProgress(uid=f"v{payload.version}s{index}", index=index, tool=step.tool)
            for index, step in enumerate(plan.steps)
        ),
        origins_used=state.origins_used | {f"{payload.planner}/{payload.origin}"},
        replans=0 if answered else state.replans + 1,
        replan_reason="",
        reviews=tuple(
            replace(review, step=moved[review.step])
            for review in state.reviews
            if review.step is not None and review.step in moved
        ),
    )


def refused(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A plan did not pass verification."""
    return dict(plans_refused=state.plans_refused + 1)


def asked(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The caller was asked."""
    return dict(question=event.question_asked.question)


def answered(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The caller answered: the request is to be normalised and planned anew."""
    payload, question = event.input_provided, state.question
    if question is None or question.question_id != payload.question_id:
        return {}  # an answer that came twice, or after the question was withdrawn
    note = Clarification(
        question_id=question.question_id,
        question=question.text,
        answer=payload.answer,
        about=tuple(question.about),
    )
    return dict(
        question=None,
        clarifications=(*state.clarifications, note),
        request_stale=True,
        replan_reason=ANSWERED,
    )


def rewarded(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The reward was computed."""
    return dict(reward=event.reward_computed.reward)


def ended(status: status_pb2.TaskStatus.ValueType) -> Handler:
    """The transition of an event that ends the task with `status`."""

    def handler(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
        if state.ended:
            raise DataCorrupt(f"event {event.header.sequence} ends task {state.task_id} a second time")
        changes: Changes = {"question": None, "reviews": (), "replan_reason": ""}
        if event.HasField("task_succeeded"):
            changes |= {"result": event.task_succeeded.result, "error": None}
        elif event.HasField("task_failed"):
            changes["error"] = event.task_failed.error
        elif event.HasField("task_cancelled"):
            message = event.task_cancelled.reason or "the caller cancelled the task"
            changes["error"] = result_pb2.ErrorDetail(
                code="CANCELLED", message=message, next_step="Hand the request in again if it is still wanted."
            )
        else:
            message = f"the time limit ran out while {event.task_expired.doing or 'the task waited'}"
            changes["error"] = result_pb2.ErrorDetail(
                code=TimeLimitExceeded.code, message=message, next_step=TimeLimitExceeded.advice
            )
        return {**changes, "status": status}

    return handler
