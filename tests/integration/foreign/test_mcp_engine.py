"""A tool of an MCP server as an agent: over stdio and over HTTP, with every way to fail."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.engines.foreign import AgentIncompatible
from agents.engines.mcp import McpEngine
from agents.invocation import Invocation
from agents.sandbox import confinement
from cloud.engines import certain_misfits
from podium.errors import AgentCrashed, AgentError, AgentTimeout, AgentUnreachable, OutputContractBroken
from tests.integration.foreign.calls import invocation, nothing_left, process, violations
from tests.integration.server import ROOT

SERVER = [sys.executable, "-m", "tests.fakes.mcp_server"]
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}",
    "ATLAS_TOKEN": "secret-of-the-test",
    "OTHER": "not passed on",
}
STDIO = {"command": SERVER, "env": ["PYTHONPATH", "ATLAS_TOKEN"], "path": str(ROOT)}


def run(work: Callable[[McpEngine], Awaitable[Any]], environment: Mapping[str, str] = ENVIRONMENT) -> Any:
    async def with_engine() -> Any:
        engine = McpEngine(environment, certain_misfits)
        try:
            return await work(engine)
        finally:
            await engine.close()
            await nothing_left()

    return asyncio.run(with_engine())


def call(
    tool: str, inputs: Mapping[str, Any] | None = None, *, way: Mapping[str, Any] = STDIO, **fields: Any
) -> Any:
    made = stdio_call(tool, inputs, way=way, **fields)
    return run(lambda engine: engine.invoke(made))


def stdio_call(
    tool: str, inputs: Mapping[str, Any] | None = None, *, way: Mapping[str, Any] = STDIO, **fields: Any
) -> Invocation:
    more = fields.pop("settings", {})
    return invocation({**way, "tool": tool, **more}, inputs, engine="mcp", **fields)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    port_file = tmp_path_factory.mktemp("mcp") / "port"
    with process(
        "tests.fakes.mcp_server", "--http", str(port_file), "--token", "secret-of-the-test", port_file=port_file
    ):
        yield {"url": f"http://127.0.0.1:{port_file.read_text()}/mcp", "token_env": "ATLAS_TOKEN"}


@pytest.fixture
def shown() -> Iterator[Path]:
    """A folder that everybody may enter; the server runs as somebody else where it can."""
    with tempfile.TemporaryDirectory(prefix="podium-shown-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(params=["stdio", "http"])
def way(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    return STDIO if request.param == "stdio" else request.getfixturevalue("http")


@pytest.mark.parametrize("tool", ["lookup", "text"])
def test_a_result_gets_the_declared_confidence_and_a_source_that_says_where_it_came_from(
    way: Mapping[str, Any], tool: str
) -> None:
    made = stdio_call(tool, way=way)
    output = run(lambda engine: engine.invoke(made))
    assert output["population"] == 6000
    assert output["confidence_score"] == 0.7
    [source] = output["sources"]
    assert (source["id"], source["kind"]) == ("S1", "agent")
    assert source["label"] == f"tool {tool} of atlas 3.1"
    assert source["location"].endswith(f"#{tool}")
    assert len(source["sha256"]) == 64
    assert violations(made, output) == []


def test_a_forged_confidence_is_cut_and_a_claimed_source_is_marked(way: Mapping[str, Any]) -> None:
    output = call("forge", way=way)
    assert output["confidence_score"] == 0.7
    own, told = output["sources"]
    assert (own["id"], own["kind"], told["id"]) == ("S2", "agent", "S1")
    assert told["label"] == "sales warehouse (as told by atlas)"
    raised = call("forge", way=way, settings={"confidence": 0.7, "max_confidence": 0.9})
    assert raised["confidence_score"] == 0.9


def test_an_output_without_a_confidence_needs_a_declared_one() -> None:
    with pytest.raises(OutputContractBroken, match="declares none"):
        call("lookup", settings={"confidence": None, "max_confidence": 0.9})


@pytest.mark.parametrize(
    ("tool", "error", "words"),
    [
        ("prose", OutputContractBroken, "not one JSON object"),
        ("not_a_number", OutputContractBroken, "NaN"),
        ("picture", OutputContractBroken, "returned image"),
        ("huge", OutputContractBroken, "more than its manifest allows"),
        ("fail", AgentCrashed, "failed: no such city"),
        ("nothing_of_the_kind", AgentIncompatible, "has no tool"),
        ("other_inputs", AgentIncompatible, "town"),
    ],
)
def test_every_way_to_fail_has_its_type(
    way: Mapping[str, Any], tool: str, error: type[AgentError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        call(tool, way=way)
    assert caught.value.agent == "atlas"
    assert len(caught.value.message) < 600


def test_a_server_that_is_killed_in_the_middle_is_replaced_and_the_retry_succeeds(shown: Path) -> None:
    mark = shown / "mark"
    inputs = {"city": "Xi'an", "marks": str(mark)}
    made = stdio_call("die_unmarked", inputs, settings={"cwd": str(shown)})

    async def twice(engine: McpEngine) -> Any:
        with pytest.raises(AgentUnreachable, match="signal 9") as caught:
            await engine.invoke(made)
        assert caught.value.retryable
        [words] = caught.value.evidence
        assert "about to die" in words
        assert "secret-of-the-test" not in words
        mark.touch()
        return await engine.invoke(made)

    assert run(twice)["population"] == 5000


def test_a_neighbour_of_a_killed_call_fails_at_once_and_typed() -> None:
    async def both(engine: McpEngine) -> Any:
        slow = asyncio.create_task(engine.invoke(stdio_call("slow", {"city": "A", "seconds": 60})))
        while (await engine.invoke(stdio_call("slow_ones")))["slow"] == 0:
            assert not slow.done()
        began = time.monotonic()
        results = await asyncio.gather(slow, engine.invoke(stdio_call("die")), return_exceptions=True)
        assert time.monotonic() - began < 5
        return results

    assert all(isinstance(result, AgentUnreachable) for result in run(both))


def test_a_http_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    port_file = tmp_path / "port"

    async def work(engine: McpEngine) -> Any:
        with process("tests.fakes.mcp_server", "--http", str(port_file), port_file=port_file) as server:
            port = port_file.read_text()
            url = {"url": f"http://127.0.0.1:{port}/mcp"}
            slow = asyncio.create_task(engine.invoke(stdio_call("slow", {"city": "A", "seconds": 60}, way=url)))
            assert (await engine.invoke(stdio_call("lookup", way=url)))["population"] == 6000
            server.kill()
            with pytest.raises(AgentUnreachable):
                await slow
            with pytest.raises(AgentUnreachable):
                await engine.invoke(stdio_call("lookup", way=url))
        port_file.unlink()
        with process("tests.fakes.mcp_server", "--http", str(port_file), "--port", port, port_file=port_file):
            return await engine.invoke(stdio_call("lookup", way=url))

    assert run(work)["population"] == 6000


def test_a_hanging_tool_times_out_and_its_server_is_ended(way: Mapping[str, Any]) -> None:
    async def work(engine: McpEngine) -> None:
        await engine.invoke(stdio_call("slow", {"city": "A", "seconds": 0}, way=way))
        first = _started()
        began = time.monotonic()
        with pytest.raises(AgentTimeout, match="within 1 s"):
            await engine.invoke(stdio_call("slow", {"city": "A", "seconds": 600}, way=way, seconds=1))
        assert time.monotonic() - began < 1.5
        if way is STDIO:
            assert first
            await _gone(first)
        assert (await engine.invoke(stdio_call("lookup", way=way)))["population"] == 6000

    run(work)


def test_a_slow_neighbour_of_a_hanging_call_still_gets_its_answer() -> None:
    async def work(engine: McpEngine) -> Any:
        await engine.invoke(stdio_call("lookup"))
        slow = asyncio.create_task(engine.invoke(stdio_call("slow", {"city": "AB", "seconds": 2})))
        with pytest.raises(AgentTimeout):
            await engine.invoke(stdio_call("slow", {"city": "A", "seconds": 600}, seconds=0.5))
        return await slow

    assert run(work)["population"] == 2000


def test_calls_share_one_warm_server_and_run_at_once() -> None:
    async def work(engine: McpEngine) -> None:
        await engine.invoke(stdio_call("lookup"))
        first = _started()
        began = time.monotonic()
        calls = (engine.invoke(stdio_call("slow", {"city": "A", "seconds": 1})) for _ in range(5))
        await asyncio.gather(*calls)
        assert time.monotonic() - began < 3
        assert _started() == first

    run(work)


def test_a_program_sees_named_variables_only_and_a_folder_of_its_own() -> None:
    output = call("environment")
    assert set(output["names"]) <= {"ATLAS_TOKEN", "PYTHONPATH", "LC_CTYPE", "HOME", "TMPDIR"}
    assert output["folder"] == confinement.SCRATCH or "podium-agent-" in output["folder"]
    assert not Path(output["folder"]).exists()


def test_a_server_and_what_it_started_end_with_the_engine() -> None:
    pids: list[int] = []

    async def work(engine: McpEngine) -> None:
        await engine.invoke(stdio_call("spawn"))
        pids.extend(_started())
        assert len(pids) >= 4  # warden, server and its two children

    run(work)
    asyncio.run(_gone(pids))


def _started() -> list[int]:
    """Wardens below this process, and what they hold."""
    me = psutil.Process()
    wardens = [child for child in me.children() if "agents.sandbox.warden" in " ".join(child.cmdline())]
    held = [child for warden in wardens for child in warden.children(recursive=True)]
    return sorted(process.pid for process in (*wardens, *held))


async def _gone(pids: list[int]) -> None:
    async with asyncio.timeout(10):
        while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110 - nothing tells of a process's end
            await asyncio.sleep(0.02)


SPEAKERS = {
    "wrong version": """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
