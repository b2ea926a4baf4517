"""Tasks as JSON, the form that programs read."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podium.status import step_status_name, task_status_name
from podium.v1 import event_pb2, plan_pb2, result_pb2, task_pb2

if TYPE_CHECKING:
    from conductor.diagnose import Diagnosis
    from conductor.timeline import Span

_REWARD = ("task_completion", "data_accuracy", "process_compliance", "resource_efficiency", "final")


def task_json(task: task_pb2.Task) -> dict[str, Any]:
    """A task as one JSON object; what is not there yet is null."""
    from conductor.plan import Plan

    result = task.result if task.HasField("result") else None
    return {
        "task_id": task.task_id,
        "request_id": task.request_id,
        "status": task_status_name(task.status),
        "request": task.text,
        "create_time": task.create_time.ToJsonString() if task.HasField("create_time") else None,
        "update_time": task.update_time.ToJsonString() if task.HasField("update_time") else None,
        "latency_ms": latency_ms(task),
        "plan": Plan.from_proto(task.plan).to_json() if task.HasField("plan") else None,
        "plan_version": task.plan_version,
        "planner": task.planner or None,
        "route": [route_json(entry) for entry in task.route],
        "steps": [step_json(step) for step in task.steps],
        "question": question_json(task.question) if task.HasField("question") else None,
        "answer": result.answer_markdown if result else None,
        "fields": json.loads(result.fields_json) if result and result.fields_json else None,
        "sources": [source_json(source) for source in result.sources] if result else [],
        "snapshot_sha256": result.snapshot_sha256 if result else None,
        "assumptions": list(result.assumptions) if result else [],
        "degraded": list(result.degraded) if result else [],
        "reward": reward_json(task.reward) if task.HasField("reward") else None,
        "error": error_json(task.error) if task.HasField("error") else None,
    }


def route_json(entry: plan_pb2.PlanRoute) -> dict[str, Any]:
    """A planner that was asked for the plan, and what came of it."""
    return {
        "planner": entry.planner,
        "confidence": entry.confidence if entry.HasField("confidence") else None,
        "threshold": entry.threshold if entry.HasField("threshold") else None,
        "taken": entry.taken,
        "reason": entry.reason,
    }


def route_words(route: Iterable[plan_pb2.PlanRoute]) -> list[str]:
    """Every planner that was asked, one line each; the one whose plan was taken is marked."""
    from conductor.route import route_of

    return [f"{entry.words}{' (taken)' if entry.taken else ''}" for entry in route_of(route)]


def summary_json(task: task_pb2.Task) -> dict[str, Any]:
    """A task as lists show it."""
    return {
        "task_id": task.task_id,
        "status": task_status_name(task.status),
        "request": task.text,
        "create_time": task.create_time.ToJsonString(),
        "update_time": task.update_time.ToJsonString(),
    }


def step_json(step: task_pb2.StepState) -> dict[str, Any]:
    """What became of one step."""
    return {
        "index": step.index,
        "agent": step.agent,
        "status": step_status_name(step.status),
        "start_time": step.start_time.ToJsonString() if step.HasField("start_time") else None,
        "end_time": step.end_time.ToJsonString() if step.HasField("end_time") else None,
        "attempts": step.attempts,
        "confidence": step.confidence,
        "error": error_json(step.error) if step.HasField("error") else None,
    }


def question_json(question: event_pb2.Question) -> dict[str, Any]:
    """A question to the caller."""
    return {
        "question_id": question.question_id,
        "text": question.text,
        "suggestions": list(question.suggestions),
        "about": list(question.about),
    }


def source_json(source: result_pb2.Source) -> dict[str, str]:
    """What an answer rests on."""
    return {
        "id": source.id,
        "kind": source.kind,
        "label": source.label,
        "location": source.location,
        "sha256": source.sha256,
    }


def reward_json(reward: result_pb2.Reward) -> dict[str, float]:
    """A reward without its terms."""
    return {name: round(getattr(reward, name), 4) for name in _REWARD}


def error_json(error: result_pb2.ErrorDetail) -> dict[str, Any]:
    """An error with what to do next."""
    return {
        "code": error.code,
        "message": error.message,
        "next_step": error.next_step,
        "evidence": list(error.evidence),
        "agent": error.agent,
    }


def diagnosis_json(task_id: str, diagnosis: "Diagnosis") -> dict[str, Any]:
    """What went wrong first."""
    return {
        "task_id": task_id,
        "found": diagnosis.found,
        "code": diagnosis.code,
        "step": diagnosis.step,
        "agent": diagnosis.agent,
        "agent_version": diagnosis.agent_version,
        "time": diagnosis.time.isoformat() if diagnosis.time else None,
        "evidence": list(diagnosis.evidence),
        "explanation": diagnosis.explanation,
        "reported_by": diagnosis.reported_by,
    }


def span_json(span: "Span") -> dict[str, Any]:
    """Something that took time."""
    return {
        "kind": span.kind,
        "step": span.index,
        "name": span.name,
        "attempt": span.attempt,
        "start": span.start.isoformat(),
        "end": span.end.isoformat(),
        "duration_ms": round((span.end - span.start).total_seconds() * 1000, 3),
        "outcome": span.outcome,
        "code": span.code or None,
        "lane": span.lane,
    }


def latency_ms(task: task_pb2.Task) -> float:
    """From acceptance to the last event, in milliseconds."""
    if not task.HasField("create_time") or not task.HasField("update_time"):
        return 0.0
    seconds = task.update_time.ToNanoseconds() - task.create_time.ToNanoseconds()
    return round(seconds / 1e6, 1)
