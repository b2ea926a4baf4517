"""Static verification: every reason why a plan must not run, found without running it.

A plan runs only as a `VerifiedPlan`, and only `verified` makes one.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.invocation import Caller
from agents.registry import AgentRegistry, RegisteredAgent
from conductor.edges import edge_problems
from conductor.handover import handover_problems
from conductor.plan import Plan
from conductor.problems import PlanProblem
from conductor.scheduler import ancestors
from podium.errors import PlanInvalid

CLARIFY = "clarify"
"""Capability tag of the agent that asks the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """What one plan may be and cost."""

    max_steps: int = 40
    budget: float = 100.0
    """Sum of the steps' costs, in budget units."""


AgentPicker = Callable[[str], RegisteredAgent | None]
"""Says which version of an agent would do a step, by the agent's name."""


class _Seal:
    """Held by this module alone."""


_SEAL = _Seal()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPlan:
    """A plan that passed verification; made by `verified` and nowhere else."""

    plan: Plan
    answer: int
    """Index of the step whose output is the answer."""
    warnings: tuple[str, ...]
    seal: _Seal

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("a VerifiedPlan is made by conductor.verify.verified only")


def verify(
    plan: Plan,
    registry: AgentRegistry,
    request: Mapping[str, Any],
    caller: Caller,
    limits: PlanLimits = PlanLimits(),
    *,
    answer: int | None = None,
    pick: AgentPicker | None = None,
) -> tuple[PlanProblem, ...]:
    """Every problem of a plan, warnings included; the plan may run when none of them is fatal.

    Args:
        plan: The plan.
        registry: The agents on duty.
        request: The normalised request.
        caller: Who asked; permissions are checked against their roles.
        limits: How large and how dear a plan may be.
        answer: Index of the step whose output is the answer; the last when None.
        pick: The version of each agent that would do the work; those that serve when None.
    """
    return tuple(_problems(plan, pick or registry.find, request, caller, limits, answer))


def verified(
    plan: Plan,
    registry: AgentRegistry,
    request: Mapping[str, Any],
    caller: Caller,
    limits: PlanLimits = PlanLimits(),
    *,
    answer: int | None = None,
    pick: AgentPicker | None = None,
) -> VerifiedPlan:
    """The plan with the seal that lets it run; arguments as `verify`.

    Raises:
        PlanRejected: the plan must not run; `problems` and `evidence` list every reason.
    """
    problems = verify(plan, registry, request, caller, limits, answer=answer, pick=pick)
    if fatal := tuple(problem for problem in problems if problem.fatal):
        raise PlanRejected(plan, fatal)
    return VerifiedPlan(
        plan=plan,
        answer=len(plan.steps) - 1 if answer is None else answer,
        warnings=tuple(str(problem) for problem in problems),
        seal=_SEAL,
    )


class PlanRejected(PlanInvalid):
    """Verification refused a plan; `problems` holds every reason."""

    code = "PLAN_REJECTED"

    def __init__(self, plan: Plan, problems: tuple[PlanProblem, ...]) -> None:
        super().__init__(
            f"the plan has {len(problems)} problems: {problems[0]}",
            evidence=[str(problem) for problem in problems],
        )
        self.plan = plan
        self.problems = problems


def _problems(
    plan: Plan,
    pick: AgentPicker,
    request: Mapping[str, Any],
    caller: Caller,
    limits: PlanLimits,
    answer: int | None,
) -> Iterator[PlanProblem]:
    if not plan.steps:
        yield PlanProblem(code="EMPTY_PLAN", message="the plan has no step")
        return
    if not math.isfinite(plan.confidence) or not 0 <= plan.confidence <= 1:
        yield PlanProblem(code="CONFIDENCE", message=f"confidence {plan.confidence} is not in [0, 1]")
    if len(plan.steps) > limits.max_steps:
        message = f"{len(plan.steps)} steps, at most {limits.max_steps} are allowed"
        yield PlanProblem(code="TOO_MANY_STEPS", message=message)
    yield from _references(plan)
    cycle = find_cycle(plan)
    if cycle:
        names = " -> ".join(f"step {index} ({plan.steps[index].tool})" for index in (*cycle, cycle[0]))
        yield PlanProblem(code="CYCLE", message=f"steps wait for each other: {names}", step=cycle[0])
    elif not any(_outside(plan, index) for index in range(len(plan.steps))):
        yield from _groups(plan)
    agents = tuple(pick(step.tool) for step in plan.steps)
    for index, agent in enumerate(agents):
        yield from _agent(plan, index, agent, agents, caller)
    yield from _budget(agents, limits)
    yield from edge_problems(plan, agents, request)
    yield from handover_problems(plan, agents)
    yield from _answer(plan, agents, answer)


