"""A task's log read as a history of attempts: who was given what, from where, and what came of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from conductor.document import JsonDocument
from conductor.plan import Plan, StepRef
from conductor.progress import TaskState
from conductor.state import apply, moment
from podium.errors import DataCorrupt
from podium.v1 import event_pb2, result_pb2, status_pb2


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attempt at a step."""

    uid: str
    index: int
    agent: str
    number: int
    started: datetime
    inputs: Mapping[str, Any]
    origins: Mapping[str, tuple[str, str]]
    """Argument name to (uid of the step it came from, path into its output)."""
    ended: datetime | None = None
    output: Mapping[str, Any] | None = None
    confidence: float = 1.0
    error: result_pb2.ErrorDetail | None = None
    recovery: status_pb2.Recovery.ValueType = status_pb2.RECOVERY_UNSPECIFIED
    agent_time: timedelta = timedelta(0)
    """How long the agent took, by the log; zero while it is at work."""
    agent_version: str = ""
    """Of the agent; empty when it could not be started."""

    def duration(self, now: datetime | None) -> timedelta:
        """How long the attempt took, or has taken by now while it is open."""
        return self.agent_time or (self.ended or now or self.started) - self.started


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A plan that verification refused."""

    plan: Plan
    problems: tuple[event_pb2.PlanProblem, ...]
    time: datetime


@dataclass(slots=True, kw_only=True)
class History:
    """Everything a diagnosis looks at."""

    state: TaskState = field(default_factory=TaskState)
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    broken: DataCorrupt | None = None
    """Set when the log itself is out of order; the history then ends at `broken_event`."""
    broken_event: event_pb2.Event | None = None

    def done(self, uid: str) -> Attempt | None:
        """The attempt that gave a step its output."""
        return next((item for item in self.attempts if item.uid == uid and item.output is not None), None)

    def last(self, uid: str) -> Attempt | None:
        """The last attempt at a step."""
        return next((item for item in reversed(self.attempts) if item.uid == uid), None)

    def upstream(self, attempt: Attempt) -> list[Attempt]:
        """The attempts whose outputs an attempt was given, directly or through others, in order of their start."""
        found: dict[str, Attempt] = {}
        pending = [uid for uid, _ in attempt.origins.values()]
        while pending:
            uid = pending.pop()
            before = self.done(uid)
            if before is not None and uid not in found:
                found[uid] = before
                pending.extend(origin for origin, _ in before.origins.values())
        return sorted(found.values(), key=lambda item: (item.started, item.index))


def read_history(events: Iterable[event_pb2.Event]) -> History:
    """Read a log; one that is out of order is read as far as it goes."""
    history = History()
    for event in events:
        try:
            history.state = apply(history.state, event)
        except DataCorrupt as error:
            history.broken, history.broken_event = error, event
            return history
        _note(history, event, moment(event.header.time))
    return history


def _note(history: History, event: event_pb2.Event, now: datetime) -> None:
    match event.WhichOneof("payload"):
        case "plan_refused":
            refused = event.plan_refused
            plan = Plan.from_proto(refused.plan)
            history.refusals.append(Refusal(plan=plan, problems=tuple(refused.problems), time=now))
        case "step_started":
            history.attempts.append(_attempt(history.state, event, now))
        case "step_succeeded" | "review_resolved":
            _end(history, event, now, output=True)
        case "step_failed":
            _end(history, event, now, output=False)


def _attempt(state: TaskState, event: event_pb2.Event, now: datetime) -> Attempt:
    step = state.steps[event.header.step]
    return Attempt(
        uid=step.uid,
        index=step.index,
        agent=event.step_started.agent,
        agent_version=event.step_started.agent_version,
        number=event.step_started.attempt,
        started=now,
        inputs=JsonDocument(event.step_started.input_json).value,
        origins=_origins(state, step.index),
    )


def _end(history: History, event: event_pb2.Event, now: datetime, *, output: bool) -> None:
    if not event.header.HasField("step"):
        return
    step = history.state.steps[event.header.step]
    attempt = history.last(step.uid)
    if (
        attempt is None
        or (attempt.ended is not None and attempt.error is None)
        or _refused_before_start(attempt, event)
    ):
        # It could not even be started: its inputs were refused, or its agent is out of service.
        attempt = Attempt(
            uid=step.uid,
            index=step.index,
            agent=event.step_failed.error.agent or step.tool,
            number=step.attempts,
            started=now,
            inputs={},
            origins=_origins(history.state, step.index),
        )
        history.attempts.append(attempt)
    attempt.ended = now
    if output:
        attempt.output = step.output.value if step.output is not None else None
        attempt.confidence = step.confidence
        attempt.error = None
        attempt.agent_time = step.useful
    else:
        attempt.error = event.step_failed.error
        attempt.recovery = event.step_failed.recovery
        attempt.agent_time = event.step_failed.duration.ToTimedelta()


def _refused_before_start(attempt: Attempt, event: event_pb2.Event) -> bool:
    return attempt.error is not None and event.WhichOneof("payload") == "step_failed"


def _origins(state: TaskState, index: int) -> dict[str, tuple[str, str]]:
    if state.plan is None:
        return {}
    return {
        name: (state.steps[argument.step].uid, argument.field)
        for name, argument in state.plan.steps[index].arguments.items()
        if isinstance(argument, StepRef)
    }
