"""What became of the steps of a task's plans so far, in the words that a trained planner is told it in.

Only what is settled counts: a step that succeeded, and an agent that failed a step for good. An attempt that was
made again says nothing of who should do the work.
"""

from collections.abc import Iterable

from conductor.planner import PastStep
from conductor.progress import FailureNote, TaskState
from podium.errors import (
    AgentTimeout,
    AgentUnreachable,
    CapabilityExpired,
    DeviceLost,
    DeviceOffline,
    LowConfidence,
    OutputContractBroken,
    ServerUnavailable,
    ValidatorFailed,
)
from podium.v1 import status_pb2

OK, FAILED, UNAVAILABLE, IRRELEVANT = "ok", "failed", "unavailable", "irrelevant"
_AWAY = frozenset(
    {
        *(error.code for error in (AgentTimeout, AgentUnreachable, DeviceLost, DeviceOffline, ServerUnavailable)),
        "DEVICE_CANNOT",  # said by devices
    }
)
_OF_NO_USE = frozenset(error.code for error in (LowConfidence, OutputContractBroken, ValidatorFailed))


def verdict_of(code: str) -> str:
    """What a failed step came to: the agent was not to be had, or brought nothing of use, or failed."""
    return UNAVAILABLE if code in _AWAY else IRRELEVANT if code in _OF_NO_USE else FAILED


def past_steps(state: TaskState) -> tuple[PastStep, ...]:
    """The settled steps of all plans so far: agents that failed for good first, then what was done."""
    done = [
        PastStep(agent=step.agent or step.tool, verdict=OK)
        for step in state.steps
        if step.status == status_pb2.STEP_STATUS_SUCCEEDED
    ]
    return (*_failed(state.failures, state.avoid), *done)


def _failed(notes: Iterable[FailureNote], avoid: frozenset[str]) -> tuple[PastStep, ...]:
    """Each agent to avoid with the verdict of its last failure."""
    last: dict[str, PastStep] = {}
    for note in notes:
        if note.agent in avoid and note.code != CapabilityExpired.code:
            last[note.agent] = PastStep(agent=note.agent, verdict=verdict_of(note.code), result=note.code)
    return tuple(last.values())
