"""Foreign agents are told the trace: over HTTP in a header, over MCP beside the arguments."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.engines.a2a_http import http_client
from agents.engines.mcp import McpEngine
from agents.engines.openai_http import answer_room_bytes, counting_client
from agents.invocation import AgentContext, Caller, Invocation
from podium.telemetry import TraceContext, span
from tests.integration.hosts.ground import spec

ABOVE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@asynccontextmanager
async def _listening(heads: list[bytes]) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize("engine", ["openai", "a2a"])
def test_a_call_over_http_carries_the_trace_and_one_outside_of_any_does_not(engine: str) -> None:
    heads: list[bytes] = []

    async def call() -> None:
        answer_room_bytes.set(1000)
        client: Any = (
            counting_client() if engine == "openai" else http_client(max_response_bytes=1000, ca_file=None)
        )
        async with client, _listening(heads) as url:
            with span("podium.agent.call", parent=ABOVE):
                await client.get(url)
            await client.get(url)

    asyncio.run(call())
    assert f"traceparent: {ABOVE.traceparent}".encode() in heads[0].lower()
    assert b"traceparent" not in heads[1].lower()


def test_a_call_over_mcp_carries_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Mapping[str, str]] = []

    class Session:
        usable = True

        def call(self, tool: str, arguments: object, meta: Mapping[str, str], notes: object) -> Any:
            told.append(meta)
            raise asyncio.CancelledError

    monkeypatch.setattr(McpEngine, "_session", lambda *_: Session())
    agent = spec(engine="mcp", settings={"command": ["server"], "tool": "t", "confidence": 0.9})
    context = AgentContext(
        task_id="t", step=0, attempt=1, idempotency_key="t/1", now=datetime.now(UTC), caller=Caller(name="ann")
    )
    invocation = Invocation(spec=agent, inputs={"do": "x"}, context=context, time_limit=timedelta(seconds=5))

    async def call() -> None:
        with span("podium.agent.call", parent=ABOVE):
            await McpEngine({}, lambda produced, asked: []).invoke(invocation)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(call())
    assert told == [{"podium/idempotency-key": "t/1", "traceparent": ABOVE.traceparent}]
