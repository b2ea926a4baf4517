"""The conductor with foreign agents: one that is killed in the middle of its step is asked again, and answers."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.engines.a2a import A2aEngine
from agents.engines.mcp import McpEngine
from cloud.engines import certain_misfits
from conductor.progress import TaskState
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer
from tests.fakes.stage import stage
from tests.integration.foreign.calls import nothing_left, process
from tests.integration.server import ROOT

MCP = {"command": [sys.executable, "-m", "tests.fakes.mcp_server"], "env": ["PYTHONPATH"], "tool": "die_unmarked"}
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}


async def perform(engine_name: str, engine: Any, settings: Mapping[str, Any], mark: Path, **sla: Any) -> TaskState:
    """A plan of two steps: a foreign agent finds a number, an agent of ours answers with it."""
    atlas = agent_spec(
        "atlas",
        inputs={"city": TEXT, "marks": TEXT},
        outputs={"population": NUMBER},
        engine=engine_name,
        settings={"confidence": 0.7, **settings},
        sla={"timeout": 20, "retries": 1, **sla},
    )
    writer = agent_spec("writer", inputs={"population": NUMBER}, outputs=ANSWER)
    plan = {
        "steps": [
            {"tool": "atlas", "arguments": {"city": "Suzhou", "marks": str(mark)}, "depends_on": []},
            {"tool": "writer", "arguments": {"population": {"step": 0, "field": "population"}}, "depends_on": [0]},
        ],
        "parallel_groups": [[0], [1]],
        "confidence": 0.9,
    }
    script = {"writer": lambda call: answer(f"{call.inputs['population']} people [Source: S1]")}
    play = stage([atlas, writer], script, plan)
    engines = {**play.wiring.engines, engine_name: engine}
    try:
        return await play.rewired(engines=engines).perform("How many people live in Suzhou?")
    finally:
        await engine.close()
        await nothing_left()


def check(state: TaskState, attempts: int) -> None:
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state
    assert state.result is not None
    assert "6000 people" in state.result.answer_markdown
    assert next(iter(state.steps)).attempts == attempts


class _Marking:
    """Leaves the mark that the server looks for, once it has died; the server itself may write nowhere."""

    def __init__(self, engine: McpEngine, mark: Path) -> None:
        self._engine = engine
        self._mark = mark

    async def invoke(self, invocation: Any) -> Any:
        if invocation.context.attempt > 1:
            self._mark.touch()
        return await self._engine.invoke(invocation)

    async def close(self) -> None:
        await self._engine.close()


def test_a_killed_mcp_server_is_started_again() -> None:
    # Not below pytest's own folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="podium-shown-") as name:
        Path(name).chmod(0o755)
        mark = Path(name) / "mark"

        async def work() -> TaskState:
            engine = _Marking(McpEngine(ENVIRONMENT, certain_misfits), mark)
            return await perform("mcp", engine, MCP | {"path": str(ROOT), "cwd": name}, mark)

        check(asyncio.run(work()), attempts=2)
        assert mark.exists()


@pytest.mark.parametrize("way", ["jsonrpc", "grpc"])
def test_a_killed_a2a_agent_is_asked_again_when_it_is_back(tmp_path: Path, way: str) -> None:
    port_file, mark = tmp_path / "port", tmp_path / "mark"
    module = "tests.fakes.a2a_agent"

    async def keep_alive(started: Any, ports: list[str]) -> Any:
        """Whoever supervises the agent starts it again where it was."""
        while started.poll() is None:  # noqa: ASYNC110 - nothing tells of its end
            await asyncio.sleep(0.01)
        port_file.unlink()
        options = ["--offer", way, "--http-port", ports[0], "--grpc-port", ports[1]]
        return await asyncio.to_thread(lambda: process(module, str(port_file), *options, port_file=port_file))

    async def work() -> TaskState:
        with process(module, str(port_file), "--offer", way, port_file=port_file) as first:
            ports = port_file.read_text().split()
            supervisor = asyncio.create_task(keep_alive(first, ports))
            settings = {"card": f"http://127.0.0.1:{ports[0]}", "skill": "die_once"}
            try:
                return await perform("a2a", _Patient(A2aEngine({}), supervisor), settings, mark)
            finally:
                supervisor.cancel()

    check(asyncio.run(work()), attempts=2)


class _Patient:
    """Lets a test's second attempt begin only when the agent is back; its delay would be a matter of luck."""

    def __init__(self, engine: A2aEngine, supervisor: "asyncio.Task[Any]") -> None:
        self._engine = engine
        self._supervisor = supervisor
        self._second: Any = None

    async def invoke(self, invocation: Any) -> Any:
        if invocation.context.attempt > 1 and self._second is None:
            self._second = await self._supervisor
            await asyncio.to_thread(self._second.__enter__)
        return await self._engine.invoke(invocation)

    async def close(self) -> None:
        await self._engine.close()
        if self._second is not None:
            self._second.__exit__(None, None, None)
