"""The `hybrid` planner: rules first, then the trained planner, then a person or the caller.

A plan of a rule that fits runs. Where none does, the trained planner's plan runs if it is sure enough; if it is
not quite, a person is asked for the plan; if it is far from sure, or no agent can serve the request, the caller is
asked. A request that a rule would fit but for words that nobody understood is asked back as ever: the trained
planner does not guess them. Who was asked, and why it was taken or not, goes with the plan.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from conductor.clarifying import asks_caller, clarify_plan, mentions
from conductor.errors import NoPlan
from conductor.planner import FinishedStep, Planner, Proposal, Situation
from conductor.route import RouteEntry
from conductor.thresholds import PlanThresholds
from podium.errors import InternalError, PlanInvalid, PodiumError

_LOG = logging.getLogger(__name__)


class RulePlanner(Planner, Protocol):
    """A planner that knows when only words that were not understood keep one of its rules from being followed."""

    def held_back_by_words(self, situation: Situation) -> bool:
        """Whether a rule fits but for words that nobody understood."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one planner said to a request."""

    planner: str
    proposal: Proposal | None = None
    asks: bool = False
    """Its plan only asks the caller: it has none that serves the request."""
    error: PodiumError | None = None

    @property
    def plan(self) -> Proposal | None:
        """A plan that serves the request, if it has one."""
        return None if self.asks else self.proposal

    @property
    def question(self) -> Proposal | None:
        """A plan that asks the caller, if that is what it has."""
        return self.proposal if self.asks else None

    @property
    def confidence(self) -> float | None:
        """How sure it is of a plan that serves the request."""
        return None if self.plan is None else self.plan.plan.confidence

    def reaches(self, threshold: float) -> bool:
        """Whether it has a plan and is sure enough of it."""
        return self.confidence is not None and self.confidence >= threshold

    def entry(self, *, taken: bool, reason: str, threshold: float | None = None) -> RouteEntry:
        """What is recorded of it."""
        return RouteEntry(
            planner=self.planner, taken=taken, reason=reason, confidence=self.confidence, threshold=threshold
        )


class HybridPlanner:
    """Asks rules, then the trained planner; see `conductor.planner.Planner`."""

    def __init__(
        self,
        rules: RulePlanner,
        policy: Planner,
        thresholds: Callable[[str, PlanThresholds | None], PlanThresholds],
    ) -> None:
        """Combine two planners.

        Args:
            rules: asked first; also knows the revisions of packs.
            policy: the trained planner; its plans' confidence is a calibrated probability.
            thresholds: how sure they must be, by the caller's tenant and what the model that made the plan was
                calibrated to, None where no model made one; see `TenantThresholds`.
        """
        self._rules = rules
        self._policy = policy
        self._thresholds = thresholds

    async def propose(self, situation: Situation) -> Proposal:
        """See `Planner.propose`; a proposal that is `for_person` must not run before a person said so.

        Raises:
            NoPlan: no planner has a plan, and nobody can ask the caller; `evidence` says what each of them said.
        """
        rules = await self._asked("rules", self._rules, situation)
        held_back = self._rules.held_back_by_words(situation)
        if held_back and rules.question is not None:
            return _routed(rules.question, rules.entry(taken=True, reason=rules.question.reason))
        if held_back and rules.plan is None and rules.error is not None:
            raise rules.error
        limits = self._limits(situation)
        if rules.plan is not None and rules.reaches(limits.rules):
            reason = f"the rule {rules.plan.origin} fits"
            return _routed(rules.plan, rules.entry(taken=True, reason=reason, threshold=limits.rules))
        policy = await self._asked("policy", self._policy, situation)
        # Anew: a plan is held against what its own model was calibrated to, whichever serves by now. The rules
        # were held against theirs.
        limits = replace(self._limits(situation, policy.proposal), rules=limits.rules)
        return _decided(situation, rules, policy, limits)

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        """See `Planner.revise`: what packs wrote down first, then the trained planner where it is sure enough."""
        revised = await self._rules.revise(situation, finished, origins_used=origins_used)
        if revised is not None:
            entry = RouteEntry(planner="rules", taken=True, reason=f"the revision {revised.origin} fits")
            return _routed(revised, entry)
        try:
            revised = await self._policy.revise(situation, finished, origins_used=origins_used)
            limits = self._thresholds(situation.tenant, revised.thresholds if revised is not None else None)
        except PodiumError as error:
            _LOG.warning("the trained planner did not look at a finished step: %s", error.code)
            return None
        if revised is None or revised.plan.confidence < limits.run:
            return None
        said = _Said(planner="policy", proposal=revised)
        return _routed(revised, said.entry(taken=True, reason=revised.reason, threshold=limits.run))

    def _limits(self, situation: Situation, planned: Proposal | None = None) -> PlanThresholds:
        try:
            return self._thresholds(situation.tenant, None if planned is None else planned.thresholds)
        except PodiumError as error:
            # Without thresholds nothing of the trained planner runs by itself; the rules have their default.
            _LOG.error("the trained planner has no thresholds: %s", error.code)
            return PlanThresholds(run=1.0, ask_person=1.0)

    async def _asked(self, name: str, planner: Planner, situation: Situation) -> _Said:
        try:
            proposal = await planner.propose(situation)
        except PodiumError as error:
            if not isinstance(error, NoPlan | PlanInvalid):
                _LOG.error("the planner %s could not plan: %s", name, error.code)
            return _Said(planner=name, error=error)
        except Exception as error:
            if planner is not self._policy:
                raise
            # A model may fail in ways that nobody foresaw; rules, a person or a question still serve the request.
            _LOG.exception("the planner %s failed", name)
            return _Said(planner=name, error=InternalError(f"it failed with {type(error).__name__}"))
        asks = all(asks_caller(situation.registry.find(step.tool)) for step in proposal.plan.steps)
        return _Said(planner=name, proposal=proposal, asks=asks)


