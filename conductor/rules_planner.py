"""The `rules` planner: a CEL condition picks a plan template.

Rules and revisions come from packs, and agents that serve offer plans in their manifests. Of the rules that hold,
those of packs come first, then the highest priority wins, then the highest confidence, then the name. A request
that no rule fits, or that names something nobody understood, is asked back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.plan_rules import OfferedPlan, PlanRule, RevisionRule
from agents.registry import RegisteredAgent
from conductor.candidates import ranked_candidates
from conductor.clarifying import clarify_plan, mentions
from conductor.errors import NoPlan
from conductor.paths import PathMissing, lookup
from conductor.plan import Plan, PlanFormatError, RequestRef, Step
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.trimming import trimmed
from tools.rules.errors import RuleError, RuleEvaluationError
from tools.rules.expression import CelRule
from tools.rules.values import CelInput, to_cel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    condition: CelRule
    plan: Plan
    answer: int
    name: str
    confidence: float
    priority: int
    needs_words: bool


class RulesPlanner:
    """Plans from the rules of packs; see `conductor.planner.Planner`."""

    def __init__(self, rules: Iterable[PlanRule], revisions: Iterable[RevisionRule] = ()) -> None:
        """Compile the rules.

        Raises:
            PlanFormatError: a template is not a plan.
        """
        ordered = sorted(rules, key=lambda rule: (-rule.priority, -rule.confidence, rule.name))
        self._rules = tuple(_compiled(rule, rule.confidence) for rule in ordered)
        self._revisions = tuple((rule, _compiled(rule, 1.0)) for rule in revisions)
        self._offered: dict[str, tuple[_Compiled, ...]] = {}

    async def propose(self, situation: Situation) -> Proposal:
        """See `Planner.propose`."""
        values = _Values(request=situation.request)
        warnings: list[str] = []
        about = mentions(situation.request)
        rules = (*self._rules, *self._offers(situation, warnings))
        understood = [rule for rule in rules if not about or not rule.needs_words]
        fitting = [rule for rule in understood if _holds(rule, values, warnings)]
        if fitting:
            for rule in fitting:
                plan = adapt(rule.plan, situation)
                if plan is not None:
                    return _proposal(plan, rule, "rules", warnings=tuple(warnings))
            lacking = {name for rule in fitting for name in _lacking(rule.plan, situation)} | situation.avoid
            names = ", ".join(sorted(lacking))
            raise NoPlan(
                f"every plan for this request needs one of {names}, which failed or do not serve",
                next_step="Put the agent right or add another one with the same capability, then send it again.",
            )
        reason = (
            f"not understood: {', '.join(about)}"
            if about
            else "no plan rule fits the request as it was understood"
        )
        asking = clarify_plan(situation.registry, situation.request, reason=reason, about=about, planner="rules")
        if asking is None:
            raise NoPlan(f"{reason}, and no agent is on duty that could ask the caller")
        return replace(asking, warnings=tuple(warnings))

    def held_back_by_words(self, situation: Situation) -> bool:
        """Whether a rule fits the request and is not followed because of words that nobody understood."""
        if not mentions(situation.request):
            return False
        # A rule may itself demand that everything was understood.
        values = _Values(request={**situation.request, "unresolved": []})
        rules = (*self._rules, *self._offers(situation, []))
        return any(rule.needs_words and _holds(rule, values, []) for rule in rules)

    def _offers(self, situation: Situation, warnings: list[str]) -> list[_Compiled]:
        """What the agents on duty offer, best first; compiled once for each manifest."""
        known, self._offered = self._offered, {}
        for agent in situation.registry.serving():
            try:
                self._offered[agent.manifest_sha256] = known.get(agent.manifest_sha256) or _offered(agent)
            except PlanFormatError as error:
                warnings.append(f"what {agent.spec.name} offers is left out: {error}")
        found = [rule for rules in self._offered.values() for rule in rules]
        return sorted(found, key=lambda rule: (-rule.priority, -rule.confidence, rule.name))

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        """See `Planner.revise`."""
        values: _Values | None = None
        for rule, compiled in self._revisions:
            if rule.after != finished.tool or f"revision/{rule.name}" in origins_used:
                continue
            if values is None:
                device = situation.request.get("device") or {"id": "", "online": False}
                values = _Values(request=situation.request, output=finished.output, device=device)
            warnings: list[str] = []
            if _holds(compiled, values, warnings) and (plan := adapt(compiled.plan, situation)) is not None:
                return _proposal(plan, compiled, "revision", reason=rule.reason, warnings=tuple(warnings))
        return None


def adapt(template: Plan, situation: Situation) -> Plan | None:
    """A template made into a plan for this request; None when a step has no agent left.

    Agents to avoid, unknown or out of service are replaced by the step's best other candidate, then by another
    agent with the same capabilities whose schemas fit. Optional arguments that the request does not hold are left
    out. Candidates are ranked by score, the chosen one among them.
    """
    steps: list[Step] = []
    for step in template.steps:
        ranked = ranked_candidates(step, situation.registry, situation.avoid)
        if not ranked:
            return None
        steps.append(_for_request(replace(step, tool=ranked[0].tool, candidates=ranked), situation))
    return Plan.of(steps, template.confidence)


def _lacking(template: Plan, situation: Situation) -> list[str]:
    """The agents of a template's steps that nobody can do now."""
    return [
        step.tool for step in template.steps if not ranked_candidates(step, situation.registry, situation.avoid)
    ]