""",
    "garbage": "while True: print('hello, I am a server', flush=True)",
    "endless line": "import sys\nwhile True: sys.stdout.write('x' * 65536)",
    "ends at once": "import sys; sys.exit('no licence')",
    "closes its output": "import os, time; os.close(1); time.sleep(60)",
}


@pytest.mark.parametrize(
    ("speaker", "error", "words"),
    [
        ("wrong version", AgentIncompatible, "another version"),
        ("garbage", AgentCrashed, "not MCP"),
        ("endless line", OutputContractBroken, "more than"),
        ("ends at once", AgentUnreachable, "status 1"),
        ("closes its output", AgentUnreachable, "gone|cannot be reached"),
    ],
)
def test_programs_that_speak_no_mcp_are_told_apart(speaker: str, error: type[AgentError], words: str) -> None:
    way = {"command": [sys.executable, "-c", SPEAKERS[speaker]]}
    began = time.monotonic()
    with pytest.raises(error, match=words):
        call("lookup", way=way, seconds=15)
    assert time.monotonic() - began < 10


def test_a_program_that_never_speaks_times_out() -> None:
    way = {"command": [sys.executable, "-c", "import time; time.sleep(60)"]}
    with pytest.raises(AgentTimeout):
        call("lookup", way=way, seconds=1)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"command": ["no-such-program-of-podium"]}, "no program"),
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached"),
    ],
)
def test_a_server_that_is_not_there_is_unreachable(way: Mapping[str, Any], words: str) -> None:
    with pytest.raises(AgentUnreachable, match=words):
        call("lookup", way=way)


@pytest.mark.parametrize(
    ("tools", "error", "words"),
    [(500, AgentIncompatible, "no tool 'lookup'"), (9_000, OutputContractBroken, "more than its manifest allows")],
)
def test_a_server_with_tools_without_end_is_not_listened_to_without_end(
    tmp_path: Path, tools: int, error: type[AgentError], words: str
) -> None:
    port_file = tmp_path / "port"
    with (
        process(
            "tests.fakes.mcp_server", "--http", str(port_file), "--endless-tools", str(tools), port_file=port_file
        ),
        pytest.raises(error, match=words),
    ):
        call("lookup", way={"url": f"http://127.0.0.1:{port_file.read_text()}/mcp"})


def test_a_missing_variable_is_named(http: Mapping[str, Any]) -> None:
    with pytest.raises(AgentCrashed, match="ATLAS_TOKEN"):
        run(lambda engine: engine.invoke(stdio_call("lookup", way=http)), environment={"PATH": ""})
    with pytest.raises(AgentCrashed, match="PYTHONPATH, ATLAS_TOKEN"):
        run(lambda engine: engine.invoke(stdio_call("lookup")), environment={"PATH": ""})


def test_a_refused_token_is_said(http: Mapping[str, Any]) -> None:
    with pytest.raises(AgentCrashed, match="HTTP 401"):
        run(
            lambda engine: engine.invoke(stdio_call("lookup", way=http)),
            environment={**ENVIRONMENT, "ATLAS_TOKEN": "wrong"},
        )
