"""The normalised request: the one JSON document that plans, rules and agents refer to."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from agents.invocation import Caller
from conductor.document import JsonDocument
from conductor.progress import Clarification, TaskState

TextNormaliser = Callable[[str, datetime, Sequence[Clarification]], Mapping[str, Any]]
"""Given the caller's words, the moment they refer to and the answers so far: the text part of the request, with
`text`, `language`, `entities`, `unresolved`, `corrections` and, where known, `intents` and `assumptions`.
The `now` of the request is the moment given."""


def plain_text(text: str, as_of: datetime, clarifications: Sequence[Clarification]) -> Mapping[str, Any]:
    """A `TextNormaliser` that understands nothing: the words as they are, the language by its letters."""
    words = " ".join([text, *(item.answer for item in clarifications)]).strip()
    chinese = any("\u4e00" <= letter <= "\u9fff" for letter in words)
    return {
        "text": words,
        "language": "zh" if chinese else "en",
        "entities": {},
        "unresolved": [],
        "corrections": [],
    }


def build_request(
    state: TaskState,
    normalise: TextNormaliser,
    *,
    caller: Caller,
    agents: Sequence[str],
    device_online: bool,
) -> JsonDocument:
    """The normalised request of a task.

    Args:
        state: The accepted task, with the answers given so far.
        normalise: Does the text part.
        caller: Who asked.
        agents: Names of the agents on duty.
        device_online: Whether the device it came from is connected now.

    Raises:
        InvalidRequest: the text cannot be normalised.
        DataCorrupt: the payload is not JSON.
    """
    if state.as_of is None:
        raise ValueError("the task has no moment that its dates refer to; it was never accepted")
    request: dict[str, Any] = dict(normalise(state.text, state.as_of, state.clarifications))
    request["original"] = state.text
    request["now"] = state.as_of.isoformat()
    request["payload_kind"] = state.payload_kind
    request["payload"] = state.payload.value if state.payload is not None else {}
    request["attachments"] = [
        {
            "sha256": blob.sha256,
            "media_type": blob.media_type,
            "file_name": blob.file_name,
            "size_bytes": blob.size_bytes,
        }
        for blob in state.attachments
    ]
    request["device"] = {"id": state.device_id, "online": device_online}
    request["caller"] = {"name": caller.name, "roles": sorted(caller.roles)}
    request["agents"] = list(agents)
    request["clarifications"] = [
        {"question": item.question, "answer": item.answer} for item in state.clarifications
    ]
    return JsonDocument.of(request)
