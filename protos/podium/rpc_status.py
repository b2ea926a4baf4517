"""Errors on the wire: a `PodiumError` becomes a google.rpc.Status and comes back as the same class.

Details carried: `ErrorInfo` (reason = code, domain "podium"; metadata: next_step, agent), `BadRequest` where a
request field is at fault, `RetryInfo` where a retry may help. The whole status stays under 4 KiB, because larger
trailers turn into RESOURCE_EXHAUSTED on the way.
"""

import re
from collections.abc import Sequence
from datetime import timedelta

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from podium.errors import (
    Conflict,
    DataCorrupt,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    PodiumError,
    ServerUnavailable,
    TimeLimitExceeded,
    Unauthenticated,
    VersionConflict,
    catalogue,
)
from podium.v1 import result_pb2

DOMAIN = "podium"
MAX_STATUS_BYTES = 4096
RETRY_DELAY = timedelta(seconds=1)
_MAX_MESSAGE_CHARACTERS = 600
_MAX_EVIDENCE = 8
_MAX_EVIDENCE_CHARACTERS = 200
_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,63}")

_BY_STATUS: dict[grpc.StatusCode, type[PodiumError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.ABORTED: VersionConflict,
    grpc.StatusCode.DATA_LOSS: DataCorrupt,
    # The client closed its channel, or a proxy gave up.
    grpc.StatusCode.CANCELLED: ServerUnavailable,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceeded,
    grpc.StatusCode.UNAVAILABLE: ServerUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimeLimitExceeded,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
}


def to_status(error: PodiumError) -> status_pb2.Status:
    """The error as google.rpc.Status, under `MAX_STATUS_BYTES`."""
    message = _clip(error.message, _MAX_MESSAGE_CHARACTERS)
    metadata = {"next_step": _clip(error.next_step, _MAX_MESSAGE_CHARACTERS)}
    if error.agent:
        metadata["agent"] = _clip(error.agent, _MAX_EVIDENCE_CHARACTERS)
    details = [_packed(error_details_pb2.ErrorInfo(reason=error.code, domain=DOMAIN, metadata=metadata))]
    if error.field:
        bad_request = error_details_pb2.BadRequest()
        bad_request.field_violations.add(field=_clip(error.field, _MAX_EVIDENCE_CHARACTERS), description=message)
        details.append(_packed(bad_request))
    if error.retryable or error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromTimedelta(RETRY_DELAY if error.retry_after is None else error.retry_after)
        details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    status = status_pb2.Status(code=error.status.value[0], message=message, details=details)
    evidence = [_clip(item, _MAX_EVIDENCE_CHARACTERS) for item in error.evidence[:_MAX_EVIDENCE]]
    if evidence:
        debug = _packed(error_details_pb2.DebugInfo(stack_entries=evidence))
        if status.ByteSize() + debug.ByteSize() + 8 <= MAX_STATUS_BYTES:
            status.details.append(debug)
    return status


def from_rpc_error(error: grpc.RpcError, *, keep_code: bool = False) -> PodiumError:
    """The error a server sent, as its own class; one that Podium did not send becomes the nearest class.

    Args:
        error: What the call raised.
        keep_code: Also of an error whose class this process has not loaded; only for servers that are trusted.
    """
    if not isinstance(error, grpc.Call | grpc.aio.AioRpcError):
        return InternalError(f"gRPC failed without a status: {error!r}")
    details = error.details() or ""
    if (restored := _attached(error, keep_code)) is not None:
        return restored
    kind = _BY_STATUS.get(error.code(), InternalError)
    return kind(details or f"the call ended with {error.code().name}")


def _attached(call: grpc.Call | grpc.aio.AioRpcError, keep_code: bool) -> PodiumError | None:
    """The error that travelled with a status; None where there is none, or none that can be read."""
    try:
        status: status_pb2.Status | None = rpc_status.from_call(call)
        return _restore(status, keep_code) if status is not None else None
    except (DecodeError, ValueError, OverflowError):
        # Broken, a time beyond all bounds, or not matching code and message: not one of ours.
        return None


def _restore(status: status_pb2.Status, keep_code: bool) -> PodiumError | None:
    info = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    debug = error_details_pb2.DebugInfo()
    retry = error_details_pb2.RetryInfo()
    found = False
    for detail in status.details:
        if detail.TypeName() == info.DESCRIPTOR.full_name:
            found = bool(detail.Unpack(info)) and info.domain == DOMAIN
        elif detail.TypeName() == bad_request.DESCRIPTOR.full_name:
            detail.Unpack(bad_request)
        elif detail.TypeName() == debug.DESCRIPTOR.full_name:
            detail.Unpack(debug)
        elif detail.TypeName() == retry.DESCRIPTOR.full_name:
            detail.Unpack(retry)
    if not found:
        return None
    field = bad_request.field_violations[0].field if bad_request.field_violations else ""
    error = error_of(
        info.reason,
        status.message,
        otherwise=_BY_STATUS.get(_code(status.code), InternalError),
        next_step=info.metadata.get("next_step", ""),
        evidence=tuple(debug.stack_entries),
        agent=info.metadata.get("agent", ""),
        field=field,
        retry_after=retry.retry_delay.ToTimedelta() if retry.HasField("retry_delay") else None,
    )
    if keep_code and _CODE.fullmatch(info.reason):
        # A caller has not loaded the classes of the cloud, and yet the code is what the documents explain.
        error.code = info.reason
    return error


def error_detail(error: PodiumError, *, agent: str = "") -> result_pb2.ErrorDetail:
    """An error inside a message or an event: bounded, because devices and agents elsewhere write all of it.

    Args:
        error: what happened.
        agent: at fault; the error's own when empty.
    """
    return result_pb2.ErrorDetail(
        code=error.code,
        message=error.message[:2000],
        next_step=error.next_step[:1000],
        evidence=[item[:500] for item in error.evidence[:20]],
        agent=agent or error.agent,
    )


def error_of(
    code: str,
    message: str,
    *,
    otherwise: type[PodiumError],
    next_step: str = "",
    evidence: Sequence[str] = (),
    agent: str = "",
    field: str = "",
    retry_after: timedelta | None = None,
) -> PodiumError:
    """An error that travelled, as its own class; `otherwise` when this process does not know its code."""
    kind = catalogue().get(code, otherwise)
    error = kind.__new__(kind)
    # Some classes are made from more than travels, e.g. the expression of a rule; what all have is set here.
    PodiumError.__init__(
        error,
        message,
        next_step=next_step,
        evidence=evidence,
        agent=agent,
        field=field,
        retry_after=retry_after,
    )
    return error


def _code(number: int) -> grpc.StatusCode:
    for code in grpc.StatusCode:
        if code.value[0] == number:
            return code
    return grpc.StatusCode.UNKNOWN


def _packed(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def _clip(text: str, limit: int) -> str:
    # Clipped in bytes: a Chinese character is three, and the whole status has a cap in bytes.
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: limit - 3].decode("utf-8", "ignore") + "..."
