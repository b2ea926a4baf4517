"""Turn what became of a step into events: success, a question, or a failure with what is done about it."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from google.protobuf.duration_pb2 import Duration

from agents.contract import HandoverBroken
from agents.registry import RegisteredAgent
from conductor.assemble import answer_sources, check_answer
from conductor.candidates import ranked_candidates, substituted
from conductor.checking import CheckedOutput
from conductor.clarifying import asks_caller, mentions, question_of
from conductor.errors import AnchorDrift
from conductor.failure import Decision, on_failure
from conductor.finishing import Finisher
from conductor.handover import agreements_of, out_of_turns
from conductor.journal import Journal, timestamp_of
from conductor.plan import Plan, StepRef
from conductor.progress import StepProgress, TaskState
from conductor.scheduler import ancestors
from conductor.verify import verify
from conductor.versions import agent_of_task
from conductor.wiring import Wiring
from podium.errors import OutputContractBroken, PodiumError
from podium.rpc_status import error_detail
from podium.v1 import event_pb2, status_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one attempt."""

    uid: str
    agent: RegisteredAgent
    result: CheckedOutput | PodiumError
    duration: timedelta


class Settler:
    """Records outcomes in a task's journal."""

    def __init__(self, wiring: Wiring, finisher: Finisher) -> None:
        """Use the process's wiring."""
        self._wiring = wiring
        self._finisher = finisher

    def settle(self, journal: Journal, outcome: Outcome) -> None:
        """Record an outcome; nothing when the step is no longer running (the plan changed, the task ended)."""
        step = next((step for step in journal.state.steps if step.uid == outcome.uid), None)
        if step is None or step.status != status_pb2.STEP_STATUS_RUNNING or journal.state.ended:
            return
        result = outcome.result
        if isinstance(result, CheckedOutput):
            try:
                checks = self._answer_checks(journal.state, step, outcome.agent, result)
            except PodiumError as error:
                result = error
            else:
                self._succeed(journal, step, outcome, result, checks)
                return
        self.fail(journal, step, outcome.agent, result, outcome.duration)

    def fail(
        self, journal: Journal, step: StepProgress, agent: RegisteredAgent, error: PodiumError, duration: timedelta
    ) -> None:
        """Record that a step's attempt failed and what is done about it."""
        state, now = journal.state, self._wiring.clock()
        decision = self._decide(state, step, agent, error)
        if (broken := self._broken_handover(state, step, agent, error, decision)) is not None:
            error, decision = broken, self._decide(state, step, agent, broken)
        at_fault = error.agent if isinstance(error, HandoverBroken) else agent.spec.name
        detail = error_detail(error, agent=at_fault)
        payload = event_pb2.StepFailed(
            error=detail,
            recovery=decision.recovery,
            next_agent=decision.next_agent,
            duration=duration_of(duration),
            delay=duration_of(decision.delay),
        )
        journal.record(payload, step=step.index, retry_count=max(step.attempts - 1, 0))
        match decision.recovery:
            case status_pb2.RECOVERY_WAIT_DEVICE:
                deadline = timestamp_of(decision.deadline or now)
                journal.record(
                    event_pb2.DeviceAwaited(device_id=state.device_id, deadline=deadline), step=step.index
                )
            case status_pb2.RECOVERY_DEGRADE:
                reason = f"left out because {agent.spec.name} failed: {error.message}"
                journal.record(event_pb2.StepSkipped(reason=reason[:500]), step=step.index)
            case status_pb2.RECOVERY_REVIEW:
                journal.record(event_pb2.ReviewRequested(reason=detail, level=decision.level), step=step.index)
            case status_pb2.RECOVERY_FAIL:
                self._finisher.fail(journal, detail)

    def _decide(
        self, state: TaskState, step: StepProgress, agent: RegisteredAgent, error: PodiumError
    ) -> Decision:
        if isinstance(error, AnchorDrift) and not _asked_before(state, agent.spec.name):
            return Decision(recovery=status_pb2.RECOVERY_ASK, reason="the caller says what was meant")
        return on_failure(
            state,
            step,
            error,
            spec=agent.spec,
            alternatives=self._alternatives(state, step, agent, error),
            degradable=state.plan is not None and self._degradable(state.plan, state.answer_step, step.index),
            policy=self._wiring.settings.failure_policy,
            now=self._wiring.clock(),
        )

    def _broken_handover(
        self, state: TaskState, step: StepProgress, agent: RegisteredAgent, error: PodiumError, decision: Decision
    ) -> HandoverBroken | None:
        """The failure as whoever handed over sees it, when no turn is left to whoever would be asked next."""
        following = decision.next_agent or agent.spec.name
        receiver = agent_of_task(state, self._wiring.registry, following) or agent
        found = agreements_of(state, step.index, receiver.spec, self._wiring.registry)
        return out_of_turns(found, agent.spec, error, turn=step.attempts)

    def _bound(self, state: TaskState, step: StepProgress, name: str) -> bool:
        """Whether an agent would take a step over under a hand-over that is broken already."""
        agent = agent_of_task(state, self._wiring.registry, name)
        return agent is not None and bool(agreements_of(state, step.index, agent.spec, self._wiring.registry))

    def _alternatives(
        self, state: TaskState, step: StepProgress, agent: RegisteredAgent, error: PodiumError
    ) -> list[str]:
        """Agents that could take over: with them in its place the plan still passes verification."""
        if state.plan is None or state.request is None:
            return []
        registry, settings = self._wiring.registry, self._wiring.settings
        ranked = ranked_candidates(state.plan.steps[step.index], registry, state.avoid)
        names = [candidate.tool for candidate in ranked]
        if isinstance(fallback := agent.spec.settings.get("fallback"), str):
            names.append(fallback)
        caller = self._wiring.caller(state)
        return [
            name
            for name in dict.fromkeys(names)
            if name not in (*step.agents_tried, agent.spec.name)
            and not (isinstance(error, HandoverBroken) and self._bound(state, step, name))
            and not any(
                problem.fatal
                for problem in verify(
                    substituted(state.plan, step.index, name),
                    registry,
                    state.request.value,
                    caller,
                    settings.plan_limits,
                    answer=state.answer_step,
                    pick=partial(agent_of_task, state, registry),
                )
            )
        ]

    def _degradable(self, plan: Plan, answer: int, index: int) -> bool:
        """Whether the plan can end without a step: not critical, and whoever needs its output is not either."""
        agent = self._wiring.registry.find(plan.steps[index].tool)
        if agent is None or agent.spec.critical or index == answer:
            return False
        for later, step in enumerate(plan.steps):
            needed = (
                name
                for name, argument in step.arguments.items()
                if isinstance(argument, StepRef) and argument.step == index
            )
            needs_it = any(name in self._required(step.tool) for name in needed)
            if needs_it and not self._degradable(plan, answer, later):
                return False
        return True

    def _required(self, tool: str) -> frozenset[str]:
        agent = self._wiring.registry.find(tool)
        return frozenset(agent.spec.input_schema.get("required", ())) if agent is not None else frozenset()

    def _answer_checks(
        self, state: TaskState, step: StepProgress, agent: RegisteredAgent, checked: CheckedOutput
    ) -> tuple[str, ...]:
        if asks_caller(agent):
            if not question_of(checked.output, question_id="", about=()).text:
                raise OutputContractBroken("the question to the caller has no text", agent=agent.spec.name)
            return ()
        if step.index != state.answer_step or state.plan is None or state.request is None:
            return ()
        behind = ancestors(state.plan, step.index)
        known = [source.id for index in behind for source in state.steps[index].sources]
        return check_answer(checked.output, state.request.value, known)

    def _succeed(
        self,
        journal: Journal,
        step: StepProgress,
        outcome: Outcome,
        checked: CheckedOutput,
        answer_checks: tuple[str, ...],
    ) -> None:
        writes = outcome.agent.spec.side_effects == "write"
        payload = event_pb2.StepSucceeded(
            output_json=checked.document.data,
            output_schema_sha256=outcome.agent.contract.output_sha256,
            confidence=checked.confidence,
            sources=answer_sources(checked.output),
            checks=[*checked.checks, *answer_checks],
            duration=duration_of(outcome.duration),
            repairs=checked.repairs,
        )
        journal.record(payload, step=step.index, synced=writes, retry_count=max(step.attempts - 1, 0))
        if asks_caller(outcome.agent):
            self._ask(journal, step, checked)

    def _ask(self, journal: Journal, step: StepProgress, checked: CheckedOutput) -> None:
        state = journal.state
        about = mentions(state.request.value) if state.request is not None else ()
        question = question_of(checked.output, question_id=f"q{len(state.clarifications) + 1}", about=about)
        journal.record(event_pb2.QuestionAsked(question=question), step=step.index)


def duration_of(value: timedelta) -> Duration:
    """A length of time, as it travels."""
    duration = Duration()
    duration.FromTimedelta(value)
    return duration


def _asked_before(state: TaskState, agent: str) -> bool:
    return any(
        note.agent == agent and note.code == AnchorDrift.code and note.recovery == status_pb2.RECOVERY_ASK
        for note in state.failures
    )
