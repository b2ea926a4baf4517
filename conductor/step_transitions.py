"""What each event about a step does to the state; called by `conductor.state` only."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from agents.contract import HandoverBroken
from conductor.document import JsonDocument
from conductor.plan import Plan
from conductor.progress import Changes, FailureNote, OpenReview, ProposedPlan, StepProgress, TaskState
from podium.errors import CapabilityExpired, DataCorrupt
from podium.v1 import event_pb2, result_pb2, status_pb2


def moment(timestamp: Timestamp) -> datetime:
    """A protobuf timestamp as a datetime in UTC."""
    return datetime.fromtimestamp(timestamp.seconds, UTC).replace(microsecond=timestamp.nanos // 1_000)


def source_of(entry: Mapping[str, Any]) -> result_pb2.Source:
    """A source as outputs carry it, as it travels."""
    return result_pb2.Source(
        id=str(entry.get("id", "")),
        kind=str(entry.get("kind", "")),
        label=str(entry.get("label", "")),
        location=str(entry.get("location", "")),
        sha256=str(entry.get("sha256", "")),
    )


def _step(state: TaskState, event: event_pb2.Event) -> StepProgress:
    index = event.header.step
    if not event.header.HasField("step") or index >= len(state.steps):
        raise DataCorrupt(
            f"event {event.header.sequence} names step {index}, the plan in force has {len(state.steps)}"
        )
    return state.steps[index]


def _with_step(state: TaskState, step: StepProgress, **changes: Any) -> Changes:
    return {"steps": (*state.steps[: step.index], step, *state.steps[step.index + 1 :]), **changes}


def started(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """An agent was asked to do a step."""
    payload, step = event.step_started, _step(state, event)
    changed = payload.agent != step.agent
    return _with_step(
        state,
        step.changed(
            status=status_pb2.STEP_STATUS_RUNNING,
            agent=payload.agent,
            agent_version=payload.agent_version,
            attempts=payload.attempt,
            failures=0 if changed else step.failures,
            agents_tried=(*step.agents_tried, payload.agent) if changed else step.agents_tried,
            next_agent="",
            not_before=None,
            device_deadline=None,
            idempotency_key=payload.idempotency_key,
            input=JsonDocument(payload.input_json),
            started_at=now,
            ended_at=None,
        ),
    )


def succeeded(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A step's output passed every check."""
    payload, step = event.step_succeeded, _step(state, event)
    if step.finished:
        raise DataCorrupt(f"event {event.header.sequence} finishes step {step.uid} a second time")
    return _with_step(
        state,
        step.changed(
            status=status_pb2.STEP_STATUS_SUCCEEDED,
            agent=step.agent or step.tool,
            output=JsonDocument(payload.output_json),
            confidence=payload.confidence,
            sources=tuple(payload.sources),
            checks=tuple(payload.checks),
            repairs=tuple(payload.repairs),
            ended_at=now,
            useful=payload.duration.ToTimedelta(),
        ),
    )


_PENDING_AGAIN = frozenset({status_pb2.RECOVERY_RETRY, status_pb2.RECOVERY_FALLBACK})
_WAITING = frozenset({status_pb2.RECOVERY_REVIEW, status_pb2.RECOVERY_WAIT_DEVICE})
_NEW_PLAN = frozenset({status_pb2.RECOVERY_REPLAN, status_pb2.RECOVERY_ASK})


