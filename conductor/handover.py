"""Hand-overs: what an agent promises whom it gives values to, and within how many turns it is to be answered.

A giver's manifest says `handovers: [{to, within_turns, parameters}]`. It holds for every step that takes arguments
from the giver's output and whose agent `to` names, by its own name or by one of its capability tags:

- the arguments taken from the giver must satisfy `parameters`, before the receiver is called;
- the receiver's step must have an accepted output by turn `within_turns`. Every call of the step is a turn: the
  first, retries, and agents that took over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.contract import HandoverBroken, HandoverContract
from agents.registry import AgentRegistry, RegisteredAgent
from agents.spec import AgentSpec
from conductor.plan import Plan, Step, StepRef
from conductor.problems import PlanProblem
from conductor.progress import TaskState
from conductor.schema_fit import FieldUnknown, field_schema, misfits
from conductor.versions import agent_that_did
from podium.errors import (
    AgentError,
    CapabilityDenied,
    DeviceOffline,
    InputContractBroken,
    PodiumError,
    ServerUnavailable,
)

_NO_TURN = (HandoverBroken, CapabilityDenied, DeviceOffline, InputContractBroken)
"""What is not the receiver's poor answer, and is not made one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One hand-over between two steps of a plan."""

    giver: RegisteredAgent
    giver_step: int
    terms: HandoverContract
    taken: Mapping[str, StepRef]
    """The receiver's arguments that come from the giver."""


def agreements(step: Step, receiver: AgentSpec, givers: Mapping[int, RegisteredAgent]) -> tuple[Agreement, ...]:
    """The hand-overs that hold for a step.

    Args:
        step: The receiving step.
        receiver: The agent that does it.
        givers: The agents of the steps before it, by index; steps that are not there hand nothing over.
    """
    taken: dict[int, dict[str, StepRef]] = {}
    for name, argument in step.arguments.items():
        if isinstance(argument, StepRef):
            taken.setdefault(argument.step, {})[name] = argument
    return tuple(
        Agreement(giver=givers[index], giver_step=index, terms=terms, taken=references)
        for index, references in sorted(taken.items())
        if index in givers
        for terms in givers[index].contract.handovers
        if terms.concerns(receiver)
    )


def agreements_of(
    state: TaskState, index: int, receiver: AgentSpec, registry: AgentRegistry
) -> tuple[Agreement, ...]:
    """The hand-overs that hold for a step of a running task when `receiver` does it."""
    if state.plan is None:
        return ()
    step = state.plan.steps[index]
    givers = {
        before: giver
        for before in step.depends_on
        if state.steps[before].output is not None
        and (giver := agent_that_did(registry, state.steps[before])) is not None
    }
    return agreements(step, receiver, givers)


def check_parameters(
    found: Sequence[Agreement], receiver: AgentSpec, inputs: Mapping[str, Any], *, turn: int
) -> None:
    """Return only if what is handed over is what was agreed on.

    Args:
        found: The hand-overs that hold for the step.
        receiver: The agent that is about to be called.
        inputs: Its inputs, resolved.
        turn: Of the receiving step, from 1.

    Raises:
        HandoverBroken: the giver broke its promise; it is the agent at fault.
    """
    for agreement in found:
        values = {name: inputs[name] for name in agreement.taken if name in inputs}
        if violations := agreement.terms.violations(values):
            giver = agreement.giver.spec.name
            raise HandoverBroken(
                f"{giver} (step {agreement.giver_step}) hands {receiver.name} other parameters than agreed, "
                f"turn {turn}: {violations[0]}",
                giver=giver,
                receiver=receiver.name,
                turn=turn,
                at_fault=giver,
                evidence=violations,
            )


def strictest(found: Sequence[Agreement]) -> Agreement | None:
    """The hand-over with the fewest turns, None when none holds."""
    return min(found, key=lambda agreement: agreement.terms.within_turns, default=None)


def out_of_turns(
    found: Sequence[Agreement], receiver: AgentSpec, error: PodiumError, *, turn: int
) -> HandoverBroken | None:
    """The error that takes the place of a failure after which no turn is left, or None while one is.

    Args:
        found: The hand-overs that hold for the step.
        receiver: The agent whose turn it was.
        error: Why the last turn failed.
        turn: The turn that failed, from 1.
    """
    if not isinstance(error, AgentError | ServerUnavailable) or isinstance(error, _NO_TURN):
        return None
    agreement = strictest(found)
    if agreement is None or turn < agreement.terms.within_turns:
        return None
    giver = agreement.giver.spec.name
    return HandoverBroken(
        f"{receiver.name} gave no accepted response to {giver} (step {agreement.giver_step}) within "
        f"{agreement.terms.within_turns} turns; turn {turn} ended with {error.code}: {error.message[:200]}",
        giver=giver,
        receiver=receiver.name,
        turn=turn,
        evidence=[f"{error.code}: {error.message}", *error.evidence],
    )


def handover_problems(plan: Plan, agents: Sequence[RegisteredAgent | None]) -> Iterator[PlanProblem]:
    """What a plan's edges have against the hand-overs on them, as far as schemas tell."""
    givers = {index: agent for index, agent in enumerate(agents) if agent is not None}
    for index, (step, receiver) in enumerate(zip(plan.steps, agents, strict=True)):
        if receiver is None:
            continue
        for agreement in agreements(step, receiver.spec, givers):
            for message, fatal in _mismatches(agreement):
                between = f"hand-over from step {agreement.giver_step} ({agreement.giver.spec.name})"
                yield PlanProblem(
                    code="HANDOVER_MISMATCH", message=f"{between}: {message}", step=index, fatal=fatal
                )


def _mismatches(agreement: Agreement) -> Iterator[tuple[str, bool]]:
    terms = agreement.terms.parameters
    declared = terms.get("properties", {})
    for name in terms.get("required", ()):
        if name not in agreement.taken:
            yield f"argument {name!r} is agreed on, and the plan does not take it from there", True
    output = agreement.giver.contract.output_schema
    for name, reference in agreement.taken.items():
        if name not in declared:
            if terms.get("additionalProperties", True) is False:
                yield f"argument {name!r} is not agreed on", True
            continue
        try:
            produced = field_schema(output, reference.field)
        except FieldUnknown:
            continue  # told as UNKNOWN_FIELD
        for misfit in misfits(produced, output, declared[name], terms):
            place = misfit.place.removeprefix("$").lstrip(".")
            yield f"argument {name!r}{f' at {place}' if place else ''}: {misfit.message}", misfit.certain
