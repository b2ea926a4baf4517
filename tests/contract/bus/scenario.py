"""What the bus suite is written with: a clock that obeys, events to append, and coroutines as tests."""

import asyncio
import functools
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from podium.v1 import event_pb2, status_pb2

RUNNING = status_pb2.TASK_STATUS_RUNNING
SUCCEEDED = status_pb2.TASK_STATUS_SUCCEEDED
WAITING = status_pb2.TASK_STATUS_WAITING_INPUT
LEASE = timedelta(seconds=30)


class Clock:
    """Stands still until it is told to move, in either direction."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **units: float) -> None:
        self.now += timedelta(**units)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a coroutine function a test; it fails rather than hangs."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(60):
                await test(*arguments, **fixtures)

        asyncio.run(limited())

    return run


def accepted(
    text: str = "a question",
    *,
    task_id: str = "",
    request_id: str = "",
    priority: "status_pb2.Priority.ValueType" = status_pb2.PRIORITY_NORMAL,
    device_id: str = "",
    caller: str = "ann",
) -> event_pb2.Event:
    """The first event of a task."""
    event = event_pb2.Event(
        header=event_pb2.EventHeader(task_id=task_id or str(uuid.uuid4()), schema_version=1),
        task_accepted=event_pb2.TaskAccepted(
            request_id=request_id or str(uuid.uuid4()),
            text=text,
            priority=priority,
            device_id=device_id,
            caller=caller,
        ),
    )
    event.header.time.FromDatetime(datetime(2026, 11, 29, 12, tzinfo=UTC))
    return event


def step(task_id: str, agent: str = "parser", index: int = 0) -> event_pb2.Event:
    """Some later event of a task."""
    event = event_pb2.Event(
        header=event_pb2.EventHeader(task_id=task_id, step=index, schema_version=1),
        step_started=event_pb2.StepStarted(agent=agent, attempt=1),
    )
    event.header.time.FromDatetime(datetime(2026, 11, 29, 12, 0, 1, tzinfo=UTC))
    return event
