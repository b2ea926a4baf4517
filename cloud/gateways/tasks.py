"""What both gateways do with a task: follow it for a while, and show it as plain values."""

import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from podium.client import AsyncClient
from podium.errors import InvalidRequest, TimeLimitExceeded
from podium.status import ENDED, WAITS_FOR_PERSON, TaskStatus, task_status_name
from podium.v1 import task_pb2

MAX_WAIT: Final = timedelta(minutes=10)
_NAMESPACE: Final = uuid.UUID("5d7c0f8e-93c4-5a3e-8a55-2f6d7c1b9e04")


def request_id_of(given: str) -> str:
    """A caller's own name for a request as the UUID that makes its repetition harmless; a new one without a name.

    Ids belong to their caller: the server keeps those of two callers apart.
    """
    return str(uuid.uuid5(_NAMESPACE, given)) if given else str(uuid.uuid4())


def moment_of(given: object) -> datetime:
    """A caller's `as_of` in UTC.

    Raises:
        InvalidRequest: it is no moment as ISO 8601 writes it, or none that calendars know.
    """
    try:
        moment = datetime.fromisoformat(given)  # type: ignore[arg-type]  # of another type is a TypeError
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest("as_of is not a moment as ISO 8601 writes it", field="as_of") from error


async def followed(
    client: AsyncClient, task_id: str, *, wait: timedelta, after_sequence: int = 0
) -> AsyncGenerator[tuple[str, TaskStatus], None]:
    """What happens to a task, as event and status, until it has ended, waits for a person or time is up."""
    watch = client.watch(task_id, after_sequence=after_sequence, time_limit=min(wait, MAX_WAIT))
    try:
        async with aclosing(watch) as responses:
            async for response in responses:
                yield str(response.event.WhichOneof("payload") or "event"), response.status
                if response.status not in ENDED and response.status not in WAITS_FOR_PERSON:
                    continue
                # The log is replayed from its start: an old question may have been answered since.
                task = await client.get(task_id)
                if task.status in ENDED or task.status in WAITS_FOR_PERSON:
                    return
    except TimeLimitExceeded:
        return


def shown(task: task_pb2.Task) -> dict[str, Any]:
    """A task as plain JSON: status, answer with its sources, open question, error."""
    result = task.result
    return {
        "task_id": task.task_id,
        "status": task_status_name(task.status),
        "answer_markdown": result.answer_markdown,
        "fields": json.loads(result.fields_json) if result.fields_json else {},
        "sources": [
            {name: getattr(source, name) for name in ("id", "kind", "label", "location", "sha256")}
            for source in result.sources
        ],
        "snapshot_sha256": result.snapshot_sha256,
        "assumptions": list(result.assumptions),
        "degraded": list(result.degraded),
        "question": _question(task),
        "error": _error(task),
    }


def _question(task: task_pb2.Task) -> dict[str, Any] | None:
    if not task.HasField("question"):
        return None
    question = task.question
    return {
        "question_id": question.question_id,
        "text": question.text,
        "suggestions": list(question.suggestions),
    }


def _error(task: task_pb2.Task) -> dict[str, Any] | None:
    if not task.HasField("error"):
        return None
    return {"code": task.error.code, "message": task.error.message, "next_step": task.error.next_step}