def _for_request(step: Step, situation: Situation) -> Step:
    agent = situation.registry.find(step.tool)
    required = agent.spec.input_schema.get("required", ()) if agent is not None else tuple(step.arguments)
    kept = {
        name: argument
        for name, argument in step.arguments.items()
        if name in required or not isinstance(argument, RequestRef) or _has(situation.request, argument.path)
    }
    return replace(step, arguments=kept)


def _has(request: Mapping[str, Any], path: str) -> bool:
    try:
        return lookup(request, path) is not None
    except PathMissing:
        return False


def _compiled(rule: PlanRule | RevisionRule, confidence: float) -> _Compiled:
    plan = Plan.from_json({"steps": [_with_candidates(step) for step in rule.steps], "confidence": confidence})
    return _Compiled(
        condition=CelRule.compile(rule.when),
        plan=plan,
        answer=rule.answer_step,
        name=rule.name,
        confidence=confidence,
        priority=rule.priority if isinstance(rule, PlanRule) else 0,
        needs_words=isinstance(rule, PlanRule) and rule.needs_words,
    )


def offered_plan(rule: OfferedPlan) -> tuple[Plan, int]:
    """The plan that an agent offers, as it stands in its manifest, and the index of its answer step.

    Raises:
        PlanFormatError: it is none.
    """
    compiled = _compiled(rule, rule.confidence)
    return compiled.plan, compiled.answer


def _offered(agent: RegisteredAgent) -> tuple[_Compiled, ...]:
    """An agent's plans, each named after it."""
    return tuple(
        replace(_compiled(plan, plan.confidence), name=f"{agent.spec.name}.{plan.name}")
        for plan in agent.spec.plans
    )


def _with_candidates(step: Mapping[str, Any]) -> dict[str, Any]:
    """Templates may name candidates without a score: those get falling ones."""
    listed: Sequence[Any] = step.get("candidates", ())
    candidates = [
        {"tool": item, "score": round(0.9 - 0.1 * min(place, 8), 2)} if isinstance(item, str) else item
        for place, item in enumerate(listed)
    ]
    return {**step, "candidates": candidates}


class _Values:
    """What rules look at, trimmed and converted for CEL when the first rule asks and not again for the others."""

    def __init__(self, **values: Any) -> None:
        self._values = values
        self._converted: CelInput | None = None

    def seen_by(self, rule: CelRule) -> CelInput | Mapping[str, Any]:
        """The values for a rule.

        Raises:
            RuleError: they have no counterpart in CEL, or are too many.
        """
        if rule.variables.isdisjoint(self._values):
            return {}
        if self._converted is None:
            self._converted = to_cel(trimmed(self._values), expression=rule.expression)
        return self._converted


def _holds(rule: _Compiled, values: _Values, warnings: list[str]) -> bool:
    try:
        return rule.condition.holds(values.seen_by(rule.condition))
    except RuleEvaluationError as error:
        if error.reason != "missing_field":
            warnings.append(f"rule {rule.name}: {error}")
        # A rule that speaks of a field this request does not have is not about this request.
        return False
    except RuleError as error:
        warnings.append(f"rule {rule.name}: {error}")
        return False


def _proposal(
    plan: Plan, rule: _Compiled, planner: str, *, reason: str = "", warnings: tuple[str, ...] = ()
) -> Proposal:
    return Proposal(
        plan=plan, answer=rule.answer, planner=planner, origin=rule.name, reason=reason, warnings=warnings
    )