def _decided(situation: Situation, rules: _Said, policy: _Said, limits: PlanThresholds) -> Proposal:
    """What becomes of a request that no rule is sure enough of."""
    before = rules.entry(
        taken=False, reason=_why_not(rules), threshold=limits.rules if rules.plan is not None else None
    )
    if policy.plan is not None and policy.reaches(limits.run):
        return _routed(
            policy.plan, before, policy.entry(taken=True, reason="sure enough to run", threshold=limits.run)
        )
    surest = max((rules, policy), key=lambda said: -1.0 if said.confidence is None else said.confidence)
    if surest.plan is not None and surest.reaches(limits.ask_person):
        after = policy.entry(taken=False, reason=_why_not(policy), threshold=_if_planned(policy, limits.run))
        return replace(_routed(surest.plan, before, after), for_person=True)
    return _question(situation, rules, policy, limits)


def _question(situation: Situation, rules: _Said, policy: _Said, limits: PlanThresholds) -> Proposal:
    """The caller is asked: by the planner that knows best what is open.

    Raises:
        NoPlan: what the caller could say would not help, or nobody can ask.
    """
    # Words that were not understood are what a caller can put right; only the rules' question names them.
    named = rules.question if mentions(situation.request) else None
    asking = named or policy.question or rules.question
    by_rules, by_policy = (asking is not None and asking is said.question for said in (rules, policy))
    route = (
        rules.entry(taken=by_rules, reason=_why_not(rules), threshold=_if_planned(rules, limits.rules)),
        policy.entry(taken=by_policy, reason=_why_not(policy), threshold=_if_planned(policy, limits.ask_person)),
    )
    reason = "no planner is sure of a plan for this request"
    if rules.error is not None:
        # Its rules fit and their agents failed, or nobody can ask.
        evidence = [entry.words for entry in route]
        raise NoPlan(rules.error.message, evidence=evidence, next_step=rules.error.next_step)
    if asking is None:
        registry, request = situation.registry, situation.request
        asking = clarify_plan(registry, request, reason=reason, about=(), planner="conductor")
    if asking is None or {step.tool for step in asking.plan.steps} & situation.avoid:
        message = f"{reason}, and no agent is on duty that could ask the caller"
        raise NoPlan(message, evidence=[entry.words for entry in route])
    return _routed(asking, *route)


def _why_not(said: _Said) -> str:
    if said.error is not None:
        known = isinstance(said.error, NoPlan | PlanInvalid)
        return said.error.message if known else f"not available, {said.error.code}: {said.error.message}"
    if said.question is not None:
        return said.question.reason or "it asks the caller"
    return "not sure enough of its plan"


def _if_planned(said: _Said, threshold: float) -> float | None:
    return None if said.plan is None else threshold


def _routed(proposal: Proposal, *route: RouteEntry) -> Proposal:
    return replace(proposal, route=route)
