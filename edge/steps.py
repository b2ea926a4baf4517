"""The steps that the cloud has asked this device to run: each attempt once, and its answer for the outbox."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta

from edge.work import Work
from podium.errors import LimitExceeded, PodiumError
from podium.link import MAX_MESSAGE_BYTES
from podium.rpc_status import error_detail
from podium.v1 import edge_pb2, result_pb2

StepHandler = Callable[[edge_pb2.StepRequest], Awaitable[bytes]]
"""Runs one step and returns its output as canonical JSON; raises `PodiumError`."""

MAX_PART_BYTES = MAX_MESSAGE_BYTES - 1024
"""Of an observation or an output; the rest of its message is small."""


class Steps:
    """Runs what is asked for and answers each attempt once."""

    def __init__(
        self,
        handle: StepHandler,
        *,
        answer: Callable[[edge_pb2.StepResult], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing runs yet.

        Args:
            handle: runs one step.
            answer: given the outcome of each attempt that was not cancelled.
            clock: the cloud's, as far as this device knows it.
        """
        self._handle = handle
        self._answer = answer
        self._clock = clock
        self._running: dict[tuple[str, int, int], asyncio.Task[None]] = {}

    def start(self, request: edge_pb2.StepRequest, *, answered: Iterable[edge_pb2.StepResult]) -> None:
        """Run a step, unless it was sent again after a reconnect.

        Args:
            request: the step.
            answered: answers that are on their way.
        """
        key = (request.task_id, request.step, request.attempt)
        if key in self._running or any((one.task_id, one.step, one.attempt) == key for one in answered):
            return
        task = asyncio.create_task(self._run(request))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    def cancel(self, cancel: edge_pb2.StepCancel) -> None:
        """Stop an attempt, or every attempt of the step when it names none."""
        for (task_id, step, attempt), running in list(self._running.items()):
            if (task_id, step) == (cancel.task_id, cancel.step) and cancel.attempt in (0, attempt):
                running.cancel()

    async def _run(self, request: edge_pb2.StepRequest) -> None:
        result = edge_pb2.StepResult(task_id=request.task_id, step=request.step, attempt=request.attempt)
        start, begun_s = self._clock(), time.perf_counter()
        try:
            async with asyncio.timeout(request.time_limit.ToTimedelta().total_seconds() or None):
                output = await self._handle(request)
            if len(output) > MAX_PART_BYTES:
                raise LimitExceeded(f"the output has {len(output)} bytes; {MAX_PART_BYTES} can be sent")
            result.output_json = output
        except PodiumError as error:
            result.error.CopyFrom(error_detail(error))
        except TimeoutError:
            result.error.CopyFrom(
                result_pb2.ErrorDetail(
                    code="AGENT_TIMEOUT",
                    message=f"{request.agent} ran out of time on the device",
                    agent=request.agent,
                )
            )
        except Exception as error:  # noqa: BLE001 - the cloud is told, instead of waiting for its time limit
            message = f"{request.agent} raised {type(error).__name__}: {str(error)[:300]}"
            result.error.CopyFrom(
                result_pb2.ErrorDetail(code="AGENT_CRASHED", message=message, agent=request.agent)
            )
        took = Work(start=start, duration=timedelta(seconds=time.perf_counter() - begun_s))
        result.work.CopyFrom(took.to_message(timedelta(0)))
        self._answer(result)
