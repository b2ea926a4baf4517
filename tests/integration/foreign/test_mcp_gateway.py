"""The MCP SDK's own client hands tasks to Podium and gets answers with their sources."""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitResult

from agents.contract import SOURCES_SCHEMA
from agents.engines.mcp import McpEngine
from agents.invocation import AgentContext, Caller, Invocation
from cloud.engines import certain_misfits
from tests.fakes.agents import TEXT, agent_spec
from tests.integration.foreign.calls import nothing_left, violations
from tests.integration.foreign.gateways import (
    ANSWER,
    AS_OF,
    SALES,
    UNCLEAR,
    Desk,
    gateway,
    mcp_client,
    sales_desk,
)
from tests.integration.server import ROOT

SUBMIT = {"text": SALES, "as_of": AS_OF, "wait_seconds": 60}
ASK = {"text": UNCLEAR, "as_of": AS_OF, "wait_seconds": 60}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with sales_desk(tmp_path_factory.mktemp("sales") / "data") as desk:
        yield desk


@pytest.fixture(scope="module")
def url(desk: Desk) -> Iterator[str]:
    log = desk.server.data.parent / "gateway.log"
    with gateway("mcp", "--listen", "127.0.0.1:0", "--data", str(desk.server.data), log=log) as said:
        yield said["url"]
    written = log.read_text()
    for secret in (SALES, UNCLEAR, desk.ann, desk.bob):
        assert secret not in written


def checked(result: CallToolResult, status: str = "succeeded") -> dict[str, Any]:
    assert not result.is_error, result.content
    value: dict[str, Any] = result.structured_content
    assert value["status"] == status, value
    return value


def check_answer(result: CallToolResult) -> dict[str, Any]:
    value = checked(result)
    assert "[Source: S1]" in value["answer_markdown"]
    assert value["fields"]["rows"]
    assert {source["id"] for source in value["sources"]} >= {"S1", "S2"}
    assert all(len(source["sha256"]) in (0, 64) for source in value["sources"])
    [text] = result.content
    assert text.type == "text"
    assert text.text == value["answer_markdown"]
    return value


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_submits_a_task_and_gets_the_answer_with_its_sources(desk: Desk, url: str, mode: str) -> None:
    seen: list[tuple[float, str]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        seen.append((progress, message or ""))

    async def work() -> CallToolResult:
        async with mcp_client(url, desk.ann, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} >= {"submit_task", "get_task", "answer_question", "cancel_task"}
            return await client.call_tool("submit_task", SUBMIT, progress_callback=note)

    check_answer(asyncio.run(work()))
    assert [number for number, _ in seen] == sorted({number for number, _ in seen})
    assert any("step" in message for _, message in seen)


def test_a_client_that_starts_the_gateway_itself_needs_no_token(desk: Desk) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "podium.cli", "gateway", "mcp", "--stdio", "--data", str(desk.server.data)],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
    )

    async def work() -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool("submit_task", SUBMIT)

    check_answer(asyncio.run(work()))


