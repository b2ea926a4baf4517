"""What an agent host's failures become: errors of the agent, typed, attributed, and no more than we believe."""

from datetime import timedelta

import grpc

from agents.engines.foreign import AgentIncompatible, said, timed_out
from agents.invocation import Invocation
from podium.agent_host.errors import HostBusy, HostDraining, IdempotencyKeyReused, OutcomeUnknown, SchemaMismatch
from podium.errors import (
    AgentCrashed,
    AgentError,
    AgentOverLimit,
    AgentTimeout,
    AgentUnreachable,
    InputContractBroken,
    LowConfidence,
    NotFound,
    OutputContractBroken,
    PodiumError,
)
from podium.link import Address, unreachable
from podium.link.certificates import ServerNotTrusted
from podium.rpc_status import from_rpc_error

_BELIEVED = (
    AgentCrashed,
    AgentOverLimit,
    AgentTimeout,
    IdempotencyKeyReused,
    LowConfidence,
    OutcomeUnknown,
    OutputContractBroken,
)
"""What a host may say of its agent. Other codes decide about devices, capabilities or data of ours."""
_DETAILS = "grpc-status-details-bin"
_MOST_EVIDENCE = 8
_LONGEST_RETRY_AFTER = timedelta(minutes=1)
_UNTRUSTED = (
    "A host is trusted by a name in its certificate, until that ends or is revoked: see `podium machine list`. "
    "`podium machine invite --kind agent_host --host NAME` and, there, `podium enroll` let it in again."
)


class NotCalled(Exception):
    """The agent was certainly not run at this endpoint, so another one may be asked, also for a write."""

    def __init__(self, cause: AgentError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def failure(error: grpc.aio.AioRpcError, invocation: Invocation, address: Address) -> AgentError | NotCalled:
    """What a call that ended with an error becomes.

    Args:
        error: as gRPC raised it.
        invocation: the call.
        address: of the endpoint.
    """
    name, target = invocation.spec.name, address.target
    told = _told(error)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return timed_out(invocation)
    if isinstance(told, SchemaMismatch | NotFound):
        return NotCalled(_incompatible(invocation, target, told.message))
    if isinstance(told, HostDraining | HostBusy):
        retry_after = min(told.retry_after or timedelta(0), _LONGEST_RETRY_AFTER)
        return NotCalled(
            AgentUnreachable(
                f"{target} took no call of {name}: {said(told.message)}", retry_after=retry_after, agent=name
            )
        )
    if isinstance(told, _BELIEVED) or (isinstance(told, InputContractBroken) and not _writes(invocation)):
        evidence = [said(line) for line in told.evidence[:_MOST_EVIDENCE]]
        return type(told)(said(told.message), evidence=evidence, agent=name)
    return _untold(error, told, invocation, address)


def _untold(
    error: grpc.aio.AioRpcError, told: PodiumError | None, invocation: Invocation, address: Address
) -> AgentError:
    """By the status, where what the host attached is not believed."""
    name, target, code = invocation.spec.name, address.target, error.code()
    details = said(error.details() or "no reason given")
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            shown = unreachable(address, from_status(error))
            return AgentUnreachable(
                f"the host of {name} cannot be reached: {said(shown.message)}",
                next_step=_what_next(shown),
                evidence=[target, details],
                agent=name,
            )
        case grpc.StatusCode.UNIMPLEMENTED:
            return _incompatible(invocation, target, "it does not speak podium.v1.AgentService")
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED if not isinstance(
            told, AgentError
        ):
            return AgentUnreachable(f"the host {target} of {name} lets this server not in: {details}", agent=name)
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than max" in details:
            most = invocation.spec.limits.max_output_bytes
            return AgentOverLimit(
                f"{name} at {target} answered with more than its limit max_output_bytes of {most}", agent=name
            )
        case _:
            return AgentCrashed(f"{name} at {target} ended with {code.name}: {details}", agent=name)


def _what_next(shown: PodiumError) -> str:
    if isinstance(shown, ServerNotTrusted):
        return _UNTRUSTED
    return shown.next_step if type(shown).code != "SERVER_UNAVAILABLE" else ""


def from_status(error: grpc.aio.AioRpcError) -> PodiumError:
    """The error without what the other side attached to it."""
    return from_rpc_error(
        grpc.aio.AioRpcError(error.code(), grpc.aio.Metadata(), grpc.aio.Metadata(), details=error.details())
    )


def _told(error: grpc.aio.AioRpcError) -> PodiumError | None:
    """What the host attached, if it is one of our errors under the status that goes with it."""
    told = from_rpc_error(error)
    attached = any(key == _DETAILS for key, _ in error.trailing_metadata() or ())
    return told if attached and told.status is error.code() else None


def _incompatible(invocation: Invocation, target: str, why: str) -> AgentIncompatible:
    name = invocation.spec.name
    return AgentIncompatible(
        f"the host {target} does not have {name} as the manifest says: {said(why)}", agent=name
    )


def _writes(invocation: Invocation) -> bool:
    return invocation.spec.side_effects == "write"
