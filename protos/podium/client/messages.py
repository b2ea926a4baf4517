"""What both clients share: requests built from plain values, references to files, time that runs out, errors."""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import grpc
from google.protobuf import timestamp_pb2

from podium.errors import Conflict, InvalidRequest
from podium.link import Address, unreachable
from podium.rpc_status import from_rpc_error
from podium.status import Priority, task_status_name
from podium.v1 import blob_pb2, identity_pb2, status_pb2, task_pb2

MAX_BREAKS: Final = 4
"""Connections of one watch that may break without an event in between."""
_MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".pdf": "application/pdf"}


@contextmanager
def typed_errors(address: Address) -> Iterator[None]:
    """What goes wrong with calls inside, as errors of `podium.errors` and in words about the address."""
    try:
        yield
    except grpc.RpcError as error:
        raise unreachable(address, from_rpc_error(error, keep_code=True)) from error


class Countdown:
    """What is left of a time limit, over several calls."""

    def __init__(self, time_limit: timedelta | None, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._ends_s = None if time_limit is None else clock_s() + time_limit.total_seconds()

    def left_s(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if self._ends_s is None else max(0.0, self._ends_s - self._clock_s())


def submit_request(
    text: str,
    *,
    request_id: str = "",
    as_of: datetime | None = None,
    attachments: Sequence[blob_pb2.BlobRef] = (),
    time_limit: timedelta | None = None,
    priority: Priority = status_pb2.PRIORITY_UNSPECIFIED,
    labels: Mapping[str, str] | None = None,
) -> task_pb2.SubmitTaskRequest:
    """A submission; `as_of` needs a time zone, `request_id` is made when it is empty.

    Raises:
        InvalidRequest: the text cannot be encoded or `as_of` has no time zone.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the text holds a lone surrogate at {error.start}", field="text") from error
    request = task_pb2.SubmitTaskRequest(
        request_id=request_id or str(uuid.uuid4()),
        text=text,
        attachments=attachments,
        priority=priority,
        labels=labels or {},
    )
    if as_of is not None:
        if as_of.tzinfo is None:
            raise InvalidRequest("as_of needs a time zone", field="as_of")
        moment = timestamp_pb2.Timestamp()
        moment.FromDatetime(as_of)
        request.as_of.CopyFrom(moment)
    if time_limit is not None:
        request.time_limit.FromTimedelta(time_limit)
    return request


def token_request(
    subject: str, roles: Sequence[str], lifetime: timedelta | None, tenant: str
) -> identity_pb2.IssueCallerTokenRequest:
    """The request for a caller's token; without `lifetime` the server's default."""
    request = identity_pb2.IssueCallerTokenRequest(subject=subject, roles=roles, tenant=tenant)
    if lifetime is not None:
        request.lifetime.FromTimedelta(lifetime)
    return request


def open_question_id(task: task_pb2.Task) -> str:
    """The id of the question that a task waits with.

    Raises:
        Conflict: it waits with none.
    """
    if not task.HasField("question"):
        raise Conflict(f"task {task.task_id} is {task_status_name(task.status)} and asks nothing")
    return task.question.question_id


def blob_of(path: Path) -> blob_pb2.BlobRef:
    """Reference to a file's content.

    Raises:
        InvalidRequest: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            size_bytes = file.tell()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error}", field="file") from error
    return blob_pb2.BlobRef(
        sha256=digest.hexdigest(),
        size_bytes=size_bytes,
        media_type=_MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream"),
        file_name=path.name,
    )


def blob_of_bytes(data: bytes, *, media_type: str, file_name: str = "") -> blob_pb2.BlobRef:
    """Reference to bytes in memory."""
    return blob_pb2.BlobRef(
        sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), media_type=media_type, file_name=file_name
    )
