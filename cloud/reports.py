"""The answers as files: each task that succeeded leaves its Markdown in DATA/reports/TASK_ID.md."""

import asyncio
import logging
from pathlib import Path

from conductor.progress import TaskState
from conductor.runner import TaskRunner
from conductor.state import fold
from conductor.wiring import Wiring
from podium.v1 import status_pb2

_LOG = logging.getLogger(__name__)
_LOOK_BACK = 500


class ReportingRunner(TaskRunner):
    """A runner that writes the report of each task it brings to its answer.

    The log is the truth and a report only a copy of it: one that cannot be written is logged and not the task's
    failure, and one that a crash prevented is written at the next start (`catch_up`).
    """

    def __init__(self, wiring: Wiring, folder: Path) -> None:
        """Run tasks as `wiring` says and write into `folder`, which is made."""
        super().__init__(wiring)
        self._bus = wiring.bus
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    async def run(self, task_id: str) -> TaskState:
        """See `TaskRunner.run`."""
        state = await super().run(task_id)
        await self._report(state)
        return state

    async def catch_up(self) -> None:
        """Write what is missing of the newest reports."""
        rows = await self._bus.rows(statuses=[status_pb2.TASK_STATUS_SUCCEEDED], limit=_LOOK_BACK)
        for row in rows:
            if not self._path(row.task_id).exists():
                await self._report(fold(await self._bus.read(row.task_id)))

    async def _report(self, state: TaskState) -> None:
        if state.result is None:
            return
        try:
            await asyncio.to_thread(_write, self._path(state.task_id), state.result.answer_markdown)
        except OSError as error:
            _LOG.error("the report of task %s cannot be written: %s", state.task_id, error)

    def _path(self, task_id: str) -> Path:
        return self._folder / f"{task_id}.md"


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
