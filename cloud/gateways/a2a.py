"""Podium as an A2A agent: its tasks are Podium's tasks, its follow-up messages answer their questions."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, NoReturn

from a2a.helpers.proto_helpers import get_data_parts, get_text_parts
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from cloud.gateways.a2a_tasks import (
    CONTEXT_LABEL,
    a2a_task,
    answer_update,
    context_of,
    state_update,
    status_update,
    statuses_of,
)
from cloud.gateways.callers import Callers
from cloud.gateways.tasks import MAX_WAIT, followed, moment_of, request_id_of
from podium.client import AsyncClient
from podium.errors import (
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NotFound,
    PermissionDenied,
    PodiumError,
    Unauthenticated,
)
from podium.status import ENDED
from podium.v1 import blob_pb2, status_pb2, task_pb2

_MAX_PAGE: Final = 100
_DEFAULT_PAGE: Final = 50
_REPLIES: Final[tuple[tuple[type[PodiumError], type[A2AError]], ...]] = (
    (NotFound, TaskNotFoundError),
    (InvalidRequest, InvalidParamsError),
    (Conflict, UnsupportedOperationError),
    (LimitExceeded, InvalidRequestError),
    (PermissionDenied, InvalidRequestError),
    (Unauthenticated, InvalidRequestError),
)


class A2aGateway(RequestHandler):
    """Answers A2A requests by calling the server for whoever called; keeps nothing itself."""

    def __init__(self, callers: Callers) -> None:
        """Take where the server is."""
        self._callers = callers

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Hand a task in, or answer its question; wait unless asked not to."""
        async with self._client(context) as client:
            task = await _taken(client, params.message)
            if not params.configuration.return_immediately:
                async for _ in followed(client, task.task_id, wait=MAX_WAIT, after_sequence=task.last_sequence):
                    pass
                task = await client.get(task.task_id)
            return a2a_task(task)

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """As `on_message_send`, with every change of status on the way."""
        async with self._client(context) as client:
            async for event in _events(client, await _taken(client, params.message)):
                yield event

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Follow a task that still runs."""
        async with self._client(context) as client:
            task = await client.get(params.id)
            if task.status in ENDED:
                raise UnsupportedOperationError("the task has ended; read it instead")
            async for event in _events(client, task):
                yield event

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Read a task."""
        async with self._client(context) as client:
            return a2a_task(await client.get(params.id))

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """One page of the caller's tasks, newest first; `total_size` counts those of the page."""
        size = params.page_size or _DEFAULT_PAGE
        if not 0 < size <= _MAX_PAGE:
            raise InvalidParamsError(f"page_size is {size}; from 1 to {_MAX_PAGE} are given")
        wanted = statuses_of(params.status) if params.status != TaskState.TASK_STATE_UNSPECIFIED else []
        async with self._client(context) as client:
            page = await client.list(statuses=wanted, page_size=size, page_token=params.page_token)
            # A list leaves out the labels, and with them which conversation a task belongs to.
            tasks = [await client.get(task.task_id) for task in page.tasks]
        listed = [a2a_task(task) for task in tasks if params.context_id in ("", context_of(task))]
        if not params.include_artifacts:
            for task in listed:
                task.ClearField("artifacts")
        return ListTasksResponse(
            tasks=listed, next_page_token=page.next_page_token, page_size=size, total_size=len(listed)
        )

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """End a task early."""
        async with self._client(context) as client:
            if (await client.get(params.id)).status in ENDED:
                raise TaskNotCancelableError("the task has ended")
            return a2a_task(await client.cancel(params.id, "cancelled over A2A"))

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Not offered: the gateway calls nobody's URLs."""
        _no_push()

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Not offered."""
        _no_push()

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Not offered."""
        _no_push()

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Not offered."""
        _no_push()

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Not offered: the card says all there is."""
        raise ExtendedAgentCardNotConfiguredError

    @asynccontextmanager
    async def _client(self, context: ServerCallContext) -> AsyncIterator[AsyncClient]:
        """A client that acts for the caller; errors of the server become those of A2A."""
        try:
            async with self._callers.client(_authorization(context)) as client:
                yield client
        except PodiumError as error:
            raise _reply(error) from error


