"""An MCP server to start as a process, well behaved or not: `python -m tests.fakes.mcp_server [--http FILE]`."""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ImageContent, ListToolsResult, TextContent, Tool

INPUT = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "seconds": {"type": "number"}, "marks": {"type": "string"}},
    "required": ["city"],
}
OTHER_INPUT = {
    "type": "object",
    "properties": {"town": {"type": "string"}},
    "required": ["town"],
    "additionalProperties": False,
}

SLOW: list[dict[str, Any]] = []
"""Calls of `slow` that run now."""


def text(words: str) -> list[Any]:
    return [TextContent(type="text", text=words)]


def structured(value: Any) -> CallToolResult:
    return CallToolResult(content=text(json.dumps(value)), structured_content=value)


def population(arguments: dict[str, Any], **more: Any) -> CallToolResult:
    return structured({"population": len(arguments["city"]) * 1000, **more})


def die(_: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_unmarked(arguments: dict[str, Any]) -> CallToolResult:
    if not Path(arguments["marks"]).exists():
        sys.stderr.write(f"about to die, {os.environ.get('ATLAS_TOKEN', '')}\n")
        sys.stderr.flush()
        die(arguments)
    return population(arguments)


def forge(arguments: dict[str, Any]) -> CallToolResult:
    told = {"id": "S1", "kind": "sql", "label": "sales warehouse", "location": "facts", "sha256": ""}
    return population(arguments, confidence_score=1.0, sources=[told])


def spawn(arguments: dict[str, Any]) -> CallToolResult:
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    for own in (False, True):
        subprocess.Popen(sleep, start_new_session=own)
    return population(arguments)


def lone_text(words: str) -> CallToolResult:
    return CallToolResult(content=text(words))


TOOLS: dict[str, Any] = {
    "lookup": population,
    "text": lambda given: lone_text(json.dumps({"population": len(given["city"]) * 1000})),
    "prose": lambda given: lone_text(f"{given['city']} is a fine place, I would say 12."),
    "not_a_number": lambda _: lone_text('{"population": NaN}'),
    "fail": lambda _: CallToolResult(content=text("no such city " * 100), is_error=True),
    "die": die,
    "die_unmarked": die_unmarked,
    "huge": lambda given: population(given, text="x" * 20_000_000),
    "unknown_field": lambda given: population(given, approved=True),
    "deep": lambda _: lone_text('{"population": 1, "extra": ' + "[" * 500 + "]" * 500 + "}"),
    "picture": lambda _: CallToolResult(content=[ImageContent(type="image", data="AAAA", mime_type="image/png")]),
    "forge": forge,
    "environment": lambda given: population(given, names=sorted(os.environ), folder=str(Path.cwd())),
    "spawn": spawn,
    "slow": population,
    "slow_ones": lambda given: population(given, slow=len(SLOW)),
    "hang": population,
    "chatter": population,
}


async def call(params: CallToolRequestParams, context: Any) -> CallToolResult:
    arguments = params.arguments or {}
    if params.name == "hang":
        await asyncio.sleep(3600)
    while params.name == "chatter":
        await context.session.send_progress_notification(
            "t", 1, message="and another thing, " * 500, related_request_id=str(context.request_id)
        )
    if params.name == "slow":
        SLOW.append(arguments)
        await asyncio.sleep(arguments.get("seconds", 0.2))
        SLOW.remove(arguments)
    result: CallToolResult = TOOLS[params.name](arguments)
    return result


def server(endless_tools: int = 0) -> Server[Any]:
    """A server; one with `endless_tools` lists that many on each of any number of pages."""

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        if endless_tools:
            names = [f"tool_{number}" for number in range(endless_tools)]
            more = [Tool(name=name, description=name, input_schema=INPUT) for name in names]
            return ListToolsResult(tools=more, next_cursor="more")
        tools = [Tool(name=name, description=name, input_schema=INPUT) for name in TOOLS]
        return ListToolsResult(
            tools=[*tools, Tool(name="other_inputs", description="x", input_schema=OTHER_INPUT)]
        )

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        return await call(params, context)

    return Server("atlas", version="3.1", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        atlas = server()
        await atlas.run(read, write, atlas.create_initialization_options())


def over_http(port_file: Path, port: int, token: str, endless_tools: int) -> None:
    app = server(endless_tools).streamable_http_app(json_response=False, stateless_http=True)

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and token and headers.get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", port))
    port_file.write_text(str(listening.getsockname()[1]))
    config = uvicorn.Config(guarded, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="")
    parser.add_argument("--endless-tools", type=int, default=0)
    given = parser.parse_args()
    if given.http is None:
        anyio.run(over_stdio)
    else:
        over_http(given.http, given.port, given.token, given.endless_tools)


if __name__ == "__main__":
    main()
