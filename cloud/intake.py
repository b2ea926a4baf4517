"""How requests become tasks: everything is checked, then the acceptance is on disk, once per request id."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.canonical import canonical_json
from cloud.auth.principal import Principal, current_principal
from cloud.auth.quotas import Quotas
from cloud.auth.roles import CALLER, DEVICE
from cloud.blobs.garbage import holder_of
from cloud.blobs.store import BlobStore
from cloud.services.blob import checked_blob_labels
from cloud.services.fields import (
    MAX_TEXT_CHARACTERS,
    checked_duration,
    checked_json,
    checked_moment,
    checked_text,
    checked_uuid,
)
from cloud.telemetry.device_work import record_work
from conductor.bus import Acceptance
from conductor.desk import TaskDesk
from conductor.journal import timestamp_of
from podium.errors import InvalidRequest, NotFound
from podium.telemetry import current, parsed, recording, span
from podium.v1 import blob_pb2, edge_pb2, event_pb2, task_pb2
from tools.document.reading import DocumentReading, ReadingFormatError

MAX_ATTACHMENTS = 20
MAX_CROPS = 800
"""Crops of doubtful lines beside what a device read: 40 a page on 20 pages, which is what it sends at most."""
MAX_LABELS = 32
MAX_LABEL_NAME_CHARACTERS = 63
MAX_LABEL_CHARACTERS = 256
LONGEST_TASK = timedelta(days=30)
_CLOCK_AHEAD = timedelta(days=1)
_CLOCK_LOST = timedelta(days=366)


class Intake:
    """Checks requests and hands them in."""

    def __init__(
        self,
        desk: TaskDesk,
        blobs: BlobStore,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        task_limit: timedelta,
        quotas: Quotas,
    ) -> None:
        """Take in tasks.

        Args:
            desk: where accepted tasks go.
            blobs: where their attachments must be.
            clock: the present moment, in UTC.
            new_id: a fresh UUID, for task and trace ids.
            task_limit: a task's time limit when its caller sets none.
            quotas: how many tasks a caller may hand in.
        """
        self._desk = desk
        self._blobs = blobs
        self._clock = clock
        self._new_id = new_id
        self._task_limit = task_limit
        self._quotas = quotas

    async def submit(self, request: task_pb2.SubmitTaskRequest, principal: Principal) -> Acceptance:
        """Take in a caller's task.

        Raises:
            LimitExceeded: the caller has too many open tasks, or handed in too many within a minute.
            InvalidRequest: a field breaks the rules; it is named.
            StorageFull: it cannot be stored.
        """
        self._quotas.count_submit(principal)
        now = self._clock()
        limit = self._task_limit
        if request.HasField("time_limit"):
            limit = checked_duration(request.time_limit, "time_limit", longest=LONGEST_TASK)
        accepted = event_pb2.TaskAccepted(
            request_id=checked_uuid(request.request_id, "request_id"),
            text=checked_text(request.text, "text", max_characters=MAX_TEXT_CHARACTERS, required=True),
            as_of=timestamp_of(checked_moment(request.as_of, "as_of") if request.HasField("as_of") else now),
            attachments=await self._checked_blobs(
                request.attachments, "attachments", principal, at_most=MAX_ATTACHMENTS
            ),
            expire_time=timestamp_of(now + limit),
            priority=request.priority,
            labels=_checked_labels(request.labels),
            caller=principal.caller,
            caller_roles=principal.recorded_roles,
            tenant=principal.tenant,
        )
        return await self._accept(accepted, open_limit=self._quotas.open_limit(principal))

    async def observe(self, device_id: str, observation: edge_pb2.Observation) -> Acceptance:
        """Take in what a device saw.

        Raises:
            InvalidRequest: a field or the payload breaks the rules; it is named.
            StorageFull: it cannot be stored.
        """
        above = parsed(observation.traceparent)
        if above is None and not recording():
            return await self._observed(device_id, observation)
        with span("podium.observation", kind="consumer", parent=above) as taken_in:
            taken_in.set("podium.device.id", device_id)
            acceptance = await self._observed(device_id, observation)
            taken_in.set("podium.duplicate", acceptance.duplicate)
        # The work on one that was seen before is in the trace of its first sending.
        if above is not None and not acceptance.duplicate:
            record_work("device.read", observation.work, above, parent_span_id="", device_id=device_id)
        return acceptance

    async def _observed(self, device_id: str, observation: edge_pb2.Observation) -> Acceptance:
        now = self._clock()
        payload = _checked_payload(observation)
        accepted = event_pb2.TaskAccepted(
            request_id=checked_uuid(observation.observation_id, "observation_id"),
            text=checked_text(
                observation.text, "text", max_characters=MAX_TEXT_CHARACTERS, required=not observation.kind
            ),
            as_of=timestamp_of(_seen_at(observation, now)),
            attachments=await self._checked_blobs(
                observation.blobs, "blobs", current_principal(), at_most=MAX_CROPS
            ),
            expire_time=timestamp_of(now + self._task_limit),
            caller=f"device/{device_id}",
            caller_roles=(CALLER, DEVICE),
            tenant=f"device/{device_id}",
            device_id=device_id,
            payload_kind=observation.kind,
            payload_json=payload,
        )
        return await self._accept(accepted)

    async def _accept(self, accepted: event_pb2.TaskAccepted, *, open_limit: int | None = None) -> Acceptance:
        here = current()
        trace_id = here.trace_id if here is not None else self._new_id().replace("-", "")
        accepted.traceparent = here.traceparent if here is not None else ""
        task_id = self._new_id()
        holder = holder_of(task_id)
        # Before the task is on disk: from then on its blobs must not go. What is not settled, because the task was
        # refused or the server died, is settled or released by the garbage collector.
        if accepted.attachments:
            hashes = {blob.sha256 for blob in accepted.attachments}
            await self._hold(holder, hashes, caller=accepted.caller)
        try:
            acceptance = await self._desk.accept(task_id, accepted, trace_id=trace_id, open_limit=open_limit)
        finally:
            self._blobs.leave(holder)
        if accepted.attachments and not acceptance.duplicate:
            await self._blobs.settle(holder)
        return acceptance

    async def _hold(self, holder: str, hashes: set[str], *, caller: str) -> None:
        try:
            await self._blobs.hold(holder, hashes, caller=caller)
        except NotFound as error:
            raise InvalidRequest(
                f"{error.message} any more",
                next_step="Upload the attachments again, then send this request again.",
                field="attachments",
            ) from error

    async def _checked_blobs(
        self, blobs: Sequence[blob_pb2.BlobRef], field: str, principal: Principal, *, at_most: int
    ) -> Sequence[blob_pb2.BlobRef]:
        if len(blobs) > at_most:
            raise InvalidRequest(f"{len(blobs)} {field}; {at_most} are allowed", field=field)
        for index, blob in enumerate(blobs):
            place = f"{field}[{index}]"
            checked_blob_labels(blob, place)
            try:
                state = await self._blobs.state(blob.sha256, principal)
            except InvalidRequest as error:
                raise InvalidRequest(error.message, field=f"{place}.sha256") from error
            if not state.complete:
                raise InvalidRequest(
                    f"the blob {blob.sha256} is not stored",
                    next_step="Upload it through BlobService first, then send this request again.",
                    field=f"{place}.sha256",
                )
            if state.committed_bytes != blob.size_bytes:
                raise InvalidRequest(
                    f"the blob {blob.sha256} has {state.committed_bytes} bytes, not {blob.size_bytes}",
                    field=f"{place}.size_bytes",
                )
        return blobs


def _checked_labels(labels: Any) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        raise InvalidRequest(f"{len(labels)} labels; {MAX_LABELS} are allowed", field="labels")
    for name, value in labels.items():
        checked_text(name, "labels", max_characters=MAX_LABEL_NAME_CHARACTERS, required=True)
        checked_text(value, f"labels[{name}]", max_characters=MAX_LABEL_CHARACTERS)
    return dict(labels)


def _checked_payload(observation: edge_pb2.Observation) -> bytes:
    """The payload in the one form that is stored."""
    if not observation.kind:
        if observation.payload_json:
            raise InvalidRequest("a payload needs a kind", field="kind")
        return b""
    if observation.kind != "document_reading":
        raise InvalidRequest(
            f"this server does not know observations of kind {observation.kind[:80]!r}",
            next_step="Send document_reading, or use a newer server.",
            field="kind",
        )
    value = checked_json(observation.payload_json, "payload_json")
    try:
        return canonical_json(DocumentReading.from_json(value).to_json())
    except (ReadingFormatError, ValueError) as error:
        raise InvalidRequest(f"payload_json is {error}", field="payload_json") from error


def _seen_at(observation: edge_pb2.Observation, now: datetime) -> datetime:
    """When it was seen; a device whose clock is plainly wrong is not believed."""
    if not observation.HasField("observe_time"):
        return now
    moment = checked_moment(observation.observe_time, "observe_time")
    return moment if now - _CLOCK_LOST <= moment <= now + _CLOCK_AHEAD else now