async def _taken(client: AsyncClient, message: Message) -> task_pb2.Task:
    """The task of a message: a new one, or the one whose question it answers."""
    if any(part.WhichOneof("content") not in ("text", "raw", "data") for part in message.parts):
        raise ContentTypeNotSupportedError("links to files are not followed; send them by value")
    text, as_of = _asked(message)
    if message.task_id:
        return await _told(client, message, text)
    request_id = request_id_of(message.message_id)
    context_id = message.context_id or str(uuid.uuid5(uuid.NAMESPACE_OID, request_id))
    return await client.submit(
        text,
        request_id=request_id,
        as_of=as_of,
        attachments=await _attachments(client, message),
        labels={CONTEXT_LABEL: context_id},
    )


def _asked(message: Message) -> tuple[str, datetime | None]:
    """The request: the `text` of a data part, where there is one, or else all texts; and its moment, `as_of`.

    An agent that sends data puts what it wants into them, and words about their form beside them.
    """
    given = get_data_parts(message.parts)
    if not given:
        return "\n".join(get_text_parts(message.parts)), None
    [data] = given if len(given) == 1 else [None]
    if not isinstance(data, dict) or not isinstance(data.get("text"), str) or set(data) - {"text", "as_of"}:
        raise ContentTypeNotSupportedError("a message has one data part at most: an object with text and as_of")
    return data["text"], moment_of(data["as_of"]) if "as_of" in data else None


async def _told(client: AsyncClient, message: Message, text: str) -> task_pb2.Task:
    task = await client.get(message.task_id)
    if message.context_id and message.context_id != context_of(task):
        raise InvalidParamsError("the task belongs to another context")
    if task.status != status_pb2.TASK_STATUS_WAITING_INPUT:
        raise UnsupportedOperationError("the task asks nothing now")
    return await client.answer(task.task_id, text, question_id=task.question.question_id)


async def _attachments(client: AsyncClient, message: Message) -> list[blob_pb2.BlobRef]:
    return [
        await client.upload_bytes(part.raw, media_type=part.media_type, file_name=part.filename)
        for part in message.parts
        if part.WhichOneof("content") == "raw"
    ]


async def _events(client: AsyncClient, task: task_pb2.Task) -> AsyncGenerator[Event, None]:
    """The task, then what changes, until it has ended, asks, or ten minutes passed without a change."""
    yield a2a_task(task)
    seen = task.status
    while task.status not in ENDED and task.status != status_pb2.TASK_STATUS_WAITING_INPUT:
        after = task.last_sequence
        async for _, status in followed(client, task.task_id, wait=MAX_WAIT, after_sequence=after):
            if status != seen and status not in ENDED and status != status_pb2.TASK_STATUS_WAITING_INPUT:
                seen = status
                yield state_update(task, status)
        task = await client.get(task.task_id)
        if task.last_sequence == after:
            return
        if task.status == status_pb2.TASK_STATUS_SUCCEEDED:
            yield answer_update(task)
        if task.status != seen or task.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
            seen = task.status
            yield status_update(task)


def _authorization(context: ServerCallContext) -> str | None:
    """The caller's token, from the headers of HTTP or the metadata of gRPC."""
    grpc_context: Any = context.state.get("grpc_context")
    if grpc_context is None:
        given = context.state.get("headers", {}).get("authorization")
    else:
        given = dict(grpc_context.invocation_metadata()).get("authorization")
    return str(given) if given is not None else None


def _reply(error: PodiumError) -> A2AError:
    kind = next((reply for known, reply in _REPLIES if isinstance(error, known)), InternalError)
    return kind(f"{error.code}: {error.message}")


def _no_push() -> NoReturn:
    raise PushNotificationNotSupportedError
