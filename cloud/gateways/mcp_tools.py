"""The tools that Podium offers over MCP, with the schemas of what they take and give."""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
from mcp.types import Tool, ToolAnnotations

from podium.errors import InvalidRequest, NotFound

_TEXT: Final = {"type": "string"}
_TASK_ID: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "As submit_task returned it.",
}
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": 600,
    "default": 60,
    "description": "Seconds to wait for the answer; the task goes on if it takes longer.",
}
_ATTACHMENT: Final = {
    "type": "object",
    "properties": {
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "size_bytes": {"type": "integer", "minimum": 0, "maximum": 2**53},
        "media_type": {"type": "string", "maxLength": 255},
        "file_name": {"type": "string", "maxLength": 255},
    },
    "required": ["sha256", "size_bytes"],
    "additionalProperties": False,
}
_TASK: Final = {
    "type": "object",
    "properties": {
        "task_id": _TEXT,
        "status": {"type": "string", "description": "succeeded, waiting_input, waiting_review, running, failed …"},
        "answer_markdown": {"type": "string", "description": "Every claim ends with [Source: ID]."},
        "fields": {"type": "object", "description": "The answer as typed values."},
        "sources": {"type": "array", "items": {"type": "object"}, "description": "What the answer rests on."},
        "snapshot_sha256": _TEXT,
        "assumptions": {"type": "array", "items": _TEXT},
        "degraded": {"type": "array", "items": _TEXT},
        "question": {"type": ["object", "null"], "description": "Answer it with answer_question."},
        "error": {"type": ["object", "null"]},
    },
    "required": ["task_id", "status", "answer_markdown", "fields", "sources", "question", "error"],
}
_AGENTS: Final = {
    "type": "object",
    "properties": {"agents": {"type": "array", "items": {"type": "object"}}},
    "required": ["agents"],
}


def _taking(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            name="submit_task",
            description="Hand in a request in words and wait for the answer with its sources. "
            "If the request is unclear a question comes back instead.",
            input_schema=_taking(
                ("text",),
                text={"type": "string", "minLength": 1, "maxLength": 4000},
                wait_seconds=_WAIT,
                as_of={
                    "type": "string",
                    "format": "date-time",
                    "description": "The moment that 'last quarter' and the like refer to; now when left out.",
                },
                attachments={"type": "array", "items": _ATTACHMENT, "maxItems": 20},
                request_id={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "description": "Your own name for this request: sent again, it returns the first task.",
                },
            ),
            output_schema=_TASK,
        ),
        Tool(
            name="get_task",
            description="Read a task, or wait for it.",
            input_schema=_taking(("task_id",), task_id=_TASK_ID, wait_seconds={**_WAIT, "default": 0}),
            output_schema=_TASK,
            annotations=ToolAnnotations(read_only_hint=True),
        ),
        Tool(
            name="answer_question",
            description="Answer the question that a task waits with, and wait for its answer.",
            input_schema=_taking(
                ("task_id", "answer"),
                task_id=_TASK_ID,
                answer={"type": "string", "minLength": 1, "maxLength": 4000},
                question_id={"type": "string", "maxLength": 200, "description": "The open one when left out."},
                wait_seconds=_WAIT,
            ),
            output_schema=_TASK,
        ),
        Tool(
            name="cancel_task",
            description="End a task early.",
            input_schema=_taking(("task_id",), task_id=_TASK_ID, reason={"type": "string", "maxLength": 500}),
            output_schema=_TASK,
        ),
        Tool(
            name="list_agents",
            description="The agents that answer: what each can do, and the pack it belongs to.",
            input_schema=_taking(pack={"type": "string", "maxLength": 100}),
            output_schema=_AGENTS,
            annotations=ToolAnnotations(read_only_hint=True),
        ),
    )
}

_VALIDATORS: Final = {
    name: jsonschema_rs.Draft202012Validator(tool.input_schema, validate_formats=True)
    for name, tool in TOOLS.items()
}


def checked_arguments(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, if the tool takes them.

    Raises:
        NotFound: there is no such tool.
        InvalidRequest: it does not take them; the message names the field.
    """
    if name not in TOOLS:
        raise NotFound(f"there is no tool {name[:100]!r}", next_step=f"There are {', '.join(TOOLS)}.")
    given = dict(arguments or {})
    try:
        # Stops at the first fault: to list those of a megabyte of wrong values takes many seconds.
        _VALIDATORS[name].validate(given)
    except jsonschema_rs.ValidationError as error:
        place = ".".join(map(str, error.instance_path))
        raise InvalidRequest(f"{place or 'arguments'}: {error.message[:300]}", field=place) from error
    return given
