"""Steps that wait for a device: taken up when it is back, handed to a person when it stays away too long."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from conductor.bus import EventBus, TaskRow
from conductor.finishing import Finisher
from conductor.journal import Journal
from conductor.progress import StepProgress, TaskState
from conductor.settling import Settler
from conductor.state import fold
from conductor.versions import agent_of_step
from conductor.wiring import Wiring
from podium.errors import DeviceLost, DeviceOffline
from podium.v1 import event_pb2, status_pb2

PARKED = (
    status_pb2.TASK_STATUS_WAITING_INPUT,
    status_pb2.TASK_STATUS_WAITING_DEVICE,
    status_pb2.TASK_STATUS_WAITING_REVIEW,
)
"""Statuses in which no worker holds a task."""
_PAGE = 200
_LONGEST_PAUSE_S = 60
_AWAY = frozenset({DeviceOffline.code, DeviceLost.code})


def attend(journal: Journal, wiring: Wiring, settler: Settler) -> None:
    """Record what has become of the devices that a task's steps wait for.

    A device that stays away past the deadline is a failure like others: another agent, going on without the step,
    or a person.
    """
    now = wiring.clock()
    for step in journal.state.steps:
        if step.status != status_pb2.STEP_STATUS_WAITING or step.device_deadline is None:
            continue
        if now >= step.device_deadline:
            message = f"device {step.device_id} stayed away past the step's deadline"
            agent = agent_of_step(journal.state, wiring.registry, step) or wiring.registry.get(step.tool)
            settler.fail(journal, step, agent, DeviceOffline(message), timedelta(0))
        elif now >= _rested(journal.state, step) and wiring.device_online(step.device_id):
            journal.record(event_pb2.DeviceReturned(device_id=step.device_id), step=step.index)


def _rested(state: TaskState, step: StepProgress) -> datetime:
    """From when on a returned device is tried again: one that comes and goes is left alone ever longer."""
    lost = sum(note.uid == step.uid and note.code in _AWAY for note in state.failures)
    pause = timedelta(seconds=min(2 ** (lost - 1), _LONGEST_PAUSE_S)) if lost > 1 else timedelta(0)
    return (step.ended_at or step.started_at or datetime.min.replace(tzinfo=UTC)) + pause


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What has to be watched of a parked task, so that its log is read only when it has changed."""

    last_sequence: int
    expire_time: datetime | None
    devices: tuple[tuple[str, datetime], ...]

    @classmethod
    def of(cls, state: TaskState) -> "_Note":
        return cls(
            last_sequence=state.last_sequence,
            expire_time=state.expire_time,
            devices=tuple(
                (step.device_id, step.device_deadline)
                for step in state.steps
                if step.status == status_pb2.STEP_STATUS_WAITING and step.device_deadline is not None
            ),
        )


class Sweeper:
    """Looks after parked tasks: ends those whose time is up, wakes those whose device is back."""

    def __init__(self, wiring: Wiring) -> None:
        """Use the process's wiring."""
        self._wiring = wiring
        self._finisher = Finisher(wiring)
        self._settler = Settler(wiring, self._finisher)
        self._notes: dict[str, _Note] = {}

    async def sweep(self) -> int:
        """Look at every parked task once; how many were changed."""
        rows = await _all_rows(self._wiring.bus)
        notes: dict[str, _Note] = {}
        changed = 0
        for row in rows:
            note = self._notes.get(row.task_id)
            if note is None or note.last_sequence != row.last_sequence:
                note = _Note.of(fold(await self._wiring.bus.read(row.task_id)))
            notes[row.task_id] = note
            if self._due(note):
                changed += await self._act(row.task_id)
        self._notes = notes
        return changed

    def _due(self, note: _Note) -> bool:
        now = self._wiring.clock()
        if note.expire_time is not None and now >= note.expire_time:
            return True
        return any(self._wiring.device_online(device) or now >= deadline for device, deadline in note.devices)

    async def _act(self, task_id: str) -> int:
        journal = await Journal.open(self._wiring.bus, task_id, self._wiring.clock)
        state = journal.state
        if state.status not in PARKED:
            return 0
        if state.expire_time is not None and self._wiring.clock() >= state.expire_time:
            self._finisher.expire(journal)
        else:
            attend(journal, self._wiring, self._settler)
        # On a conflict somebody else has just moved the task; the next sweep looks again.
        return int(await journal.commit())


async def _all_rows(bus: EventBus) -> list[TaskRow]:
    rows: list[TaskRow] = []
    before = ""
    while True:
        page: Sequence[TaskRow] = await bus.rows(statuses=PARKED, limit=_PAGE, before=before)
        rows.extend(page)
        if len(page) < _PAGE:
            return rows
        before = page[-1].task_id
