"""A plan held against what is known of its task: agents, request, caller, and what is left of the budget."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agents.invocation import Caller
from agents.registry import AgentRegistry
from conductor.plan import Plan
from conductor.progress import TaskState
from conductor.verify import PlanLimits, VerifiedPlan, verified
from conductor.versions import agent_of_task


def verified_for(
    state: TaskState, plan: Plan, answer: int, registry: AgentRegistry, limits: PlanLimits
) -> VerifiedPlan:
    """The plan with the seal that lets it run for this task.

    Raises:
        PlanRejected: it must not run; `problems` and `evidence` list every reason.
    """
    request: Mapping[str, Any] = state.request.value if state.request is not None else {}
    return verified(
        plan,
        registry,
        request,
        caller_of(state),
        replace(limits, budget=limits.budget - _wasted(state, registry)),
        answer=answer,
        pick=partial(agent_of_task, state, registry),
    )


def caller_of(state: TaskState) -> Caller:
    """Whoever handed the task in, with the roles they had then.

    Tasks written before roles were recorded have those of a plain caller.
    """
    return Caller(name=state.caller, roles=state.caller_roles or frozenset({"caller"}))


def _wasted(state: TaskState, registry: AgentRegistry) -> float:
    """What the failed attempts have cost; the steps that succeeded are part of the plan's own cost."""
    failed = (registry.find(note.agent) for note in state.failures)
    return sum(agent.spec.cost for agent in failed if agent is not None)