def _outside(plan: Plan, index: int) -> list[int]:
    return [before for before in plan.steps[index].depends_on if not 0 <= before < len(plan.steps)]


def _references(plan: Plan) -> Iterator[PlanProblem]:
    for index, step in enumerate(plan.steps):
        for before in step.depends_on:
            if not 0 <= before < len(plan.steps):
                message = f"depends on step {before}, the plan has {len(plan.steps)} steps"
                yield PlanProblem(code="DANGLING_REFERENCE", message=message, step=index)
            elif before == index:
                yield PlanProblem(code="SELF_REFERENCE", message="depends on itself", step=index)
            elif before > index:
                message = f"depends on step {before}, which comes after it"
                yield PlanProblem(code="FORWARD_REFERENCE", message=message, step=index)


def find_cycle(plan: Plan) -> tuple[int, ...]:
    """The steps of one cycle, in order; empty when there is none (a step that waits for itself is not counted)."""
    fresh, on_trail, done = 0, 1, 2
    marks = [fresh] * len(plan.steps)
    for start in range(len(plan.steps)):
        trail: list[int] = []
        pending: list[Iterator[int]] = [iter((start,))]
        while pending:
            following = next((item for item in pending[-1] if marks[item] != done), None)
            if following is None:
                pending.pop()
                if trail:
                    marks[trail.pop()] = done
            elif marks[following] == on_trail:
                return tuple(trail[trail.index(following) :])
            else:
                marks[following] = on_trail
                trail.append(following)
                pending.append(iter(_inside(plan, following)))
    return ()


def _inside(plan: Plan, index: int) -> list[int]:
    return [before for before in plan.steps[index].depends_on if before != index and 0 <= before < len(plan.steps)]


def _groups(plan: Plan) -> Iterator[PlanProblem]:
    place: dict[int, int] = {}
    for number, group in enumerate(plan.parallel_groups):
        for index in group:
            if not 0 <= index < len(plan.steps):
                message = f"parallel group {number} names step {index}, which there is not"
                yield PlanProblem(code="PARALLEL_GROUPS", message=message)
            elif index in place:
                message = "is in two parallel groups"
                yield PlanProblem(code="PARALLEL_GROUPS", message=message, step=index)
            else:
                place[index] = number
    for index, step in enumerate(plan.steps):
        if index not in place:
            yield PlanProblem(code="PARALLEL_GROUPS", message="is in no parallel group", step=index)
        elif late := [before for before in step.depends_on if place.get(before, -1) >= place[index]]:
            message = f"is grouped before or with step {late[0]}, on which it depends"
            yield PlanProblem(code="PARALLEL_GROUPS", message=message, step=index)


def _agent(
    plan: Plan,
    index: int,
    agent: RegisteredAgent | None,
    agents: tuple[RegisteredAgent | None, ...],
    caller: Caller,
) -> Iterator[PlanProblem]:
    tool = plan.steps[index].tool
    if agent is None:
        yield PlanProblem(code="UNKNOWN_AGENT", message=f"there is no agent {tool!r}", step=index)
        return
    if not agent.enabled:
        yield PlanProblem(code="DISABLED_AGENT", message=f"agent {tool!r} is out of service", step=index)
    if agent.spec.permission not in caller.roles:
        message = f"agent {tool!r} needs the role {agent.spec.permission!r}, which {caller.name!r} does not have"
        yield PlanProblem(code="PERMISSION", message=message, step=index)
    if agent.spec.requires:
        before = (agents[item] for item in ancestors(plan, index) - {index})
        brought = {tag for found in before if found is not None for tag in found.spec.capability_tags}
        for tag in agent.spec.requires:
            if tag not in brought:
                message = f"agent {tool!r} requires {tag!r}, which no step before it brings"
                yield PlanProblem(code="CAPABILITY_MISSING", message=message, step=index)


def _budget(agents: tuple[RegisteredAgent | None, ...], limits: PlanLimits) -> Iterator[PlanProblem]:
    cost = sum(agent.spec.cost for agent in agents if agent is not None)
    if cost > limits.budget:
        yield PlanProblem(code="BUDGET", message=f"costs {cost:g} units, {limits.budget:g} may be spent")


def _answer(plan: Plan, agents: tuple[RegisteredAgent | None, ...], answer: int | None) -> Iterator[PlanProblem]:
    index = len(plan.steps) - 1 if answer is None else answer
    if not 0 <= index < len(plan.steps):
        yield PlanProblem(code="NO_ANSWER", message=f"the answer is to come from step {index}, which there is not")
        return
    agent = agents[index]
    if agent is None or CLARIFY in agent.spec.capability_tags:
        return
    if "markdown" not in agent.spec.output_schema.get("properties", {}):
        message = f"gives the answer, and agent {agent.spec.name!r} produces no 'markdown'"
        yield PlanProblem(code="NO_ANSWER", message=message, step=index)