def test_a_question_comes_back_and_is_answered(desk: Desk, url: str) -> None:
    async def work() -> CallToolResult:
        async with mcp_client(url, desk.ann) as client:
            asked = checked(await client.call_tool("submit_task", ASK), "waiting_input")
            assert "Atlantis" in asked["question"]["text"]
            assert asked["question"]["suggestions"]
            arguments = {"task_id": asked["task_id"], "answer": ANSWER}
            return await client.call_tool("answer_question", arguments)

    check_answer(asyncio.run(work()))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_can_ask_its_person_does(desk: Desk, url: str, mode: str) -> None:
    asked: list[str] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "Lemuria" if len(asked) == 1 else ANSWER})

    async def work() -> CallToolResult:
        async with mcp_client(url, desk.ann, mode=mode, elicitation_callback=answer) as client:
            return await client.call_tool("submit_task", ASK)

    check_answer(asyncio.run(work()))
    assert "Atlantis" in asked[0]
    assert "Lemuria" in asked[1]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_who_declines_leaves_the_question_open(desk: Desk, url: str, mode: str) -> None:
    async def decline(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def work() -> CallToolResult:
        async with mcp_client(url, desk.ann, mode=mode, elicitation_callback=decline) as client:
            return await client.call_tool("submit_task", ASK)

    assert checked(asyncio.run(work()), "waiting_input")["question"]


def test_the_same_request_id_runs_once_and_belongs_to_its_caller(desk: Desk, url: str) -> None:
    async def submit(token: str) -> str:
        async with mcp_client(url, token) as client:
            result = await client.call_tool("submit_task", {**SUBMIT, "request_id": "month end"})
            return str(check_answer(result)["task_id"])

    async def work() -> None:
        first = await submit(desk.ann)
        assert await submit(desk.ann) == first
        assert await submit(desk.bob) != first

    asyncio.run(work())


def test_a_task_is_read_and_cancelled_by_its_owner_alone(desk: Desk, url: str) -> None:
    async def work() -> None:
        async with mcp_client(url, desk.ann) as ann, mcp_client(url, desk.bob) as bob:
            task_id = checked(await ann.call_tool("submit_task", ASK), "waiting_input")["task_id"]
            for tool in ("get_task", "cancel_task"):
                refused = await bob.call_tool(tool, {"task_id": task_id})
                assert refused.is_error
            assert checked(await ann.call_tool("get_task", {"task_id": task_id}), "waiting_input")
            cancelled = await ann.call_tool("cancel_task", {"task_id": task_id, "reason": "no longer needed"})
            checked(cancelled, "cancelled")

    asyncio.run(work())


def test_the_agents_are_listed(desk: Desk, url: str) -> None:
    async def work() -> Any:
        async with mcp_client(url, desk.ann) as client:
            return (await client.call_tool("list_agents", {"pack": "invoice"})).structured_content

    agents = asyncio.run(work())["agents"]
    assert agents
    assert {agent["pack"] for agent in agents} == {"invoice"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("get_task", {"task_id": "no-such-task"}, "NOT_FOUND"),
        ("submit_task", {}, 'INVALID_REQUEST: arguments: "text" is a required property'),
        ("submit_task", {"text": "x", "as_of": "yesterday"}, "INVALID_REQUEST: as_of"),
        ("submit_task", {"text": "x", "as_of": "2026-12-31T23:59:60Z"}, "INVALID_REQUEST: as_of"),
        ("submit_task", {"text": "x", "as_of": "0000-01-01T00:00:00Z"}, "INVALID_REQUEST: as_of"),
        ("submit_task", {"text": "x", "as_of": "9999-12-31T23:59:59-23:59"}, "INVALID_REQUEST: as_of"),
        ("submit_task", {"text": "x", "wait_seconds": 9999}, "INVALID_REQUEST: wait_seconds"),
        ("submit_task", {"text": "x", "path": "/etc/passwd"}, "INVALID_REQUEST: arguments"),
        ("submit_task", {"text": "x", "attachments": [{"sha256": "0" * 64, "size_bytes": 1}]}, "not stored"),
        ("submit_task", {"text": "x", "attachments": [{"sha256": "0" * 64, "size_bytes": 5.0}]}, "not stored"),
        (
            "submit_task",
            {"text": "x", "attachments": [{"sha256": "0" * 64, "size_bytes": 2**70}]},
            "attachments.0",
        ),
        ("answer_question", {"task_id": "no-such-task", "answer": "x"}, "NOT_FOUND"),
        ("drop_tables", {}, "NOT_FOUND"),
    ],
)
def test_what_cannot_be_served_is_said_with_its_field(
    desk: Desk, url: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async def work() -> CallToolResult:
        async with mcp_client(url, desk.ann) as client:
            return await client.call_tool(tool, arguments)

    result = asyncio.run(work())
    assert result.is_error
    assert result.content[0].type == "text"
    assert words in result.content[0].text


def post(url: str, headers: dict[str, str], content: bytes | Iterator[bytes] = b"{}") -> httpx2.Response:
    with httpx2.Client() as client:
        return client.post(url, headers={"Content-Type": "application/json", **headers}, content=content)


def test_only_known_callers_and_bounded_requests_of_this_machine_get_in(desk: Desk, url: str) -> None:
    good = {"Authorization": f"Bearer {desk.ann}"}
    assert post(url, {}).status_code == 401
    assert post(url, {"Authorization": "Bearer wrong"}).status_code == 401
    assert post(url, {"Authorization": f"Basic {desk.ann}"}).status_code == 401
    assert post(url, {**good, "Host": "rebound.example"}).status_code == 403
    assert post(url, {**good, "Origin": "https://other.example"}).status_code == 403
    assert post(url, {**good, "Origin": "http://[::1"}).status_code == 403
    assert post(url, {**good, "Host": "[::1"}).status_code == 403
    assert post(url, good, b"x" * 1_100_000).status_code == 413
    # Without a length it is noticed as it comes.
    assert post(url, good, iter([b"x" * 11_000] * 100)).status_code == 413
    assert post(url, good).status_code not in (401, 403, 413)


def test_off_loopback_the_gateway_speaks_tls_and_lends_nothing(desk: Desk, tmp_path: Path) -> None:
    tls = desk.server.data / "tls"
    options = ["--listen", "0.0.0.0:0", "--tls-certificate", str(tls / "server.pem")]
    options += ["--tls-key", str(tls / "server.key"), "--data", str(desk.server.data)]
    options += ["--token-file", str(desk.server.token_file)]
    with gateway("mcp", *options, log=tmp_path / "log") as said:
        url = said["url"].replace("0.0.0.0", "127.0.0.1")
        assert url.startswith("https://")
        ca = ssl.create_default_context(cafile=tls / "ca.pem")
        with httpx2.Client(verify=ca) as client:
            assert client.post(url, json={}).status_code == 401

        async def work() -> CallToolResult:
            async with mcp_client(url, desk.ann, verify=ca) as client:
                return await client.call_tool("submit_task", SUBMIT)

        check_answer(asyncio.run(work()))


def test_podium_is_an_agent_of_podium(desk: Desk, url: str) -> None:
    """One manifest brings Podium itself in as a tool: both halves against each other."""
    spec = agent_spec(
        "other_podium",
        inputs={"text": TEXT},
        outputs={
            **{name: {} for name in ("task_id", "status", "answer_markdown", "fields", "question", "error")},
            **{name: {} for name in ("snapshot_sha256", "assumptions", "degraded")},
        },
        engine="mcp",
        settings={"url": url, "tool": "submit_task", "token_env": "TOKEN", "confidence": 0.9},
    )
    context = AgentContext(
        task_id="t", step=0, attempt=1, idempotency_key="t/0", now=datetime.now(UTC), caller=Caller(name="x")
    )
    call = Invocation(spec=spec, inputs={"text": SALES}, context=context, time_limit=timedelta(seconds=60))

    async def work() -> Any:
        engine = McpEngine({"TOKEN": desk.ann, "PATH": os.environ["PATH"]}, certain_misfits)
        try:
            return await engine.invoke(call)
        finally:
            await engine.close()
            await nothing_left()

    output = asyncio.run(work())
    assert violations(call, output) == []
    assert output["status"] == "succeeded"
    assert output["sources"][0]["label"].startswith("tool submit_task of podium")
    assert output["sources"][1]["label"].endswith("(as told by other_podium)")
    assert SOURCES_SCHEMA["maxItems"] >= len(output["sources"])
    assert json.dumps(output)
