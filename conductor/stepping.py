"""Start steps and carry them out: resolve inputs, check them, call the engine, check what comes back."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agents.invocation import AgentContext, Engine, Invocation
from agents.registry import RegisteredAgent
from conductor.anchor import anchored_texts, find_drift, reworded
from conductor.checking import CheckedOutput
from conductor.document import JsonDocument
from conductor.errors import AnchorDrift
from conductor.failure import is_idempotent
from conductor.handover import Agreement, agreements_of, check_parameters, strictest
from conductor.inputs import resolve_inputs
from conductor.journal import Journal
from conductor.plan import StepRef
from conductor.progress import StepProgress, TaskState
from conductor.settling import Outcome, Settler
from conductor.verify import VerifiedPlan
from conductor.versions import agent_of_step, agent_of_task
from conductor.wiring import Wiring
from podium.errors import (
    AgentCrashed,
    AgentTimeout,
    InputContractBroken,
    InternalError,
    PodiumError,
)
from podium.telemetry import span
from podium.v1 import event_pb2, status_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A step that is on record as started and may now be carried out."""

    uid: str
    agent: RegisteredAgent
    invocation: Invocation
    settle_only: bool = False
    """The write may have happened before the process died: look it up, do not do it."""


class StepRunner:
    """Starts steps in a journal and carries them out."""

    def __init__(self, wiring: Wiring, settler: Settler) -> None:
        """Use the process's wiring."""
        self._wiring = wiring
        self._settler = settler

    async def start(self, journal: Journal, plan: VerifiedPlan, step: StepProgress) -> Launch | None:
        """Record that a step starts, or why it cannot; None when there is nothing to carry out.

        Args:
            journal: The task's journal.
            plan: The plan in force.
            step: A step of it that is ready.
        """
        if reason := self._skipped_with(journal.state, plan, step):
            journal.record(event_pb2.StepSkipped(reason=reason), step=step.index)
            return None
        agent = self._agent(journal.state, step)
        if agent is None:
            planned = self._wiring.registry.get(step.tool)
            error = AgentCrashed(f"agent {step.acting_agent} is out of service", agent=step.acting_agent)
            self._settler.fail(journal, step, planned, error, timedelta(0))
            return None
        attempt = step.attempts + 1
        try:
            document = await self._inputs(journal.state, plan, step, agent)
            agreed = agreements_of(journal.state, step.index, agent.spec, self._wiring.registry)
            check_parameters(agreed, agent.spec, document.value, turn=attempt)
        except PodiumError as error:
            self._settler.fail(journal, step, agent, error, timedelta(0))
            return None
        key = f"{journal.state.task_id}/{step.uid}"
        payload = event_pb2.StepStarted(
            agent=agent.spec.name,
            agent_version=agent.spec.version,
            attempt=attempt,
            input_json=document.data,
            input_schema_sha256=agent.contract.input_sha256,
            idempotency_key=key,
        )
        context = self._context(journal.state, step, attempt, key, strictest(agreed))
        writes = agent.spec.side_effects == "write"
        journal.record(payload, step=step.index, retry_count=step.attempts, synced=writes)
        invocation = Invocation(
            spec=agent.spec,
            # A copy of its own: an agent that sorts a list in place must not change another step's output.
            inputs=json.loads(document.data),
            context=context,
            time_limit=self._time_limit(journal.state, agent, self._wiring.clock()),
        )
        return Launch(uid=step.uid, agent=agent, invocation=invocation)

    async def resume(self, journal: Journal, plan: VerifiedPlan, step: StepProgress) -> Launch | None:
        """Take up a step that was running when the process died.

        A step that only reads is started again. A write that is not idempotent is looked up, never done again.
        """
        registry = self._wiring.registry
        agent = registry.choose(step.agent, journal.state.task_id, keep=step.agent_version)
        if agent is None or not agent.enabled:
            agent = agent_of_task(journal.state, registry, step.tool) or registry.get(step.tool)
        interruptions = step.attempts - sum(note.uid == step.uid for note in journal.state.failures)
        if not is_idempotent(agent.spec):
            context = self._context(journal.state, step, step.attempts, step.idempotency_key)
            inputs = step.input.value if step.input is not None else {}
            limit = self._time_limit(journal.state, agent, self._wiring.clock())
            invocation = Invocation(spec=agent.spec, inputs=inputs, context=context, time_limit=limit)
            return Launch(uid=step.uid, agent=agent, invocation=invocation, settle_only=True)
        if interruptions > self._wiring.settings.max_interruptions:
            error = AgentCrashed(f"the process ended {interruptions} times while {agent.spec.name} ran")
            self._settler.fail(journal, step, agent, error, timedelta(0))
            return None
        return await self.start(journal, plan, step.changed(next_agent=""))

    async def carry_out(self, launch: Launch) -> Outcome:
        """Call the agent and check its output; every failure is an outcome, nothing is raised but cancellation."""
        with span("podium.step", attributes=_described(launch)) as attempt:
            outcome = await self._carried_out(launch)
            failed = isinstance(outcome.result, PodiumError)
            attempt.set("podium.step.outcome", "failed" if failed else "succeeded")
            if isinstance(outcome.result, PodiumError):
                attempt.failed(outcome.result.code)
        return outcome

    async def _carried_out(self, launch: Launch) -> Outcome:
        begun = time.perf_counter()
        result: CheckedOutput | PodiumError
        try:
            result = await self._attempt(launch)
        except PodiumError as error:
            result = error
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            name = launch.agent.spec.name
            result = AgentCrashed(f"{name} cancelled itself", agent=name)
        except Exception as error:  # noqa: BLE001 - engines and agents are foreign code; the step fails, not the task
            name = launch.agent.spec.name
            result = AgentCrashed(f"{name} raised {type(error).__name__}: {str(error)[:300]}", agent=name)
        duration = timedelta(seconds=time.perf_counter() - begun)
        return Outcome(uid=launch.uid, agent=launch.agent, result=result, duration=duration)

    async def _attempt(self, launch: Launch) -> CheckedOutput:
        invocation, agent = launch.invocation, launch.agent
        if agent.spec.side_effects != "write":
            return await self._within_limit(invocation, agent)
        key = invocation.context.idempotency_key
        recorded = await self._wiring.bus.effect(key)
        if recorded is None and launch.settle_only:
            raise AgentCrashed(
                f"the process ended while {agent.spec.name} wrote; the write may or may not have happened",
                evidence=[f"idempotency key {key}"],
                agent=agent.spec.name,
            )
        if recorded is not None:
            return self._wiring.checker.check(agent, recorded, invocation.inputs, invocation.context)
        checked = await self._within_limit(invocation, agent)
        kept = await self._wiring.bus.record_effect(key, checked.document.data)
        return checked if kept == checked.document.data else replace(checked, document=JsonDocument(kept))

    async def _within_limit(self, invocation: Invocation, agent: RegisteredAgent) -> CheckedOutput:
        engine = self._wiring.engines.get(agent.spec.engine)
        if engine is None:
            raise InternalError(f"no engine {agent.spec.engine!r} is wired for agent {agent.spec.name}")
        limit = invocation.time_limit + self._wiring.settings.timeout_grace
        check = self._wiring.checker.check
        try:
            # The engine keeps the time limit; this one is for an engine that does not.
            async with asyncio.timeout(limit.total_seconds()):
                raw = await _invoked(engine, invocation)
                if any(validator.python for validator in agent.spec.validators):
                    return await asyncio.to_thread(check, agent, raw, invocation.inputs, invocation.context)
                return check(agent, raw, invocation.inputs, invocation.context)
        except TimeoutError as error:
            seconds = invocation.time_limit.total_seconds()
            raise AgentTimeout(
                f"{agent.spec.name} did not answer within {seconds:g} s", agent=agent.spec.name
            ) from error

    def _agent(self, state: TaskState, step: StepProgress) -> RegisteredAgent | None:
        registry = self._wiring.registry
        agent = agent_of_step(state, registry, step)
        if agent is not None and agent.spec.engine == "device" and not state.device_id:
            # Nothing to send it to: the agent's declared stand-in does the step here.
            stand_in = agent.spec.settings.get("fallback")
            agent = agent_of_task(state, registry, str(stand_in)) if stand_in else agent
        return agent if agent is not None and agent.enabled else None

    async def _inputs(
        self, state: TaskState, plan: VerifiedPlan, step: StepProgress, agent: RegisteredAgent
    ) -> JsonDocument:
        request = state.request.value if state.request is not None else {}
        needed = plan.plan.steps[step.index].depends_on
        outputs = {
            index: document.value for index in needed if (document := state.steps[index].output) is not None
        }
        inputs = resolve_inputs(
            plan.plan.steps[step.index],
            request=request,
            outputs=outputs,
            skipped=frozenset(index for index in needed if index not in outputs),
            required=frozenset(agent.spec.input_schema.get("required", ())),
        )
        data, violations = agent.contract.written_input(inputs)
        if violations:
            raise InputContractBroken(
                f"{agent.spec.name} cannot be given this: {violations[0]}",
                evidence=violations,
                agent=agent.spec.name,
            )
        await self._anchor(state, agent, inputs)
        return JsonDocument.written(inputs, data)

    async def _anchor(self, state: TaskState, agent: RegisteredAgent, inputs: dict[str, object]) -> None:
        embedder = self._wiring.embedder
        if embedder is None or not state.text.strip():
            return
        asked = " ".join([state.text, *(item.answer for item in state.clarifications)])
        texts = reworded(asked, anchored_texts(agent.spec, inputs))
        if not texts:
            return  # most texts are the request's own, and need neither a model nor a thread
        threshold = self._wiring.settings.anchor_threshold
        drift = await asyncio.to_thread(find_drift, asked, texts, embedder, threshold)
        if drift is not None:
            raise AnchorDrift(
                f"{drift.field!r} for {agent.spec.name} has drifted from the request "
                f"(similarity {drift.similarity:.2f}, at least {drift.threshold:.2f} is asked)",
                evidence=[texts[drift.field][:200]],
                agent=agent.spec.name,
                field=drift.field,
            )

    def _skipped_with(self, state: TaskState, plan: VerifiedPlan, step: StepProgress) -> str:
        agent = agent_of_step(state, self._wiring.registry, step)
        required = agent.spec.input_schema.get("required", ()) if agent is not None else ()
        for name, argument in plan.plan.steps[step.index].arguments.items():
            if (
                isinstance(argument, StepRef)
                and name in required
                and state.steps[argument.step].status == status_pb2.STEP_STATUS_SKIPPED
            ):
                return f"left out because step {argument.step} ({state.steps[argument.step].tool}) was left out"
        return ""

    def _context(
        self, state: TaskState, step: StepProgress, attempt: int, key: str, agreement: Agreement | None = None
    ) -> AgentContext:
        request = state.request.value if state.request is not None else {}
        payload = request.get("payload") or {}
        # Attachments beside a payload are crops of the document, not the document.
        document = str(payload.get("sha256", "")) or next((blob.sha256 for blob in state.attachments), "")
        return AgentContext(
            task_id=state.task_id,
            step=step.index,
            attempt=attempt,
            idempotency_key=key,
            now=state.as_of or self._wiring.clock(),
            caller=self._wiring.caller(state),
            trace_id=state.trace_id,
            request=request,
            device_id=state.device_id,
            document_sha256=document,
            diagnosis=step.diagnosis,
            turns_left=None if agreement is None else max(1, agreement.terms.within_turns - attempt + 1),
        )

    @staticmethod
    def _time_limit(state: TaskState, agent: RegisteredAgent, now: datetime) -> timedelta:
        limit = agent.spec.sla.timeout
        if state.expire_time is not None:
            limit = min(limit, max(state.expire_time - now, timedelta(milliseconds=1)))
        return limit


async def _invoked(engine: Engine, invocation: Invocation) -> Any:
    spec = invocation.spec
    if spec.engine == "python":
        return await engine.invoke(invocation)  # the step's own span says it all
    with span("podium.agent.call", kind="client", attributes={"podium.engine": spec.engine}):
        return await engine.invoke(invocation)


def _described(launch: Launch) -> Mapping[str, str | int]:
    spec, context = launch.agent.spec, launch.invocation.context
    return {
        "podium.task.id": context.task_id,
        "podium.step": context.step,
        "podium.step.attempt": context.attempt,
        "podium.agent": spec.name,
        "podium.agent.version": spec.version,
        "podium.engine": spec.engine,
    }
