"""One task given to an A2A agent, followed to its end: streamed or polled, bounded, its questions answered."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from a2a.client.client import Client, ClientCallContext
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
)

from agents.engines.foreign import said
from podium.errors import AgentCrashed, AgentError, OutputContractBroken

_ENDED: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
_PAUSED: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_STREAM_ENDS_WITHIN_S: Final = 0.5
_POLL_S: Final = (0.1, 1.0)
_CANCELLED_WITHIN_S: Final = 2.0

Reply = Callable[[str, str, int], SendMessageRequest]
"""Makes the answer to a question from the ids of task and context and the number of the turn."""


OneTooMany = Callable[[int, str], AgentError]


class Conversation:
    """Runs once; `abandon` tells the agent to stop what it still does."""

    def __init__(self, client: Client, context: ClientCallContext, *, agent: str, max_bytes: int) -> None:
        """Take a client that is connected to the agent.

        Args:
            client: the SDK's.
            context: with the token that goes along.
            agent: name in error messages.
            max_bytes: of everything the agent may send in one turn.
        """
        self._client = client
        self._context = context
        self._agent = agent
        self._max_bytes = max_bytes
        self._received = 0
        self._too_much = False
        self._settled = asyncio.Event()
        self._task_id = ""
        self._context_id = ""
        self._status = TaskStatus()
        self._artifacts: dict[str, list[Part]] = {}
        self._message: Message | None = None

    async def run(
        self, request: SendMessageRequest, reply: Reply, *, max_turns: int, one_too_many: OneTooMany
    ) -> Sequence[Part]:
        """Send the request and wait for the parts of the answer.

        Args:
            request: the first message.
            reply: makes the answers to the agent's questions.
            max_turns: how many questions it may ask.
            one_too_many: makes the error when it asks once more, from their number and the last one.

        Raises:
            AgentCrashed: the agent failed, refused or gave up, or wants other credentials.
            OutputContractBroken: it sent too much.
            AgentError: as `one_too_many` makes it.
            A2AError, httpx.HTTPError, grpc.RpcError: as the SDK lets them through.
        """
        turn = 0
        while True:
            await self._exchange(request)
            if self._message is not None:
                return self._message.parts
            state = self._status.state
            if state == TaskState.TASK_STATE_COMPLETED:
                return [part for parts in self._artifacts.values() for part in parts]
            if state != TaskState.TASK_STATE_INPUT_REQUIRED:
                raise AgentCrashed(f"{self._agent} {_outcome(self._status)}", agent=self._agent)
            turn += 1
            if turn > max_turns:
                raise one_too_many(turn, _words(self._status))
            request = reply(self._task_id, self._context_id, turn)

    async def abandon(self) -> None:
        """Cancel the agent's task if it still runs; best effort, within two seconds."""
        if not self._task_id or self._status.state in _ENDED:
            return
        with suppress(Exception):  # it may be the very agent that hangs or is gone
            async with asyncio.timeout(_CANCELLED_WITHIN_S):
                await self._client.cancel_task(CancelTaskRequest(id=self._task_id), context=self._context)

    async def _exchange(self, request: SendMessageRequest) -> None:
        self._received = 0
        self._settled.clear()
        self._status = TaskStatus()
        # In a task of its own: cancelled, the SDK's nested generators end from the inside out, and none is left.
        reading = asyncio.create_task(self._read(request))
        settled = asyncio.create_task(self._settled.wait())
        try:
            await asyncio.wait({reading, settled}, return_when=asyncio.FIRST_COMPLETED)
            if self._too_much:
                raise self._larger_than_allowed()
            if not reading.done():
                await asyncio.wait({reading}, timeout=_STREAM_ENDS_WITHIN_S)
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            settled.cancel()
            await asyncio.gather(reading, settled, return_exceptions=True)
        if not self._settled.is_set():
            await self._poll()

    async def _read(self, request: SendMessageRequest) -> None:
        async for event in self._client.send_message(request, context=self._context):
            self._count(event.ByteSize())
            if not self._too_much:
                # What is too much ends this task by cancelling it: an error raised here would leave the SDK's
                # generators, and the call behind them, to the garbage collector.
                self._take(event)

    async def _poll(self) -> None:
        if not self._task_id:
            raise OutputContractBroken(
                f"{self._agent} answered with neither a task nor a message", agent=self._agent
            )
        delay_s, longest_s = _POLL_S
        while not self._settled.is_set():
            task = await self._client.get_task(GetTaskRequest(id=self._task_id), context=self._context)
            self._received = 0
            self._count(task.ByteSize())
            if self._too_much:
                raise self._larger_than_allowed()
            self._take_task(task)
            if not self._settled.is_set():
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, longest_s)

    def _count(self, size_bytes: int) -> None:
        self._received += size_bytes
        if self._received > self._max_bytes:
            self._too_much = True
            self._settled.set()

    def _larger_than_allowed(self) -> OutputContractBroken:
        return OutputContractBroken(f"{self._agent} answered more than its manifest allows", agent=self._agent)

    def _take(self, event: StreamResponse) -> None:
        match event.WhichOneof("payload"):
            case "message":
                self._message = event.message
                self._settled.set()
            case "task":
                self._take_task(event.task)
            case "status_update":
                self._know(event.status_update.task_id, event.status_update.context_id)
                self._take_status(event.status_update.status)
            case "artifact_update":
                self._know(event.artifact_update.task_id, event.artifact_update.context_id)
                self._take_artifact(event.artifact_update)

    def _take_task(self, task: Task) -> None:
        self._know(task.id, task.context_id)
        for artifact in task.artifacts:
            self._artifacts[artifact.artifact_id] = list(artifact.parts)
        self._take_status(task.status)

    def _take_artifact(self, update: TaskArtifactUpdateEvent) -> None:
        parts = list(update.artifact.parts)
        if update.append:
            parts = [*self._artifacts.get(update.artifact.artifact_id, ()), *parts]
        self._artifacts[update.artifact.artifact_id] = parts

    def _take_status(self, status: TaskStatus) -> None:
        if self._status.state in _ENDED:
            return
        self._status = status
        if status.state in _ENDED or status.state in _PAUSED:
            self._settled.set()

    def _know(self, task_id: str, context_id: str) -> None:
        if self._task_id and task_id != self._task_id:
            raise OutputContractBroken(f"{self._agent} answered about another task", agent=self._agent)
        self._task_id = task_id
        self._context_id = context_id


def _outcome(status: TaskStatus) -> str:
    outcome = {
        TaskState.TASK_STATE_FAILED: "failed",
        TaskState.TASK_STATE_CANCELED: "gave the task up",
        TaskState.TASK_STATE_REJECTED: "refused the task",
        TaskState.TASK_STATE_AUTH_REQUIRED: "wants other credentials",
    }.get(status.state, "ended in an unknown state")
    return f"{outcome}: {_words(status)}"


def _words(status: TaskStatus) -> str:
    texts = [part.text for part in status.message.parts if part.WhichOneof("content") == "text"]
    return said(" ".join(texts)) or "it does not say why"
