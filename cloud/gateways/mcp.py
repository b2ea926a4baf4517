"""Podium as an MCP server, over stdio or streamable HTTP."""

import json
from collections.abc import Mapping
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cloud.gateways.callers import Callers
from cloud.gateways.mcp_tools import TOOLS, checked_arguments
from cloud.gateways.tasks import followed, moment_of, request_id_of, shown
from podium.client import AsyncClient
from podium.errors import PodiumError
from podium.status import task_status_name
from podium.v1 import blob_pb2, status_pb2, task_pb2

_ANSWER: Final = "answer"
_MAX_QUESTIONS: Final = 5
_DEFAULT_WAIT_S: Final = 60
_INSTRUCTIONS: Final = (
    "Podium plans a request over specialist agents and answers with sources. Hand a request in with submit_task. "
    "If a question comes back, answer it with answer_question. Quote answers with their sources."
)

Context = ServerRequestContext[Any, Any]


class McpGateway:
    """Answers tool calls by calling the server for whoever called."""

    def __init__(self, callers: Callers) -> None:
        """Take where the server is."""
        self._callers = callers
        self.server: Server[Any] = Server(
            "podium",
            version=version("podium"),
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        """The SDK's, to be run on a transport."""

    async def _list_tools(self, _context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS.values()))

    async def _call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        try:
            arguments = checked_arguments(params.name, params.arguments)
            async with self._callers.client(_authorization(context)) as client:
                return await _Call(client, context, params, arguments).result()
        except PodiumError as error:
            evidence = "".join(f"\n- {line}" for line in error.evidence)
            text = f"{error.code}: {error.message}{evidence}\n{error.next_step}"
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


class _Call:
    """One tool call."""

    def __init__(
        self, client: AsyncClient, context: Context, params: CallToolRequestParams, arguments: Mapping[str, Any]
    ) -> None:
        self._client = client
        self._context = context
        self._params = params
        self._arguments = arguments
        self._steps = 0
        self._declined = False
        """The client's person did not answer: the question is in the result, and not asked again."""
        default_s = 0 if params.name == "get_task" else _DEFAULT_WAIT_S
        self._wait = timedelta(seconds=arguments.get("wait_seconds", default_s))

    async def result(self) -> CallToolResult | InputRequiredResult:
        if self._params.name == "list_agents":
            return _structured(await self._agents())
        if self._params.name == "cancel_task":
            given = self._arguments
            return _structured(shown(await self._client.cancel(given["task_id"], given.get("reason", ""))))
        return await self._answered(await self._task_id())

    async def _task_id(self) -> str:
        given = self._arguments
        if self._params.request_state is not None:
            return await self._resumed(self._params.request_state)
        if self._params.name == "get_task":
            return str(given["task_id"])
        if self._params.name == "answer_question":
            question_id = given.get("question_id", "")
            return (await self._client.answer(given["task_id"], given["answer"], question_id=question_id)).task_id
        as_of = moment_of(given["as_of"]) if "as_of" in given else None
        task = await self._client.submit(
            given["text"],
            request_id=request_id_of(given.get("request_id", "")),
            as_of=as_of,
            attachments=[
                blob_pb2.BlobRef(**blob | {"size_bytes": int(blob["size_bytes"])})  # JSON has 5.0 as an integer
                for blob in given.get("attachments", ())
            ],
        )
        return task.task_id

    async def _resumed(self, state: str) -> str:
        """The task that a question was asked about, with the client's answer given to it.

        The state comes back from the client, so it is no more than a claim: the server decides whether the caller
        may answer this task's question.
        """
        try:
            known = json.loads(state)
            task_id, question_id = str(known["task_id"]), str(known["question_id"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise MCPError(INVALID_PARAMS, "the request state is not one of this server") from error
        response = (self._params.input_responses or {}).get(_ANSWER)
        if isinstance(response, ElicitResult) and (answer := _accepted(response)):
            await self._client.answer(task_id, answer, question_id=question_id)
        else:
            self._declined = True
        return task_id

    async def _answered(self, task_id: str) -> CallToolResult | InputRequiredResult:
        """The task after waiting; its questions go to the client's person where there is a way to ask."""
        for _ in range(_MAX_QUESTIONS):
            await self._follow(task_id)
            task = await self._client.get(task_id)
            waiting = task.status == status_pb2.TASK_STATUS_WAITING_INPUT
            if not waiting or self._declined or not self._may_ask():
                break
            if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return _asking(task)
            if not (answer := await self._ask(task)):
                break
            await self._client.answer(task_id, answer, question_id=task.question.question_id)
        return _structured(shown(task))

    async def _follow(self, task_id: str) -> None:
        if not self._wait:
            return
        async for kind, status in followed(self._client, task_id, wait=self._wait):
            self._steps += 1
            await self._context.session.report_progress(
                self._steps, message=f"{task_status_name(status)}: {kind.replace('_', ' ')}"
            )

    def _may_ask(self) -> bool:
        capabilities = self._context.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def _ask(self, task: task_pb2.Task) -> str:
        """Ask over the open connection, as protocols before 2026-07-28 do; '' when nobody answers."""
        form = _form(task)
        try:
            result = await self._context.session.elicit_form(
                form.message, form.requested_schema, self._context.request_id
            )
        except MCPError:
            return ""  # no way back to the client, or it refuses to ask: the question is in the result
        return _accepted(result)

    async def _agents(self) -> dict[str, Any]:
        agents = await self._client.agents(self._arguments.get("pack", ""))
        return {
            "agents": [
                {
                    "name": agent.name,
                    "version": agent.version,
                    "description": agent.description,
                    "pack": agent.pack,
                    "capability_tags": list(agent.capability_tags),
                }
                for agent in agents
                if agent.enabled
            ]
        }


def _form(task: task_pb2.Task) -> ElicitRequestFormParams:
    hints = "".join(f"\n- {suggestion}" for suggestion in task.question.suggestions)
    answer = {"type": "string", "title": "Answer", "minLength": 1, "maxLength": 4000}
    return ElicitRequestFormParams(
        message=task.question.text + hints,
        requested_schema={"type": "object", "properties": {_ANSWER: answer}, "required": [_ANSWER]},
    )


def _asking(task: task_pb2.Task) -> InputRequiredResult:
    return InputRequiredResult(
        input_requests={_ANSWER: ElicitRequest(params=_form(task))},
        request_state=json.dumps({"task_id": task.task_id, "question_id": task.question.question_id}),
    )


def _accepted(result: ElicitResult) -> str:
    answer = (result.content or {}).get(_ANSWER)
    return answer if result.action == "accept" and isinstance(answer, str) else ""


def _structured(value: dict[str, Any]) -> CallToolResult:
    """The value, and for clients that read only text its answer, or else all of it."""
    text = value.get("answer_markdown") or json.dumps(value, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=value)


def _authorization(context: Context) -> str | None:
    """The caller's header; None on stdio, where only whoever started the gateway calls."""
    headers = getattr(context.request, "headers", None)
    return headers.get("authorization") if headers is not None else None
