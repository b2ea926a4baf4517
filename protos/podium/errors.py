"""Every error Podium raises on purpose: a closed tree, each with a code, a gRPC status and what to do next.

::

    PodiumError
    ├── InvalidRequest            the caller must change the request
    │   └── UnsupportedMedia      a file of a kind that cannot be read
    ├── NotFound                  task, blob, agent or question
    ├── Unauthenticated           no credentials, or none that are good
    ├── PermissionDenied          good credentials, and the role does not allow the call
    ├── Conflict                  the state does not allow it
    │   └── VersionConflict       somebody else wrote first; read again
    ├── PlanInvalid               verification refused the plan
    ├── AgentError                an agent did not do its job
    │   ├── AgentTimeout
    │   ├── AgentCrashed
    │   ├── AgentUnreachable      it runs elsewhere and cannot be reached
    │   ├── AgentOverLimit        it used more than its manifest allows and was stopped
    │   ├── InputContractBroken
    │   ├── OutputContractBroken
    │   ├── ValidatorFailed
    │   ├── LowConfidence
    │   ├── CapabilityDenied      no valid capability token for the action
    │   │   └── CapabilityExpired
    │   └── DeviceOffline
    │       └── DeviceLost        it went away while it did the step
    ├── LimitExceeded             a size, quota or budget
    │   └── StorageFull
    ├── ServerUnavailable         not reachable, draining or starting
    ├── TimeLimitExceeded
    ├── DataCorrupt               stored bytes do not match their hash
    └── InternalError             a defect in Podium

Packages below add their own leaves (SQL, images, models); a test proves that every code is unique and maps to
a gRPC status.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import ClassVar

from grpc import StatusCode


class PodiumError(Exception):
    """Base of the tree: a message that may be shown to anybody, and what to do next."""

    code: str = "INTERNAL"
    """Of the class, except where a server sent one that this process has no class for."""
    status: ClassVar[StatusCode] = StatusCode.INTERNAL
    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without a change."""
    advice: ClassVar[str] = "Report this with the task id; it is a defect in Podium."

    def __init__(
        self,
        message: str,
        *,
        next_step: str = "",
        evidence: Sequence[str] = (),
        agent: str = "",
        field: str = "",
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = _sendable(message)
        self.next_step = _sendable(next_step or self.advice)
        self.evidence = tuple(map(_sendable, evidence))
        self.agent = agent
        self.field = field
        """The request field at fault, for google.rpc.BadRequest."""
        self.retry_after = retry_after
        """When the same call may succeed, for google.rpc.RetryInfo; None where that is not known."""


class InvalidRequest(PodiumError):
    """The request cannot be served as it is."""

    code = "INVALID_REQUEST"
    status = StatusCode.INVALID_ARGUMENT
    advice = "Change the field named in the message and send the request again."


class UnsupportedMedia(InvalidRequest):
    """A file that is not a readable PNG, JPEG or PDF."""

    code = "UNSUPPORTED_MEDIA"
    advice = "Send a PNG, JPEG or PDF that opens in an image viewer."


class NotFound(PodiumError):
    """There is nothing of that name."""

    code = "NOT_FOUND"
    status = StatusCode.NOT_FOUND
    advice = "Check the identifier; `podium task list` and `podium agents list` show what there is."


class Unauthenticated(PodiumError):
    """The call came without credentials, or with none that are good."""

    code = "UNAUTHENTICATED"
    status = StatusCode.UNAUTHENTICATED
    advice = (
        "Give a token (--token-file or PODIUM_TOKEN) or an enrolled machine's identity; an operator makes them."
    )


class PermissionDenied(PodiumError):
    """Who calls is known, and may not do this."""

    code = "PERMISSION_DENIED"
    status = StatusCode.PERMISSION_DENIED
    advice = "Ask the administrator for the role named in the message."


class Conflict(PodiumError):
    """The state of the task does not allow the call."""

    code = "CONFLICT"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Read the task again with `podium task get` and act on its present state."


class VersionConflict(Conflict):
    """Somebody else appended to the task's log first."""

    code = "VERSION_CONFLICT"
    status = StatusCode.ABORTED
    retryable = True
    advice = "Read the task again and repeat the call."


class PlanInvalid(PodiumError):
    """Verification refused the plan; `evidence` lists every reason."""

    code = "PLAN_INVALID"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Mend the plan rule or the agents it names; `podium plan` shows every reason."


class AgentError(PodiumError):
    """An agent did not do its job."""

    code = "AGENT_ERROR"
    advice = "`podium task diagnose` names the step and its evidence."


class AgentTimeout(AgentError):
    """An agent did not answer within its time limit."""

    code = "AGENT_TIMEOUT"
    status = StatusCode.DEADLINE_EXCEEDED
    retryable = True


class AgentCrashed(AgentError):
    """An agent raised an error of its own."""

    code = "AGENT_CRASHED"
    retryable = True


class AgentUnreachable(AgentError):
    """An agent runs elsewhere and cannot be reached, or its host died during the call."""

    code = "AGENT_UNREACHABLE"
    status = StatusCode.UNAVAILABLE
    retryable = True
    advice = "Check that the agent's host is running and reachable; another agent or host takes over meanwhile."
    before_call: bool = False
    """Whether it was certainly not called, so that a write certainly did not happen."""


class AgentOverLimit(AgentError):
    """An agent used more processor time, memory, output or processes than its manifest allows, and was stopped."""

    code = "AGENT_OVER_LIMIT"
    status = StatusCode.RESOURCE_EXHAUSTED
    advice = "Raise the limit named in the message in the agent's manifest, or mend the agent."


class InputContractBroken(AgentError):
    """What an agent was to be given does not satisfy its input schema."""

    code = "INPUT_CONTRACT_BROKEN"


class OutputContractBroken(AgentError):
    """What an agent returned does not satisfy its output schema."""

    code = "OUTPUT_CONTRACT_BROKEN"
    retryable = True


class ValidatorFailed(AgentError):
    """A validator refused an agent's output."""

    code = "VALIDATOR_FAILED"
    retryable = True


class LowConfidence(AgentError):
    """An agent was less sure of its output than its confidence gate asks."""

    code = "LOW_CONFIDENCE"


class CapabilityDenied(AgentError):
    """No valid capability token for the action."""

    code = "CAPABILITY_DENIED"
    status = StatusCode.PERMISSION_DENIED
    advice = "The plan must pass the action through the security agent first."


class CapabilityExpired(CapabilityDenied):
    """The capability token was good, and its time is over."""

    code = "CAPABILITY_EXPIRED"
    advice = "Have the security agent check the action again; a task does so by itself."


class DeviceOffline(AgentError):
    """The device that must do a step is not connected."""

    code = "DEVICE_OFFLINE"
    status = StatusCode.UNAVAILABLE
    retryable = True
    advice = "Check the device's power and network; the step runs when it is back, until its deadline."


class DeviceLost(DeviceOffline):
    """The device's connection ended after it was given a step and before it answered."""

    code = "DEVICE_LOST"


class LimitExceeded(PodiumError):
    """A size, quota or budget was exceeded."""

    code = "LIMIT_EXCEEDED"
    status = StatusCode.RESOURCE_EXHAUSTED
    advice = "Send less, or ask the operator to raise the limit named in the message."


class StorageFull(LimitExceeded):
    """The disk is full; nothing that was accepted is lost."""

    code = "STORAGE_FULL"
    retryable = True
    advice = "Free space on the data directory's disk; the call can then be repeated."


class ServerUnavailable(PodiumError):
    """The server cannot be reached, is starting or is draining."""

    code = "SERVER_UNAVAILABLE"
    status = StatusCode.UNAVAILABLE
    retryable = True
    advice = "Check the address and that `podium serve` is running, then repeat the call."


class TimeLimitExceeded(PodiumError):
    """The task or the call ran out of time."""

    code = "TIME_LIMIT_EXCEEDED"
    status = StatusCode.DEADLINE_EXCEEDED
    advice = "Allow more time, or make the request smaller."


class DataCorrupt(PodiumError):
    """Stored bytes do not match their hash or form."""

    code = "DATA_CORRUPT"
    status = StatusCode.DATA_LOSS
    advice = "Restore the file from a backup or send it again."


class InternalError(PodiumError):
    """A defect in Podium."""

    code = "INTERNAL_ERROR"


# C0 without tab and line feed, DEL, C1, and the marks that reorder text.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")


def _sendable(text: str) -> str:
    """The text without lone surrogates and without what a terminal obeys: it may quote an agent or a file.

    Surrogates do not fit into a protobuf message; the rest would act on whoever reads the error.
    """
    return _COMMANDS.sub("\ufffd", text.encode("utf-8", "replace").decode("utf-8"))


def catalogue() -> dict[str, type[PodiumError]]:
    """Every error class by its code, over all loaded packages.

    Raises:
        ValueError: two classes share a code.
    """
    found: dict[str, type[PodiumError]] = {}
    for kind in _descendants(PodiumError):
        if kind.code in found:
            raise ValueError(f"{kind.__name__} and {found[kind.code].__name__} share the code {kind.code}")
        found[kind.code] = kind
    return found


def _descendants(kind: type[PodiumError]) -> Iterator[type[PodiumError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _descendants(child)
