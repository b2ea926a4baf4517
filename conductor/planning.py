"""Bring a plan into force: normalise the request, ask the planner, verify, keep what is finished."""

from collections.abc import Sequence
from dataclasses import replace

from conductor.checked_plan import verified_for
from conductor.clarifying import asks_caller, clarify_plan
from conductor.errors import NoPlan, PlanUnsure, TooManyQuestions
from conductor.failure import give_up
from conductor.finishing import Finisher
from conductor.journal import Journal
from conductor.keeping import kept_steps, may_be_kept
from conductor.past import past_steps
from conductor.plan import Argument, Plan, Step, StepRef
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.progress import ProposedPlan, StepProgress, TaskState
from conductor.request import build_request
from conductor.route import RouteEntry, route_of
from conductor.verify import PlanRejected, VerifiedPlan
from conductor.wiring import Wiring
from podium.errors import CapabilityExpired, PodiumError
from podium.rpc_status import error_detail
from podium.telemetry import span
from podium.v1 import event_pb2, status_pb2


class PlanOffice:
    """Plans tasks; a plan leaves here verified or not at all."""

    def __init__(self, wiring: Wiring, finisher: Finisher) -> None:
        """Use the process's wiring."""
        self._wiring = wiring
        self._finisher = finisher

    async def plan(self, journal: Journal, reason: str) -> VerifiedPlan | None:
        """Record a new plan for a task; None when there is none and the task ends or waits for a person."""
        try:
            with span("podium.plan") as planning:
                self._normalise(journal)
                proposed = await self._propose(journal.state)
                planning.set("podium.planner", proposed.planner)
                proposal = self._for_person(journal, proposed) if proposed.for_person else proposed
                if proposal is None:
                    return None
                adopted = self._adopt(journal, proposal, reason)
                planning.set("podium.plan.version", journal.state.plan_version)
                planning.set("podium.steps", len(adopted.plan.steps))
                return adopted
        except PodiumError as error:
            self._without_plan(journal, error)
            return None

    def revived(self, state: TaskState) -> VerifiedPlan | None:
        """The plan in force of a task that is taken up again; None when it no longer passes verification."""
        if state.plan is None or state.request is None or state.request_stale:
            return None
        try:
            return self._verified(state, state.plan, state.answer_step)
        except PlanRejected:
            return None

    async def revision(self, state: TaskState, step: StepProgress) -> Proposal | None:
        """A new plan, when the output of a finished step asks for one and a new plan is still allowed."""
        policy = self._wiring.settings.failure_policy
        if step.output is None or state.request is None or state.replans >= policy.max_replans:
            return None
        return await self._wiring.planner.revise(
            self._situation(state),
            FinishedStep(tool=step.tool, output=step.output.value),
            origins_used=state.origins_used,
        )

    def revise(self, journal: Journal, proposal: Proposal) -> VerifiedPlan | None:
        """Record a revised plan; None when verification refuses it and the plan in force goes on."""
        try:
            return self._adopt(journal, proposal, proposal.reason)
        except PodiumError:
            return None  # the refusal is on record; a plan that was good still is

    def _normalise(self, journal: Journal) -> None:
        state = journal.state
        if not state.request_stale:
            return
        wiring = self._wiring
        document = build_request(
            state,
            wiring.normalise,
            caller=wiring.caller(state),
            agents=[agent.spec.name for agent in wiring.registry.serving()],
            device_online=bool(state.device_id) and wiring.device_online(state.device_id),
        )
        journal.record(event_pb2.RequestNormalized(request_json=document.data))

    async def _propose(self, state: TaskState) -> Proposal:
        if state.person_plan is not None:
            return _by_person(state, state.person_plan)
        drifted = next((step for step in state.steps if step.recovery == status_pb2.RECOVERY_ASK), None)
        situation = self._situation(state)
        if drifted is not None and drifted.status == status_pb2.STEP_STATUS_FAILED and not state.request_stale:
            about = tuple(drifted.error.evidence[:1]) if drifted.error is not None else ()
            reason = state.replan_reason
            asking = clarify_plan(
                situation.registry, situation.request, reason=reason, about=about, planner="conductor"
            )
            if asking is not None and not _answered_since(state):
                return asking
        if state.plan is not None and _permission_expired(state):
            # Nothing is wrong with the plan: its steps from the one that permits on are done again.
            return Proposal(
                plan=state.plan,
                answer=state.answer_step,
                planner=state.planner,
                origin=state.origin,
                route=route_of(state.route),
            )
        proposal = await self._wiring.planner.propose(situation)
        if repeated := {step.tool for step in proposal.plan.steps} & state.avoid:
            raise NoPlan(f"the planner came back to {', '.join(sorted(repeated))}, which failed for good")
        return proposal

    def _for_person(self, journal: Journal, proposal: Proposal) -> Proposal | None:
        """Ask a person for the plan, None; where nobody settles reviews, a proposal that asks the caller instead.

        Raises:
            PlanUnsure: neither a person nor the caller can be asked.
        """
        route = proposal.route
        error = PlanUnsure(_unsure(proposal), evidence=[entry.words for entry in route])
        if give_up(self._wiring.settings.failure_policy, level=3).recovery == status_pb2.RECOVERY_REVIEW:
            self._ask_person(journal, error, proposal.plan, proposal.answer, route)
            return None
        situation = self._situation(journal.state)
        asking = clarify_plan(
            situation.registry, situation.request, reason=error.message, about=(), planner="conductor"
        )
        if asking is None:
            raise error
        return replace(asking, route=route)

    def _ask_person(
        self, journal: Journal, error: PodiumError, plan: Plan, answer: int, route: Sequence[RouteEntry]
    ) -> None:
        request = event_pb2.ReviewRequested(
            reason=error_detail(error),
            level=3,
            proposed_plan=plan.to_proto(),
            answer_step=answer,
            route=[entry.to_proto() for entry in route],
        )
        journal.record(request)

    def _adopt(self, journal: Journal, proposal: Proposal, reason: str) -> VerifiedPlan:
        state = journal.state
        if len(state.clarifications) >= self._wiring.settings.max_questions and self._only_asks(proposal):
            raise TooManyQuestions(f"the caller was asked {len(state.clarifications)} times")
        if self._only_asks(proposal):
            proposal = self._with_finished(state, proposal)
        try:
            plan = self._verified(state, proposal.plan, proposal.answer)
        except PlanRejected as error:
            journal.record(
                event_pb2.PlanRefused(
                    plan=error.plan.to_proto(),
                    planner=proposal.planner,
                    problems=[problem.to_proto() for problem in error.problems],
                )
            )
            raise
        kept = () if state.plan is None else self._kept(state, plan.plan)
        journal.record(
            event_pb2.PlanAdopted(
                plan=plan.plan.to_proto(),
                version=state.plan_version + 1,
                planner=proposal.planner,
                origin=proposal.origin,
                reason=reason or proposal.reason,
                kept=kept,
                warnings=[*proposal.warnings, *plan.warnings],
                answer_step=plan.answer,
                route=[entry.to_proto() for entry in proposal.route or self._only(proposal)],
            )
        )
        return plan

    def _only(self, proposal: Proposal) -> tuple[RouteEntry, ...]:
        """The route of a plan where only one planner was asked."""
        entry = RouteEntry(
            planner=proposal.planner,
            taken=True,
            reason=proposal.reason or f"{proposal.origin} fits",
            confidence=None if self._only_asks(proposal) else proposal.plan.confidence,
        )
        return (entry,)

    def _verified(self, state: TaskState, plan: Plan, answer: int) -> VerifiedPlan:
        with span("podium.verify", attributes={"podium.steps": len(plan.steps)}):
            limits = self._wiring.settings.plan_limits
            return verified_for(state, plan, answer, self._wiring.registry, limits)

    def _without_plan(self, journal: Journal, error: PodiumError) -> None:
        """There is no (new) plan: a person settles the step that failed, or the task fails with every reason.

        A plan that a person gave and that does not hold any more is the person's again.
        """
        if (given := journal.state.person_plan) is not None and isinstance(error, PlanRejected):
            self._ask_person(journal, error, given.plan, given.answer, route_of(journal.state.route))
            return
        failed = [step for step in journal.state.steps if step.status == status_pb2.STEP_STATUS_FAILED]
        decision = give_up(self._wiring.settings.failure_policy, level=3)
        if not failed or decision.recovery != status_pb2.RECOVERY_REVIEW:
            reason = failed[0].error if failed and failed[0].error is not None else error_detail(error)
            self._finisher.fail(journal, reason)
            return
        for step in failed:
            detail = step.error or error_detail(error)
            journal.record(event_pb2.ReviewRequested(reason=detail, level=decision.level), step=step.index)

    def _situation(self, state: TaskState) -> Situation:
        return Situation(
            request=_request(state),
            registry=self._wiring.registry,
            caller=self._wiring.caller(state),
            avoid=state.avoid,
            tenant=state.tenant or state.caller,
            previous=past_steps(state),
        )

    def _with_finished(self, state: TaskState, asking: Proposal) -> Proposal:
        """A plan that asks the caller and carries finished steps along, so that the plan after it can keep them.

        Only those that it would keep itself: what was asked before, or would be given something else by now, would
        run again under it for nothing.
        """
        carried = [step.index for step in state.steps if may_be_kept(step)]
        plan = _carrying(state, carried, asking).plan
        kept = {pair.old_index for pair in self._kept(state, plan)}
        return _carrying(state, [index for index in carried if index in kept], asking)

    def _kept(self, state: TaskState, plan: Plan) -> tuple[event_pb2.KeptStep, ...]:
        wiring = self._wiring
        return kept_steps(state, plan, _request(state), wiring.registry, now=wiring.clock())

    def _only_asks(self, proposal: Proposal) -> bool:
        return all(asks_caller(self._wiring.registry.find(step.tool)) for step in proposal.plan.steps)


