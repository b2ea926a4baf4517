"""The `policy` planner: the trained model proposes, wiring and schemas complete, verification decides.

Nothing leaves here that verification would refuse: the next best hypothesis is tried instead, and when none holds
the caller is asked or the request refused, with every reason.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from agents.registry import AgentRegistry, RegisteredAgent
from conductor.candidates import look_alikes, ranked_candidates
from conductor.clarifying import asks_caller, clarify_plan, mentions
from conductor.errors import NoPlan
from conductor.plan import Candidate, Plan, RequestRef, Step
from conductor.planner import Alternative, FinishedStep, Planner, Proposal, Situation
from conductor.policy.agent_cards import cards_of
from conductor.policy.drafting import Considered, Drafter
from conductor.policy.requests import request_text
from conductor.policy.selecting import NOTHING, Extra, Verdict
from conductor.policy.selecting_index import ToolIndex
from conductor.policy.templates import Offers, Template
from conductor.policy.wiring import Unfilled, Wired, Wiring
from conductor.problems import PlanProblem
from conductor.verify import verify

_TRIED = 6
"""Hypotheses that are tried for one request."""
_ALTERNATIVES = 3
_COMPLETED = 0.5
"""What is left of the confidence when other agents do the work than those that the model chose."""
_UNDERSTOOD = frozenset({"entities", "unresolved"})
"""Fields of the request that hold what its words were understood to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What became of one hypothesis."""

    proposal: Proposal | None = None
    reasons: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()


class PolicyPlanner:
    """Plans with the trained model; see `conductor.planner.Planner`. Safe for many tasks at once."""

    def __init__(
        self,
        drafter: Callable[[], Drafter],
        *,
        templates: Iterable[Template] = (),
        revisions: Planner | None = None,
    ) -> None:
        """Use a model that may be replaced while this plans.

        Args:
            drafter: Gives what drafts with the model that serves now.
            templates: Plans that packs wrote down: wiring for their agents.
            revisions: Who knows what a step's output changes: the `rules` planner, which has the packs' revisions.
        """
        self._drafter = drafter
        self._templates = tuple(templates)
        self._revisions = revisions
        self._offers = Offers()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="policy-planner")

    async def propose(self, situation: Situation) -> Proposal:
        """See `Planner.propose`.

        Raises:
            NoPlan: no hypothesis holds, and nobody can be asked; `evidence` has the reasons.
            OnnxError, ModelError: the model failed or cannot be loaded.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.plan, situation)

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        """See `Planner.revise`; what a step's output changes is written down in the packs."""
        if self._revisions is None:
            return None
        return await self._revisions.revise(situation, finished, origins_used=origins_used)

    def close(self) -> None:
        """Let go of the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def plan(self, situation: Situation) -> Proposal:
        """As `propose`, on the caller's thread."""
        drafter = self._drafter()
        with drafter.lock:
            proposal = self._plan(situation, drafter)
        # What serves may be another model by the time that somebody asks how sure this one had to be.
        return replace(proposal, thresholds=drafter.thresholds)

    def _plan(self, situation: Situation, drafter: Drafter) -> Proposal:
        text = request_text(situation.request)
        if not text:
            return _ask(situation, "there are neither words nor a document", ())
        permitted = tuple(
            agent for agent in situation.registry.serving() if agent.spec.permission in situation.caller.roles
        )
        found = self._best(situation, drafter, text, permitted)
        left = tuple(agent for agent in permitted if agent.spec.name not in situation.avoid)
        if found.proposal is None and len(left) < len(permitted):
            # Nobody can stand in for an agent that failed: what can be done without it at all?
            again = self._best(situation, drafter, text, left)
            reasons = (*found.reasons, *again.reasons)
            found = replace(again, reasons=reasons, unfilled=again.unfilled or found.unfilled)
        if found.proposal is not None:
            return found.proposal
        if found.unfilled:
            return _ask(situation, f"the request does not say {', '.join(found.unfilled)}", found.unfilled, found)
        if not found.reasons:
            return _ask(situation, "no agent here can serve the request", ())
        raise NoPlan(f"no plan holds: {found.reasons[0]}", evidence=found.reasons)

    def _best(
        self, situation: Situation, drafter: Drafter, text: str, agents: Sequence[RegisteredAgent]
    ) -> _Attempt:
        """The first hypothesis that makes a plan; one without tools ends the search."""
        cards = tuple(cards_of(agents).values())
        index = drafter.index(cards)
        told = _told_before(situation, index) if drafter.heeds_feedback else NOTHING
        considered = drafter.consider(text, index, extra=told)
        offers = self._offers.of(agents)
        wiring = Wiring(
            situation.request,
            [agent for agent in agents if agent.spec.name not in situation.avoid and not asks_caller(agent)],
            (*self._templates, *offers),
        )
        reasons: list[str] = []
        unfilled: tuple[str, ...] = ()
        for chosen in range(min(_TRIED, len(considered.hypotheses))):
            attempt = self._attempt(situation, drafter, considered, chosen, wiring)
            if attempt.proposal is not None:
                return attempt
            if not considered.hypotheses[chosen].tools:
                break
            reasons += attempt.reasons
            unfilled = unfilled or attempt.unfilled
        return _Attempt(reasons=tuple(reasons), unfilled=unfilled)

    def _attempt(
        self, situation: Situation, drafter: Drafter, considered: Considered, chosen: int, wiring: Wiring
    ) -> _Attempt:
        cards = considered.cards(chosen)
        agents = [situation.registry.find(card.name) for card in cards]
        if any(asks_caller(agent) for agent in agents):
            if not all(asks_caller(agent) for agent in agents):
                return _Attempt(reasons=(f"{_words(considered, chosen)}: asks the caller in the middle",))
            about = mentions(situation.request)
            reason = f"not understood: {', '.join(about)}" if about else "the request leaves open what is asked"
            asked = _asking(situation, reason, about)
            if asked is None:
                return _Attempt(reasons=(f"{reason}, and nobody can ask the caller",))
            asked = replace(asked, plan=replace(asked.plan, confidence=drafter.sure_of(considered, chosen)))
            return _Attempt(proposal=self._told(asked, drafter, considered, chosen))
        standing = [self._standing(agent, situation) for agent in agents if agent is not None]
        present = [agent for agent in standing if agent is not None]
        if not present or len(present) < len(cards):
            gone = sorted({card.name for card in cards} & situation.avoid) or ["an agent"]
            return _Attempt(reasons=(f"{_words(considered, chosen)}: {', '.join(gone)} failed",) if cards else ())
        filled = drafter.fill(considered, cards)
        reasons: list[str] = []
        try:
            for wired in wiring.plans(present, filled):
                plan = self._plan_of(wired, drafter, considered, chosen, situation)
                fatal = _fatal(plan, wired.answer, situation)
                if fatal:
                    reasons += [f"{_words(considered, chosen)}: {problem}" for problem in fatal]
                    continue
                if (about := mentions(situation.request)) and _rests_on_words(plan):
                    asked = _asking(situation, f"not understood: {', '.join(about)}", about)
                    if asked is not None:
                        return _Attempt(proposal=self._told(asked, drafter, considered, chosen))
                proposal = Proposal(
                    plan=plan, answer=wired.answer, planner="policy", origin=_origin(drafter), reason=""
                )
                return _Attempt(proposal=self._told(proposal, drafter, considered, chosen))
        except Unfilled as nothing:
            reasons.append(f"{_words(considered, chosen)}: nothing fills {nothing}")
            return _Attempt(reasons=tuple(reasons), unfilled=nothing.inputs)
        return _Attempt(reasons=tuple(reasons))

    def _standing(self, agent: RegisteredAgent, situation: Situation) -> RegisteredAgent | None:
        """The agent itself, or who can stand in for one that failed."""
        if agent.spec.name not in situation.avoid:
            return agent
        ranked = ranked_candidates(Step(tool=agent.spec.name), situation.registry, situation.avoid)
        permitted = (situation.registry.find(item.tool) for item in ranked)
        return next(
            (item for item in permitted if item is not None and item.spec.permission in situation.caller.roles),
            None,
        )

    def _plan_of(
        self, wired: Wired, drafter: Drafter, considered: Considered, chosen: int, situation: Situation
    ) -> Plan:
        steps = []
        sure_of_steps = drafter.sure_of_steps(considered, chosen)
        for step, place in zip(wired.steps, wired.origin, strict=True):
            shares = considered.hypotheses[chosen].candidates[place] if place is not None else ()
            scores = {considered.index.cards[tool].name: share for tool, share in shares}
            if place is not None:
                # Of the agent that the model chose; who stands in for it is as sure.
                scores |= {step.tool: sure_of_steps[place]}
            steps.append(replace(step, candidates=_candidates(step.tool, scores, situation.registry)))
        sure = drafter.sure_of(considered, chosen)
        judged = sorted(card.name for card in considered.cards(chosen))
        # What the model was sure of are its own agents; nobody judged the others.
        completed = sorted(step.tool for step in steps) != judged
        return Plan.of(steps, sure * _COMPLETED if completed else sure)

    def _told(self, proposal: Proposal, drafter: Drafter, considered: Considered, chosen: int) -> Proposal:
        """The proposal with how sure the model is of it and of the others that it saw."""
        others = [place for place in range(len(considered.hypotheses)) if place != chosen][:_ALTERNATIVES]
        alternatives = tuple(
            Alternative(
                tools=tuple(card.name for card in considered.cards(place)),
                confidence=drafter.sure_of(considered, place),
            )
            for place in others
        )
        return replace(proposal, alternatives=alternatives)


