"""Podium's tasks and agents in the words of A2A: states, messages, artifacts, the card with its skills."""

import uuid
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    HTTPAuthSecurityScheme,
    Message,
    Part,
    Role,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from cloud.gateways.tasks import shown
from podium.v1 import agent_pb2, status_pb2, task_pb2

CONTEXT_LABEL: Final = "a2a_context"
"""Label of a task that keeps the conversation it belongs to."""
ANSWER: Final = "answer"
_EXACT: Final = 2**53
_MAX_TAGS: Final = 30
_GENERAL = AgentSkill(
    id="task",
    name="Any request",
    description="Plans a request in words over the agents on duty and answers with sources; asks when unsure.",
    tags=["planning", "sources"],
    examples=["Compare last quarter's sales of East China and South China"],
)
_STATES: Final = {
    status_pb2.TASK_STATUS_ACCEPTED: TaskState.TASK_STATE_SUBMITTED,
    status_pb2.TASK_STATUS_RUNNING: TaskState.TASK_STATE_WORKING,
    status_pb2.TASK_STATUS_WAITING_DEVICE: TaskState.TASK_STATE_WORKING,
    # Not auth-required: who has to act is a reviewer of Podium, not the caller.
    status_pb2.TASK_STATUS_WAITING_REVIEW: TaskState.TASK_STATE_WORKING,
    status_pb2.TASK_STATUS_WAITING_INPUT: TaskState.TASK_STATE_INPUT_REQUIRED,
    status_pb2.TASK_STATUS_SUCCEEDED: TaskState.TASK_STATE_COMPLETED,
    status_pb2.TASK_STATUS_FAILED: TaskState.TASK_STATE_FAILED,
    status_pb2.TASK_STATUS_EXPIRED: TaskState.TASK_STATE_FAILED,
    status_pb2.TASK_STATUS_CANCELLED: TaskState.TASK_STATE_CANCELED,
}


def state_of(status: status_pb2.TaskStatus.ValueType) -> TaskState:
    """A task's status as A2A has it; one from a newer server counts as working."""
    return _STATES.get(status, TaskState.TASK_STATE_WORKING)


def statuses_of(state: TaskState) -> list[status_pb2.TaskStatus.ValueType]:
    """Podium's statuses that are shown as that state."""
    return [status for status, shown_as in _STATES.items() if shown_as == state]


def context_of(task: task_pb2.Task) -> str:
    """The conversation a task belongs to; its own for one that came another way."""
    return task.labels.get(CONTEXT_LABEL, task.task_id)


def a2a_task(task: task_pb2.Task) -> Task:
    """A whole task."""
    return Task(
        id=task.task_id,
        context_id=context_of(task),
        status=_status(task),
        artifacts=[_artifact(task)] if task.status == status_pb2.TASK_STATUS_SUCCEEDED else [],
    )


def status_update(task: task_pb2.Task) -> TaskStatusUpdateEvent:
    """A task's status as an event of a stream."""
    return TaskStatusUpdateEvent(task_id=task.task_id, context_id=context_of(task), status=_status(task))


def state_update(task: task_pb2.Task, status: status_pb2.TaskStatus.ValueType) -> TaskStatusUpdateEvent:
    """A status that a task went through, as an event of a stream."""
    return TaskStatusUpdateEvent(
        task_id=task.task_id, context_id=context_of(task), status=TaskStatus(state=state_of(status))
    )


def answer_update(task: task_pb2.Task) -> TaskArtifactUpdateEvent:
    """A task's answer as an event of a stream."""
    return TaskArtifactUpdateEvent(
        task_id=task.task_id, context_id=context_of(task), artifact=_artifact(task), last_chunk=True
    )


def podium_card(
    agents: Sequence[agent_pb2.AgentDescription], interfaces: Sequence[AgentInterface], *, token_required: bool
) -> AgentCard:
    """The card: a skill for any request, and one for each pack on duty.

    Args:
        agents: those that the gateway may know of; none where it has no token of its own.
        interfaces: the ways to reach it, the preferred one first.
        token_required: callers bring a bearer token.
    """
    card = AgentCard(
        name="Podium",
        description="Plans a request over specialist agents, checks every result and answers with its sources.",
        version=version("podium"),
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "image/png", "image/jpeg", "application/pdf"],
        default_output_modes=["text/markdown", "application/json"],
        skills=[_GENERAL, *_skills(agents)],
    )
    if token_required:
        scheme = HTTPAuthSecurityScheme(scheme="bearer", description="A token of `podium token issue`.")
        card.security_schemes["bearer"].CopyFrom(SecurityScheme(http_auth_security_scheme=scheme))
        card.security_requirements.append(SecurityRequirement(schemes={"bearer": StringList()}))
    return card


def _skills(agents: Sequence[agent_pb2.AgentDescription]) -> list[AgentSkill]:
    packs: dict[str, list[agent_pb2.AgentDescription]] = {}
    for agent in agents:
        if agent.pack and agent.enabled:
            packs.setdefault(agent.pack, []).append(agent)
    return [
        AgentSkill(
            id=pack,
            name=pack,
            description=" ".join(agent.description for agent in members)[:2000],
            tags=sorted({tag for agent in members for tag in agent.capability_tags})[:_MAX_TAGS],
        )
        for pack, members in sorted(packs.items())
    ]


def _status(task: task_pb2.Task) -> TaskStatus:
    status = TaskStatus(state=state_of(task.status))
    if task.HasField("update_time"):
        status.timestamp.CopyFrom(task.update_time)
    if words := _words(task):
        message = Message(
            # The same status has the same message, however often it is read.
            message_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{task.task_id}/{task.last_sequence}")),
            task_id=task.task_id,
            context_id=context_of(task),
            role=Role.ROLE_AGENT,
            parts=[Part(text=words, media_type="text/plain")],
        )
        if task.HasField("question"):
            message.metadata.update(
                {
                    "question_id": task.question.question_id,
                    "suggestions": list(task.question.suggestions),
                }
            )
        status.message.CopyFrom(message)
    return status


def _words(task: task_pb2.Task) -> str:
    if task.HasField("question"):
        return task.question.text + "".join(f"\n- {suggestion}" for suggestion in task.question.suggestions)
    if task.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
        return "A reviewer has to look at this; the task goes on by itself afterwards."
    if task.HasField("error"):
        return f"{task.error.code}: {task.error.message}"
    return ""


def _artifact(task: task_pb2.Task) -> Artifact:
    told = shown(task)
    del told["question"], told["error"]
    return Artifact(
        artifact_id=ANSWER,
        name=ANSWER,
        parts=[
            Part(text=told["answer_markdown"], media_type="text/markdown"),
            Part(data=ParseDict(_carried(told), Value()), media_type="application/json"),
        ],
    )


def _carried(value: Any) -> Any:
    """The value as a data part carries it: whole numbers that a double would change become text."""
    if isinstance(value, dict):
        return {name: _carried(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_carried(item) for item in value]
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    return value
