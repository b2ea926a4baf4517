"""What happens to a task from outside while it lives: accepted, answered, reviewed, cancelled.

Each call reads the log, checks that the state allows it, and appends; when somebody else writes at the same
moment it reads and checks again.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from agents.canonical import canonical_json
from agents.registry import AgentRegistry
from conductor.bus import Acceptance, EventBus
from conductor.checked_plan import verified_for
from conductor.document import JsonDocument
from conductor.journal import SCHEMA_VERSION, Journal, timestamp_of
from conductor.plan import Plan
from conductor.progress import OpenReview, StepProgress, TaskState
from conductor.state import fold
from conductor.verify import PlanLimits
from conductor.versions import agent_that_did
from podium.errors import Conflict, DataCorrupt, InvalidRequest, NotFound, VersionConflict
from podium.v1 import event_pb2, status_pb2

_ATTEMPTS = 20
_LIMITS = PlanLimits()


class TaskDesk:
    """The door through which callers, devices and people reach a task."""

    def __init__(
        self,
        bus: EventBus,
        registry: AgentRegistry,
        clock: Callable[[], datetime],
        *,
        plan_limits: PlanLimits = _LIMITS,
    ) -> None:
        """Serve the tasks of one bus.

        Args:
            bus: where their logs are.
            registry: the agents; a person's plan is verified against them.
            clock: the present moment in UTC.
            plan_limits: how large and how dear a person's plan may be.
        """
        self._plan_limits = plan_limits
        self._bus = bus
        self._registry = registry
        self._clock = clock

    async def accept(
        self,
        task_id: str,
        payload: event_pb2.TaskAccepted,
        *,
        trace_id: str,
        open_limit: int | None = None,
    ) -> Acceptance:
        """Take a task in; it is on disk when this returns. A caller's same request id is taken once.

        Args:
            task_id: Name for the task, chosen by the server.
            payload: What was asked; times that are not set are taken from the clock.
            trace_id: W3C trace id of 32 hexadecimal digits, on every event of the task.
            open_limit: how many unended tasks the caller may have, this one included; None for any number.

        Raises:
            LimitExceeded: the caller has as many open tasks as allowed.
        """
        now = self._clock()
        if not payload.HasField("as_of"):
            payload.as_of.CopyFrom(timestamp_of(now))
        header = event_pb2.EventHeader(
            task_id=task_id,
            sequence=1,
            schema_version=SCHEMA_VERSION,
            time=timestamp_of(now),
            trace_id=trace_id,
        )
        event = event_pb2.Event(header=header, task_accepted=payload)
        acceptance = await self._bus.accept(event, open_limit=open_limit)
        return acceptance if acceptance.duplicate else replace(acceptance, state=fold([event]))

    async def cancel(self, task_id: str, *, reason: str, caller: str) -> TaskState:
        """End a task; one that has ended is returned unchanged."""
        return await self._change(
            task_id, lambda journal: _cancel(journal, event_pb2.TaskCancelled(reason=reason, caller=caller))
        )

    async def provide_input(self, task_id: str, question_id: str, answer: str, *, caller: str) -> TaskState:
        """Answer a task's open question; the same answer given twice is taken once.

        Raises:
            NotFound: the task never asked this question.
            Conflict: it was answered otherwise, or the task has ended.
            InvalidRequest: the answer is empty.
        """
        if not answer.strip():
            raise InvalidRequest("the answer is empty", field="answer")
        payload = event_pb2.InputProvided(question_id=question_id, answer=answer, caller=caller)
        return await self._change(task_id, lambda journal: _answer(journal, payload))

    async def resolve_review(self, task_id: str, payload: event_pb2.ReviewResolved) -> TaskState:
        """Settle the oldest open review of a task.

        Raises:
            Conflict: nothing waits for a person.
            InvalidRequest: the corrected output breaks the schema of the agent's outputs; `evidence` says how. Or
                what is given does not settle a case of this kind.
            PlanRejected: the plan must not run; `evidence` says why, all of it. The case stays open.
        """
        return await self._change(task_id, lambda journal: self._resolve(journal, payload))

    async def _change(self, task_id: str, decide: Callable[[Journal], None]) -> TaskState:
        for _ in range(_ATTEMPTS):
            journal = await Journal.open(self._bus, task_id, self._clock)
            decide(journal)
            if await journal.commit():
                return journal.state
        raise VersionConflict(f"task {task_id} is being written to by others all the time")

    def _resolve(self, journal: Journal, payload: event_pb2.ReviewResolved) -> None:
        state = journal.state
        if state.ended or not state.reviews:
            raise Conflict(f"task {state.task_id} does not wait for a person")
        review = state.reviews[0]
        if payload.verdict == status_pb2.REVIEW_VERDICT_UNSPECIFIED:
            raise InvalidRequest("a verdict is needed: corrected, accepted or rejected", field="verdict")
        if payload.verdict != status_pb2.REVIEW_VERDICT_REJECTED:
            self._check_plan(state, review, payload)
        if payload.verdict == status_pb2.REVIEW_VERDICT_CORRECTED and review.step is not None:
            output = self._corrected(state.steps[review.step], payload.output_json)
            payload.output_json = canonical_json(output)
        journal.record(payload, step=review.step, synced=True)

    def _check_plan(self, state: TaskState, review: OpenReview, payload: event_pb2.ReviewResolved) -> None:
        """Complete and verify the plan of a case that asks for one; refuse a plan anywhere else."""
        if review.proposed is None:
            if payload.HasField("plan") or payload.verdict == status_pb2.REVIEW_VERDICT_ACCEPTED:
                raise InvalidRequest(
                    f"this case of task {state.task_id} does not ask for a plan",
                    next_step="Give the step's output instead: podium review resolve ID --output FILE.",
                    field="plan_json",
                )
            return
        if payload.verdict == status_pb2.REVIEW_VERDICT_ACCEPTED:
            payload.plan.CopyFrom(review.proposed.plan.to_proto())
            payload.answer_step = review.proposed.answer
        elif not payload.HasField("plan"):
            raise InvalidRequest(
                f"task {state.task_id} waits for a plan, and none was given",
                next_step="Accept the proposed one or give another: podium review resolve ID --accept | --plan F.",
                field="plan_json",
            )
        plan = Plan.from_proto(payload.plan)
        answer = payload.answer_step if payload.HasField("answer_step") else len(plan.steps) - 1
        verified_for(state, plan, answer, self._registry, self._plan_limits)

    def _corrected(self, step: StepProgress, data: bytes) -> Any:
        try:
            output = JsonDocument(data).value
        except DataCorrupt:
            output = None
        if not isinstance(output, dict):
            raise InvalidRequest("a corrected output is needed: one JSON object", field="output_json")
        agent = agent_that_did(self._registry, step) or self._registry.get(step.acting_agent)
        if violations := agent.contract.output_violations(output):
            raise InvalidRequest(
                f"the corrected output breaks the schema of {agent.spec.name}: {violations[0]}",
                evidence=violations,
                field="output_json",
            )
        return output


def _cancel(journal: Journal, payload: event_pb2.TaskCancelled) -> None:
    if not journal.state.ended:
        journal.record(payload, synced=True)


def _answer(journal: Journal, payload: event_pb2.InputProvided) -> None:
    state = journal.state
    question = state.question
    if question is not None and question.question_id == payload.question_id and not state.ended:
        journal.record(payload, synced=True)
        return
    given = next((item for item in state.clarifications if item.question_id == payload.question_id), None)
    if given is None:
        raise NotFound(f"task {state.task_id} has no open question {payload.question_id!r}")
    if given.answer != payload.answer or state.ended:
        raise Conflict(f"question {payload.question_id!r} was answered already")