def failed(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """An attempt failed; the recovery says where the step stands now."""
    payload, step = event.step_failed, _step(state, event)
    recovery = payload.recovery
    status = status_pb2.STEP_STATUS_FAILED
    if recovery in _PENDING_AGAIN:
        status = status_pb2.STEP_STATUS_PENDING
    elif recovery in _WAITING:
        status = status_pb2.STEP_STATUS_WAITING
    # An agent that was to take over and could not even be called has been tried too.
    taking_over = (step.next_agent,) if step.next_agent and step.next_agent not in step.agents_tried else ()
    tried = (*(step.agents_tried or (step.tool,)), *taking_over)
    # The agent that was given an expired permission did nothing wrong: the new plan asks it again.
    blamed = recovery == status_pb2.RECOVERY_REPLAN and payload.error.code != CapabilityExpired.code
    note = FailureNote(
        uid=step.uid,
        agent=payload.error.agent or step.acting_agent,
        code=payload.error.code,
        recovery=recovery,
        duration=payload.duration.ToTimedelta(),
    )
    return _with_step(
        state,
        step.changed(
            status=status,
            agent=step.agent or step.tool,
            failures=step.failures + 1,
            agents_tried=tried,
            next_agent=payload.next_agent,
            not_before=_after(now, payload.delay.ToTimedelta()),
            error=payload.error,
            recovery=recovery,
            ended_at=now,
        ),
        failures=(*state.failures, note),
        avoid=state.avoid | _at_fault(payload.error, tried) if blamed else state.avoid,
        replan_reason=_reason(step, payload) if recovery in _NEW_PLAN else state.replan_reason,
    )


def _at_fault(error: result_pb2.ErrorDetail, tried: tuple[str, ...]) -> frozenset[str]:
    """Whom a new plan avoids: who tried the step, or who handed it what it must not be given."""
    if error.code == HandoverBroken.code and error.agent and error.agent not in tried:
        return frozenset({error.agent})
    return frozenset(tried)


def _after(now: datetime, delay: timedelta) -> datetime | None:
    return now + delay if delay else None


def _reason(step: StepProgress, payload: event_pb2.StepFailed) -> str:
    return f"step {step.index} ({step.agent or step.tool}) failed: {payload.error.code}: {payload.error.message}"


def skipped(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A step is left out."""
    step = _step(state, event).changed(
        status=status_pb2.STEP_STATUS_SKIPPED,
        skip_reason=event.step_skipped.reason,
        ended_at=now,
    )
    return _with_step(state, step)


def device_awaited(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A step waits for its device."""
    payload = event.device_awaited
    return _with_step(
        state,
        _step(state, event).changed(
            status=status_pb2.STEP_STATUS_WAITING,
            device_id=payload.device_id,
            device_deadline=moment(payload.deadline),
        ),
    )


def device_returned(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """The device is back; the step may start again."""
    step = _step(state, event).changed(status=status_pb2.STEP_STATUS_PENDING, failures=0)
    return _with_step(state, step)


def review_requested(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A person was asked about a step, or about the whole task."""
    payload = event.review_requested
    index = event.header.step if event.header.HasField("step") else None
    proposed = _proposed(payload) if payload.HasField("proposed_plan") else None
    review = OpenReview(step=index, reason=payload.reason, level=payload.level, since=now, proposed=proposed)
    changes: Changes = {
        "reviews": (*state.reviews, review),
        "error": payload.reason,
        "replan_reason": "",
        "person_plan": None,
    }
    if proposed is not None:
        changes["route"] = tuple(payload.route)
    if index is not None:
        waiting = _step(state, event).changed(status=status_pb2.STEP_STATUS_WAITING, device_deadline=None)
        changes |= _with_step(state, waiting)
    return changes


_GOES_ON = frozenset({status_pb2.REVIEW_VERDICT_CORRECTED, status_pb2.REVIEW_VERDICT_ACCEPTED})


def _proposed(payload: event_pb2.ReviewRequested) -> ProposedPlan:
    plan = Plan.from_proto(payload.proposed_plan)
    answer = payload.answer_step if payload.HasField("answer_step") else len(plan.steps) - 1
    return ProposedPlan(plan=plan, answer=answer)


def _given(payload: event_pb2.ReviewResolved) -> ProposedPlan:
    plan = Plan.from_proto(payload.plan)
    answer = payload.answer_step if payload.HasField("answer_step") else len(plan.steps) - 1
    return ProposedPlan(plan=plan, answer=answer, person=payload.reviewer, note=payload.note)


def review_resolved(state: TaskState, event: event_pb2.Event, now: datetime) -> Changes:
    """A person decided: the step has the person's output, or the task is to end."""
    payload = event.review_resolved
    index = event.header.step if event.header.HasField("step") else None
    remaining = tuple(review for review in state.reviews if review.step != index)
    if len(remaining) == len(state.reviews):
        return {}  # settled already
    changes: Changes = {"reviews": remaining, "reviews_settled": state.reviews_settled + 1, "error": None}
    if payload.verdict not in _GOES_ON:
        changes["rejection"] = payload.note or "a person ended the task"
    elif payload.HasField("plan"):
        changes["person_plan"] = _given(payload)
        changes["replan_reason"] = "a person gave the plan"
    elif index is None:
        changes["replan_reason"] = "a person gave the task back"
    else:
        changes |= _with_step(state, _corrected(_step(state, event), event, now))
    return changes


def _corrected(step: StepProgress, event: event_pb2.Event, now: datetime) -> StepProgress:
    document = JsonDocument(event.review_resolved.output_json)
    output = document.value
    if not isinstance(output, Mapping):
        raise DataCorrupt(f"event {event.header.sequence} corrects a step with something that is not an object")
    confidence, sources = output.get("confidence_score"), output.get("sources")
    person = result_pb2.Source(
        id=f"P{step.index + 1}",
        kind="person",
        label=event.review_resolved.reviewer,
        location="review",
        sha256=document.sha256,
    )
    named = sources if isinstance(sources, list) else ()
    return step.changed(
        status=status_pb2.STEP_STATUS_SUCCEEDED,
        output=document,
        confidence=float(confidence) if isinstance(confidence, int | float) else 1.0,
        sources=(*(source_of(entry) for entry in named if isinstance(entry, Mapping)), person),
        checks=("review",),
        ended_at=now,
    )
