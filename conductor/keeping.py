"""Which steps of the plan before go on under a new plan.

A step is kept when the new plan has a step of the same agent that would be given exactly the same input, byte for
byte, once the indices are mapped. Finished steps so keep their outputs and are not run again, and a write that
waits for a person keeps its name, hence its idempotency key.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agents.canonical import canonical_json
from agents.registry import AgentRegistry
from conductor.clarifying import asks_caller
from conductor.inputs import resolve_inputs
from conductor.plan import Plan, Step, StepRef
from conductor.progress import StepProgress, TaskState
from podium.errors import InputContractBroken
from podium.v1 import event_pb2, status_pb2

_KEPT = frozenset(
    {status_pb2.STEP_STATUS_SUCCEEDED, status_pb2.STEP_STATUS_WAITING, status_pb2.STEP_STATUS_RUNNING}
)


def may_be_kept(step: StepProgress) -> bool:
    """Whether a step can go on under a new plan.

    Besides finished and waiting steps these are steps that were started and are not given up: a write among them
    may have happened, and only under its old name does it keep the key that tells.
    """
    return step.status in _KEPT or (step.status == status_pb2.STEP_STATUS_PENDING and step.attempts > 0)


def kept_steps(
    state: TaskState, plan: Plan, request: Mapping[str, Any], registry: AgentRegistry, *, now: datetime
) -> tuple[event_pb2.KeptStep, ...]:
    """Pairs of old and new index.

    Args:
        state: The task under its present plan.
        plan: The new plan.
        request: The normalised request that the new plan refers to.
        registry: Questions to the caller are never kept: asking again is what a new plan means by them.
        now: The present moment: an output that says when it `expires` is not kept past that.
    """
    left = [
        step
        for step in state.steps
        if may_be_kept(step) and not asks_caller(registry.find(step.tool)) and not _expired(step, now)
    ]
    outputs: dict[int, Any] = {}
    pairs: list[event_pb2.KeptStep] = []
    for index, step in enumerate(plan.steps):
        given = _given(step, request, outputs)
        if given is None:
            continue
        match = next((old for old in left if _same(old, step, given)), None)
        if match is None:
            continue
        left.remove(match)
        pairs.append(event_pb2.KeptStep(old_index=match.index, new_index=index))
        if match.output is not None:
            outputs[index] = match.output.value
    return tuple(pairs)


def _expired(step: StepProgress, now: datetime) -> bool:
    expires = step.output.value.get("expires") if step.output is not None else None
    if not isinstance(expires, str):
        return False
    try:
        moment = datetime.fromisoformat(expires)
    except ValueError:
        return False  # another agent's word for something else
    return moment.tzinfo is not None and moment <= now


def _given(step: Step, request: Mapping[str, Any], outputs: Mapping[int, Any]) -> bytes | None:
    """What the step would be given, or None while it waits for a step that has to run (again)."""
    needed = {argument.step for argument in step.arguments.values() if isinstance(argument, StepRef)}
    if not outputs.keys() >= needed:
        return None
    try:
        return canonical_json(resolve_inputs(step, request=request, outputs=outputs))
    except InputContractBroken:
        return None


def _same(old: StepProgress, step: Step, given: bytes) -> bool:
    return step.tool in (old.tool, old.agent) and old.input is not None and old.input.data == given
