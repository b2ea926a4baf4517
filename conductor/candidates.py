"""Which agents can do a step: the planned one, the planner's candidates, and look-alikes from the registry."""

from dataclasses import replace

from agents.registry import AgentRegistry, RegisteredAgent
from conductor.plan import Candidate, Plan, Step
from conductor.schema_fit import misfits


def ranked_candidates(step: Step, registry: AgentRegistry, avoid: frozenset[str]) -> tuple[Candidate, ...]:
    """Agents on duty that can do a step, best first: the planned one, its candidates, then look-alikes."""
    named = [Candidate(tool=step.tool, score=1.0)]
    named += sorted(step.candidates, key=lambda candidate: -candidate.score)
    names = dict.fromkeys(candidate.tool for candidate in named)
    scores = {candidate.tool: candidate.score for candidate in reversed(named)}
    scores |= {candidate.tool: candidate.score for candidate in step.candidates}
    planned = registry.find(step.tool)
    if planned is not None:
        for agent in look_alikes(planned, registry):
            names.setdefault(agent.spec.name)
            scores.setdefault(agent.spec.name, 0.5)
    return tuple(
        Candidate(tool=name, score=scores[name])
        for name in names
        if name not in avoid and (found := registry.find(name)) is not None and found.enabled
    )


def look_alikes(agent: RegisteredAgent, registry: AgentRegistry) -> tuple[RegisteredAgent, ...]:
    """Other agents on duty with every capability of an agent, that accept its inputs and produce its outputs."""
    spec = agent.spec
    found = []
    for other in registry.with_capability(spec.capability_tags[0]):
        if other.spec.name == spec.name or not set(spec.capability_tags) <= set(other.spec.capability_tags):
            continue
        if other.spec.side_effects != spec.side_effects or other.spec.permission != spec.permission:
            continue
        inputs = misfits(spec.input_schema, spec.input_schema, other.spec.input_schema, other.spec.input_schema)
        outputs = misfits(
            other.spec.output_schema, other.spec.output_schema, spec.output_schema, spec.output_schema
        )
        if not any(misfit.certain for misfit in (*inputs, *outputs)):
            found.append(other)
    return tuple(sorted(found, key=lambda other: (other.spec.cost, other.spec.name)))


def substituted(plan: Plan, index: int, tool: str) -> Plan:
    """The plan with another agent at one step."""
    steps = (*plan.steps[:index], replace(plan.steps[index], tool=tool), *plan.steps[index + 1 :])
    return replace(plan, steps=steps)
