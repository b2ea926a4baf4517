"""A real MCP server whose one tool does what `word` says; started by the engine, inside the sandbox."""

import json
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from tests.cases.hostile_process.misbehaving import WORDS

INPUT = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "server": {"type": "integer"}, "secret_file": {"type": "string"}},
    "required": ["word", "server", "secret_file"],
    "additionalProperties": False,
}


async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="misbehave", description="misbehave", input_schema=INPUT)])


async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    said = WORDS[arguments["word"]](arguments)["said"]
    return CallToolResult(content=[TextContent(type="text", text=json.dumps({"said": said}))])


async def serve() -> None:
    async with stdio_server() as (read, write):
        server = Server("hostile", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve)
