"""What a task's log says: about the task, and about each step, review and clarification."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from conductor.document import JsonDocument
from conductor.plan import Plan
from podium.v1 import blob_pb2, event_pb2, plan_pb2, result_pb2, status_pb2

FINISHED = frozenset({status_pb2.STEP_STATUS_SUCCEEDED, status_pb2.STEP_STATUS_SKIPPED})
"""Steps whose dependents may start."""


Changes = dict[str, Any]
"""New values of fields of a `TaskState`."""

S = TypeVar("S", bound="StepProgress | TaskState")


def _copied(state: S, changes: Changes) -> S:
    """`dataclasses.replace` in a tenth of its time: the fold copies states for every event of every task.

    It needs instances with a `__dict__`, which is why the two classes it copies have no slots.
    """
    fresh: S = object.__new__(type(state))
    fields = fresh.__dict__
    fields.update(state.__dict__)
    known = len(fields)
    fields.update(changes)
    if len(fields) != known:
        raise TypeError(f"{type(state).__name__} has no {sorted(changes.keys() - state.__dict__.keys())}")
    return fresh


@dataclass(frozen=True, kw_only=True)
class StepProgress:
    """One step of the plan in force, as far as the log goes."""

    uid: str
    """Stable name `v{version}s{index}` from the plan that introduced the step; kept steps keep their name."""
    index: int
    """Index in the plan in force."""
    tool: str
    """The agent the plan names."""
    status: status_pb2.StepStatus.ValueType = status_pb2.STEP_STATUS_PENDING
    agent: str = ""
    """The agent that does or did it; the planned one until it has started."""
    agent_version: str = ""
    attempts: int = 0
    """How often an agent was asked, from 1 once it has started."""
    failures: int = 0
    """Failed attempts of the present agent."""
    agents_tried: tuple[str, ...] = ()
    next_agent: str = ""
    """The agent that takes over at the next start; empty for the present one."""
    not_before: datetime | None = None
    """A retry does not start earlier."""
    idempotency_key: str = ""
    input: JsonDocument | None = None
    output: JsonDocument | None = None
    confidence: float = 0.0
    sources: tuple[result_pb2.Source, ...] = ()
    checks: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    error: result_pb2.ErrorDetail | None = None
    """Why the last attempt failed; kept after a later success, as a diagnosis."""
    recovery: status_pb2.Recovery.ValueType = status_pb2.RECOVERY_UNSPECIFIED
    skip_reason: str = ""
    device_id: str = ""
    device_deadline: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    useful: timedelta = timedelta(0)
    """How long the agent took for the attempt that succeeded."""

    def changed(self, **changes: Any) -> "StepProgress":
        """The step with other values in some fields.

        Raises:
            TypeError: there is no such field.
        """
        return _copied(self, changes)

    @property
    def acting_agent(self) -> str:
        """The agent that does the step at its next start."""
        return self.next_agent or self.agent or self.tool

    @property
    def finished(self) -> bool:
        """Succeeded or left out: dependents may start."""
        return self.status in FINISHED

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Why the attempt before failed, in words for the agent that tries next."""
        if self.error is None or self.status == status_pb2.STEP_STATUS_SUCCEEDED:
            return ()
        return (f"{self.error.code}: {self.error.message}", *self.error.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedPlan:
    """A plan that is not in force: one that nobody is sure enough of, or one that a person gave."""

    plan: Plan
    answer: int
    """Index of the step whose output is the answer."""
    person: str = ""
    """Who gave it or took it; empty until a person did."""
    note: str = ""
    """Why, in that person's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReview:
    """A case that waits for a person."""

    step: int | None
    """Index in the plan in force; None when the whole task waits."""
    reason: result_pb2.ErrorDetail
    level: int
    since: datetime
    proposed: ProposedPlan | None = None
    """The plan that a person is asked about, when one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clarification:
    """A question that was answered."""

    question_id: str
    question: str
    answer: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureNote:
    """One failed attempt, kept over replans for rewards and diagnosis."""

    uid: str
    agent: str
    code: str
    recovery: status_pb2.Recovery.ValueType
    duration: timedelta


ENDED = frozenset(
    {
        status_pb2.TASK_STATUS_SUCCEEDED,
        status_pb2.TASK_STATUS_FAILED,
        status_pb2.TASK_STATUS_CANCELLED,
        status_pb2.TASK_STATUS_EXPIRED,
    }
)
"""Statuses after which nothing happens any more."""


@dataclass(frozen=True, kw_only=True)
class TaskState:
    """Everything that is known of a task after its last event; start with `TaskState()` or `fold`."""

    task_id: str = ""
    request_id: str = ""
    status: status_pb2.TaskStatus.ValueType = status_pb2.TASK_STATUS_UNSPECIFIED
    text: str = ""
    as_of: datetime | None = None
    create_time: datetime | None = None
    update_time: datetime | None = None
    expire_time: datetime | None = None
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    caller: str = ""
    caller_roles: frozenset[str] = frozenset()
    """Roles that the caller had when the task was accepted; empty in logs from before they were recorded."""
    tenant: str = ""
    """Whom the caller belongs to; empty in logs from before that was recorded."""
    device_id: str = ""
    payload_kind: str = ""
    payload: JsonDocument | None = None
    attachments: tuple[blob_pb2.BlobRef, ...] = ()
    trace_id: str = ""
    request: JsonDocument | None = None
    """The normalised request that plans refer to."""
    request_stale: bool = True
    """The request must be normalised (anew) before planning."""
    plan: Plan | None = None
    plan_version: int = 0
    planner: str = ""
    origin: str = ""
    route: tuple[plan_pb2.PlanRoute, ...] = ()
    """Every planner that was asked for the plan in force, or for the one that a person is asked about."""
    person_plan: ProposedPlan | None = None
    """What a person wants done, until it is in force."""
    plan_reason: str = ""
    plan_warnings: tuple[str, ...] = ()
    answer_step: int = 0
    steps: tuple[StepProgress, ...] = ()
    origins_used: frozenset[str] = frozenset()
    """`planner/origin` of every plan so far; a revision rule applies once."""
    replans: int = 0
    """New plans since the first, or since the caller's last answer."""
    replan_reason: str = ""
    """Why a new plan is wanted; empty when the plan in force is good."""
    avoid: frozenset[str] = frozenset()
    """Agents that failed a step for good."""
    plans_refused: int = 0
    question: event_pb2.Question | None = None
    clarifications: tuple[Clarification, ...] = ()
    reviews: tuple[OpenReview, ...] = ()
    reviews_settled: int = 0
    rejection: str = ""
    """Why a person ended the task, until the task has ended."""
    failures: tuple[FailureNote, ...] = ()
    result: result_pb2.Result | None = None
    error: result_pb2.ErrorDetail | None = None
    reward: result_pb2.Reward | None = None
    last_sequence: int = 0

    def changed(self, **changes: Any) -> "TaskState":
        """The state with other values in some fields.

        Raises:
            TypeError: there is no such field.
        """
        return _copied(self, changes)

    @property
    def ended(self) -> bool:
        """Whether nothing happens any more."""
        return self.status in ENDED

    @property
    def outputs(self) -> dict[int, Any]:
        """The outputs of the steps that succeeded, by index."""
        return {step.index: step.output.value for step in self.steps if step.output is not None}
