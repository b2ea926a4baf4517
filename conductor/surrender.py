"""Fail a task whose log or run is beyond repair, without folding its log."""

from datetime import UTC, datetime

from conductor.bus import Durability, EventBus
from conductor.journal import SCHEMA_VERSION, timestamp_of
from podium.errors import PodiumError
from podium.rpc_status import error_detail
from podium.v1 import event_pb2, status_pb2


async def surrender(bus: EventBus, task_id: str, error: PodiumError) -> None:
    """Append the failure after whatever the log holds; the log itself is kept for diagnosis.

    Raises:
        VersionConflict: somebody else wrote at the same time.
    """
    events = await bus.read(task_id)
    last = events[-1].header
    event = event_pb2.Event(
        header=event_pb2.EventHeader(
            task_id=task_id,
            sequence=last.sequence + 1,
            schema_version=SCHEMA_VERSION,
            time=timestamp_of(datetime.now(UTC)),
            trace_id=last.trace_id,
        ),
        task_failed=event_pb2.TaskFailed(error=error_detail(error)),
    )
    await bus.append(
        task_id,
        [event],
        expected_sequence=last.sequence,
        status=status_pb2.TASK_STATUS_FAILED,
        durability=Durability.SYNCED,
    )