def _candidates(tool: str, scores: dict[str, float], registry: AgentRegistry) -> tuple[Candidate, ...]:
    """The chosen agent and those of the model's other choices that take and give the same."""
    agent = registry.find(tool)
    same = {tool, *(item.spec.name for item in look_alikes(agent, registry))} if agent is not None else {tool}
    known = {tool: scores.get(tool, 0.0)} | {name: share for name, share in scores.items() if name in same}
    ranked = sorted(known.items(), key=lambda item: (item[0] != tool, -item[1]))
    return tuple(Candidate(tool=name, score=min(max(share, 0.0), 1.0)) for name, share in ranked)


def _fatal(plan: Plan, answer: int, situation: Situation) -> tuple[PlanProblem, ...]:
    problems = verify(plan, situation.registry, situation.request, situation.caller, answer=answer)
    return tuple(problem for problem in problems if problem.fatal)


def _rests_on_words(plan: Plan) -> bool:
    """Whether an agent is given what the words were understood to say, and so has less than was said."""
    return any(
        isinstance(argument, RequestRef) and argument.path.split(".")[0] in _UNDERSTOOD
        for step in plan.steps
        for argument in step.arguments.values()
    )


def _told_before(situation: Situation, index: ToolIndex) -> Extra:
    """What became of the steps of earlier plans of the task, as far as their agents are there."""
    places = {card.name: place for place, card in enumerate(index.cards)}
    past = (step for step in situation.previous if step.agent in places)
    return Extra(feedback=tuple(Verdict(tool=places[step.agent], verdict=step.verdict) for step in past))


def _asking(situation: Situation, reason: str, about: tuple[str, ...]) -> Proposal | None:
    """A plan that asks the caller, None when nobody can."""
    asked = clarify_plan(situation.registry, situation.request, reason=reason, about=about, planner="policy")
    if asked is None or {step.tool for step in asked.plan.steps} & situation.avoid:
        return None
    return None if _fatal(asked.plan, asked.answer, situation) else asked


def _ask(situation: Situation, reason: str, about: tuple[str, ...], attempt: _Attempt | None = None) -> Proposal:
    asked = _asking(situation, reason, about)
    if asked is None:
        evidence = attempt.reasons if attempt is not None else ()
        raise NoPlan(f"{reason}, and no agent is on duty that could ask the caller", evidence=evidence)
    return asked


def _origin(drafter: Drafter) -> str:
    return f"podium-planner {drafter.model.version}".strip()


def _words(considered: Considered, chosen: int) -> str:
    return ", ".join(card.name for card in considered.cards(chosen)) or "no step"
