"""Which steps may start now, and in which order. Pure: no clock, no effects."""

from collections.abc import Sequence
from datetime import datetime

from conductor.plan import Plan
from conductor.progress import StepProgress
from podium.v1 import status_pb2


def ready(
    plan: Plan, steps: Sequence[StepProgress], *, max_parallel: int, now: datetime
) -> tuple[StepProgress, ...]:
    """The steps to start now: all they depend on has finished and no retry delay holds them back.

    Steps with the longest chain of dependents come first, because they decide when the task ends; then by index.

    Args:
        plan: The plan in force.
        steps: Its steps as far as the log goes.
        max_parallel: How many steps of the task may run at once.
        now: The present moment.
    """
    slots = max_parallel - sum(step.status == status_pb2.STEP_STATUS_RUNNING for step in steps)
    if slots <= 0:
        return ()
    done = {step.index for step in steps if step.finished}
    able = [
        step
        for step in steps
        if step.status == status_pb2.STEP_STATUS_PENDING
        and done.issuperset(plan.steps[step.index].depends_on)
        and (step.not_before is None or step.not_before <= now)
    ]
    if len(able) > 1:
        depth = chain_lengths(plan)
        able.sort(key=lambda step: (-depth[step.index], step.index))
    return tuple(able[:slots])


def next_retry(plan: Plan, steps: Sequence[StepProgress]) -> datetime | None:
    """The earliest moment at which a step that waits for its retry delay may start."""
    done = {step.index for step in steps if step.finished}
    moments = [
        step.not_before
        for step in steps
        if step.status == status_pb2.STEP_STATUS_PENDING
        and step.not_before is not None
        and done.issuperset(plan.steps[step.index].depends_on)
    ]
    return min(moments, default=None)


def chain_lengths(plan: Plan) -> tuple[int, ...]:
    """For each step of an acyclic plan, how many steps the longest chain that begins with it has."""
    lengths = [1] * len(plan.steps)
    dependents: list[list[int]] = [[] for _ in plan.steps]
    open_dependents = [0] * len(plan.steps)
    for index, step in enumerate(plan.steps):
        for before in set(step.depends_on):
            dependents[before].append(index)
            open_dependents[before] += 1
    leaves = [index for index, count in enumerate(open_dependents) if count == 0]
    while leaves:
        index = leaves.pop()
        for before in set(plan.steps[index].depends_on):
            lengths[before] = max(lengths[before], lengths[index] + 1)
            open_dependents[before] -= 1
            if open_dependents[before] == 0:
                leaves.append(before)
    return tuple(lengths)


def ancestors(plan: Plan, index: int) -> frozenset[int]:
    """Every step that must have finished before a step; the step itself only when it is on a cycle."""
    found: set[int] = set()
    pending = [before for before in plan.steps[index].depends_on if 0 <= before < len(plan.steps)]
    while pending:
        step = pending.pop()
        if step not in found:
            found.add(step)
            pending.extend(before for before in plan.steps[step].depends_on if 0 <= before < len(plan.steps))
    return frozenset(found)
