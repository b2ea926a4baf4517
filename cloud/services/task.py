"""`TaskService`: what a line-of-business application calls."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from cloud.auth.ownership import check_may_change, check_may_read, reads_all
from cloud.auth.principal import current_principal
from cloud.intake import Intake
from cloud.services.fields import checked_text
from conductor.bus import EventBus, TaskRow
from conductor.desk import TaskDesk
from conductor.journal import timestamp_of
from conductor.progress import TaskState
from conductor.state import apply, fold
from conductor.view import task_view
from podium.errors import InvalidRequest, NotFound
from podium.v1 import task_pb2, task_pb2_grpc

MAX_ANSWER_CHARACTERS = 4_000
MAX_REASON_CHARACTERS = 1_000
MAX_PAGE = 500
DEFAULT_PAGE = 50

Context = grpc.aio.ServicerContext[Any, Any]


class TaskService(task_pb2_grpc.TaskServiceServicer):
    """See `podium/v1/task.proto`."""

    def __init__(self, bus: EventBus, intake: Intake, desk: TaskDesk) -> None:
        self._bus = bus
        self._intake = intake
        self._desk = desk

    async def SubmitTask(  # noqa: N802 - gRPC's name
        self, request: task_pb2.SubmitTaskRequest, context: Context
    ) -> task_pb2.SubmitTaskResponse:
        """Hand in a task; it is on disk when this returns."""
        acceptance = await self._intake.submit(request, current_principal())
        state = acceptance.state or fold(await self._bus.read(acceptance.task_id))
        return task_pb2.SubmitTaskResponse(task=task_view(state), duplicate=acceptance.duplicate)

    async def GetTask(  # noqa: N802 - gRPC's name
        self, request: task_pb2.GetTaskRequest, context: Context
    ) -> task_pb2.GetTaskResponse:
        """Read one task."""
        state = fold(await self._bus.read(request.task_id))
        check_may_read(current_principal(), state.caller, request.task_id)
        return task_pb2.GetTaskResponse(task=task_view(state))

    async def WatchTask(  # noqa: N802 - gRPC's name
        self, request: task_pb2.WatchTaskRequest, context: Context
    ) -> AsyncIterator[task_pb2.WatchTaskResponse]:
        """A task's events from a sequence number on, until it has ended."""
        principal = current_principal()
        if not reads_all(principal):
            check_may_read(principal, await self._bus.caller_of(request.task_id), request.task_id)
        state = TaskState()
        # From the first event, because a status is the fold over all of them.
        async with aclosing(self._bus.watch(request.task_id)) as events:
            async for event in events:
                state = apply(state, event)
                if event.header.sequence > request.after_sequence:
                    yield task_pb2.WatchTaskResponse(event=event, status=state.status)
                if state.ended:
                    return

    async def ListTasks(  # noqa: N802 - gRPC's name
        self, request: task_pb2.ListTasksRequest, context: Context
    ) -> task_pb2.ListTasksResponse:
        """Tasks, newest first: a caller's own, or all where somebody may see all."""
        principal = current_principal()
        size = checked_page_size(request.page_size)
        try:
            rows = await self._bus.rows(
                statuses=request.statuses,
                caller=None if reads_all(principal) else principal.caller,
                limit=size + 1,
                before=request.page_token,
            )
        except NotFound as error:
            raise InvalidRequest("page_token is not one that this server gave", field="page_token") from error
        more = len(rows) > size
        return task_pb2.ListTasksResponse(
            tasks=[_listed(row) for row in rows[:size]], next_page_token=rows[size - 1].task_id if more else ""
        )

    async def CancelTask(  # noqa: N802 - gRPC's name
        self, request: task_pb2.CancelTaskRequest, context: Context
    ) -> task_pb2.CancelTaskResponse:
        """End a task early; one that had ended is returned unchanged."""
        reason = checked_text(request.reason, "reason", max_characters=MAX_REASON_CHARACTERS)
        caller = await self._may_change(request.task_id)
        state = await self._desk.cancel(request.task_id, reason=reason, caller=caller)
        return task_pb2.CancelTaskResponse(task=task_view(state))

    async def ProvideInput(  # noqa: N802 - gRPC's name
        self, request: task_pb2.ProvideInputRequest, context: Context
    ) -> task_pb2.ProvideInputResponse:
        """Answer a clarifying question; the same answer again changes nothing."""
        answer = checked_text(request.answer, "answer", max_characters=MAX_ANSWER_CHARACTERS, required=True)
        caller = await self._may_change(request.task_id)
        state = await self._desk.provide_input(request.task_id, request.question_id, answer, caller=caller)
        return task_pb2.ProvideInputResponse(task=task_view(state))

    async def _may_change(self, task_id: str) -> str:
        """The caller's name, if they may change the task."""
        principal = current_principal()
        check_may_change(principal, await self._bus.caller_of(task_id), task_id)
        return principal.caller


def checked_page_size(value: int) -> int:
    """How many entries a page has, from the request's `page_size`.

    Raises:
        InvalidRequest: more than `MAX_PAGE`.
    """
    if value > MAX_PAGE:
        raise InvalidRequest(f"page_size is {value}; {MAX_PAGE} are allowed", field="page_size")
    return value or DEFAULT_PAGE


def _listed(row: TaskRow) -> task_pb2.Task:
    return task_pb2.Task(
        task_id=row.task_id,
        request_id=row.request_id,
        status=row.status,
        text=row.text,
        create_time=timestamp_of(row.create_time),
        update_time=timestamp_of(row.update_time),
        last_sequence=row.last_sequence,
        device_id=row.device_id,
        caller=row.caller,
    )
