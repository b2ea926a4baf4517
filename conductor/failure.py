"""What is done about a failed step: a pure decision over the state.

In order: the same agent again with the diagnosis attached; another agent (level 1); waiting for a device that is
away; going on without a step that is not critical; a new plan that avoids the agent; a person (level 2); failing.
A write that may have happened is never blindly redone: only an agent that declares itself idempotent under its
key is asked again, otherwise a person looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.contract import HandoverBroken
from agents.spec import AgentSpec
from conductor.progress import StepProgress, TaskState
from podium.errors import (
    AgentError,
    AgentUnreachable,
    CapabilityDenied,
    CapabilityExpired,
    DeviceLost,
    DeviceOffline,
    InputContractBroken,
    InternalError,
    PodiumError,
    ServerUnavailable,
)
from podium.v1 import status_pb2

_HARMLESS = (InputContractBroken, CapabilityDenied, DeviceOffline)
"""Errors raised before the agent acts: a write certainly did not happen (but see `DeviceLost`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """How much is tried before a person is bothered."""

    max_replans: int = 3
    """Plan versions beyond the first."""
    device_wait: timedelta = timedelta(minutes=30)
    """How long a step waits for its device before a person is asked."""
    retry_delay: timedelta = timedelta(milliseconds=200)
    """Before the first retry of an agent that crashed or timed out; doubles each time."""
    max_retry_delay: timedelta = timedelta(seconds=10)
    max_retry_after: timedelta = timedelta(minutes=1)
    """How long an agent that names its own delay is waited for."""
    reviewers: bool = True
    """False where nobody settles reviews: then the task fails instead of waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is done about a failure, with what the record needs."""

    recovery: status_pb2.Recovery.ValueType
    next_agent: str = ""
    delay: timedelta = timedelta(0)
    deadline: datetime | None = None
    """For WAIT_DEVICE: until when."""
    level: int = 0
    """For REVIEW: 2, a person settles the step."""
    reason: str = ""


def on_failure(
    state: TaskState,
    step: StepProgress,
    error: PodiumError,
    *,
    spec: AgentSpec,
    alternatives: Sequence[str],
    degradable: bool,
    policy: FailurePolicy,
    now: datetime,
) -> Decision:
    """Decide about a failed attempt.

    Args:
        state: The task, with the step still as it was when the attempt ran.
        step: The step.
        error: Why the attempt failed.
        spec: The agent that failed.
        alternatives: Agents that could take the step over, best first; those tried before are left out here.
        degradable: The plan can be finished without the step.
        policy: How much is tried.
        now: The present moment.
    """
    # A device that was lost during the step may have written before: only an idempotent write waits for it.
    unsure = isinstance(error, DeviceLost) and not is_idempotent(spec)
    if isinstance(error, DeviceOffline) and not unsure and (wait := _wait_for_device(state, step, policy, now)):
        return wait
    harmless = isinstance(error, _HARMLESS) or (
        isinstance(error, HandoverBroken | AgentUnreachable) and error.before_call
    )
    if spec.side_effects == "write" and (unsure or not harmless):
        return _after_uncertain_write(step, error, spec, policy)
    if error.retryable and not isinstance(error, DeviceOffline) and step.failures < spec.sla.retries:
        return _retry(step, error, policy)
    if not isinstance(error, AgentError | InternalError | ServerUnavailable):
        # The request, a limit or stored data is at fault: another agent or a person cannot help.
        return Decision(recovery=status_pb2.RECOVERY_FAIL, reason="no other agent could do better")
    if isinstance(error, CapabilityDenied):
        return _not_permitted(state, error, policy)
    tried = {*step.agents_tried, spec.name}
    if fresh := [name for name in alternatives if name not in tried]:
        return Decision(
            recovery=status_pb2.RECOVERY_FALLBACK, next_agent=fresh[0], reason="another agent can do it"
        )
    if degradable:
        return Decision(recovery=status_pb2.RECOVERY_DEGRADE, reason="the answer can do without this step")
    if state.replans < policy.max_replans and not isinstance(error, DeviceOffline):
        return Decision(recovery=status_pb2.RECOVERY_REPLAN, reason="a new plan may avoid the agent")
    return give_up(policy)


def give_up(policy: FailurePolicy, *, level: int = 2) -> Decision:
    """What is left when nothing automatic helps: a person, or failing where there is none.

    Args:
        policy: Says whether somebody settles reviews.
        level: 2, a person settles one step; 3, a person takes the task over, because there is no plan any more.
    """
    if policy.reviewers:
        return Decision(recovery=status_pb2.RECOVERY_REVIEW, level=level, reason="a person has to settle the step")
    return Decision(recovery=status_pb2.RECOVERY_FAIL, reason="nobody is there to settle the step")


def _retry(step: StepProgress, error: PodiumError, policy: FailurePolicy) -> Decision:
    delay = timedelta(0)
    if error.code in ("AGENT_TIMEOUT", "AGENT_CRASHED", "AGENT_UNREACHABLE", "SERVER_UNAVAILABLE"):
        # A bad output is asked for again at once, with the diagnosis; a struggling agent gets time.
        delay = min(policy.retry_delay * 2**step.failures, policy.max_retry_delay)
    if error.retry_after is not None:
        # It says itself when it can be asked again.
        delay = max(delay, min(error.retry_after, policy.max_retry_after))
    return Decision(recovery=status_pb2.RECOVERY_RETRY, delay=delay, reason="the agent may do better")


def _after_uncertain_write(
    step: StepProgress, error: PodiumError, spec: AgentSpec, policy: FailurePolicy
) -> Decision:
    if is_idempotent(spec) and error.retryable and step.failures < spec.sla.retries:
        return _retry(step, error, policy)
    return give_up(policy)


def is_idempotent(spec: AgentSpec) -> bool:
    """Whether a write agent may be asked again under the same idempotency key (`settings.idempotent: true`)."""
    return spec.side_effects != "write" or spec.settings.get("idempotent") is True


def _not_permitted(state: TaskState, error: CapabilityDenied, policy: FailurePolicy) -> Decision:
    if isinstance(error, CapabilityExpired) and state.replans < policy.max_replans:
        return Decision(recovery=status_pb2.RECOVERY_REPLAN, reason="the permission is asked for anew")
    return Decision(recovery=status_pb2.RECOVERY_FAIL, reason="permission is not worked around")


def _wait_for_device(
    state: TaskState, step: StepProgress, policy: FailurePolicy, now: datetime
) -> Decision | None:
    if not state.device_id:
        return None
    deadline = step.device_deadline or now + policy.device_wait
    if state.expire_time is not None:
        deadline = min(deadline, state.expire_time)
    if now >= deadline:
        return None
    return Decision(
        recovery=status_pb2.RECOVERY_WAIT_DEVICE, deadline=deadline, reason="the step runs when the device is back"
    )