def _by_person(state: TaskState, given: ProposedPlan) -> Proposal:
    reason = given.note or "a person gave the plan"
    entry = RouteEntry(planner="person", taken=True, reason=reason)
    return Proposal(
        plan=given.plan,
        answer=given.answer,
        planner="person",
        origin=given.person,
        reason=reason,
        route=(*route_of(state.route), entry),
    )


def _unsure(proposal: Proposal) -> str:
    needed = next((entry.threshold for entry in proposal.route if entry.planner == proposal.planner), None)
    limit = f"; {needed:.2f} is needed to run it unasked" if needed is not None else ""
    return f"the planner {proposal.planner} is {proposal.plan.confidence:.2f} sure of its plan{limit}"


def _request(state: TaskState) -> dict[str, object]:
    request: dict[str, object] = state.request.value if state.request is not None else {}
    return request


def _permission_expired(state: TaskState) -> bool:
    return not _answered_since(state) and any(
        step.status == status_pb2.STEP_STATUS_FAILED
        and step.error is not None
        and step.error.code == CapabilityExpired.code
        for step in state.steps
    )


def _answered_since(state: TaskState) -> bool:
    """Whether the new plan is wanted because the caller answered, not because a step drifted."""
    return not state.replan_reason.startswith("step ")


def _carrying(state: TaskState, carried: list[int], asking: Proposal) -> Proposal:
    """The steps `carried` of the plan in force, then those that ask."""
    if state.plan is None:
        return asking
    moved = {old: new for new, old in enumerate(carried)}
    steps = [_moved(state.plan.steps[old], moved) for old in carried]
    answer = len(steps) + asking.answer
    steps.extend(asking.plan.steps)
    return replace(asking, plan=Plan.of(steps, asking.plan.confidence), answer=answer)


def _moved(step: Step, moved: dict[int, int]) -> Step:
    arguments: dict[str, Argument] = {}
    for name, argument in step.arguments.items():
        if not isinstance(argument, StepRef):
            arguments[name] = argument
        elif argument.step in moved:
            arguments[name] = replace(argument, step=moved[argument.step])
    return replace(
        step, arguments=arguments, depends_on=tuple(moved[before] for before in step.depends_on if before in moved)
    )
