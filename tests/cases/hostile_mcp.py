"""Call a hostile MCP server in one kind of machine, beside a healthy one, and print what became of each call.

Run as a process of its own, as `tests.cases.hostile_calls` is:
`python -m tests.cases.hostile_mcp KIND FOLDER WORD...`.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.contract import Contract
from agents.engines.mcp import McpEngine
from agents.sandbox import kernel
from agents.sandbox.machine import Machine
from agents.sandbox.process_tree import tree_use
from agents.spec import AgentSpec
from podium.errors import PodiumError
from tests.cases.hostile_calls import CANNOT, KINDS, become, hostile_spec, invocation

ROOT = Path(__file__).parents[2]
OUTCOMES = {
    "good": "ok",
    "hoard": "AGENT_OVER_LIMIT",
    "hoard_shared": "AGENT_OVER_LIMIT",
    "hoard_in_children": "AGENT_OVER_LIMIT",
    "fork_bomb": "AGENT_OVER_LIMIT",
    "thread_bomb": "AGENT_OVER_LIMIT",
    "spin": "AGENT_OVER_LIMIT",
    "big_file": "AGENT_OVER_LIMIT",
    "daemon": "ok",
    "deaf": "AGENT_TIMEOUT",
    "read_secrets": "ok",
    "write_outside": "ok",
    "kill_everybody": "ok",
    "call_out": "ok",
}


def mcp_spec(name: str = "hostile") -> AgentSpec:
    """An MCP server in the sandbox, with tight limits."""
    limits = {"memory_bytes": 300_000_000, "cpu_seconds": 3.0, "max_processes": 8, "max_output_bytes": 100_000}
    settings = {
        "tool": "misbehave",
        "command": [sys.executable, "-m", "tests.cases.hostile_mcp_server"],
        "env": ["PYTHONPATH"],
        "path": str(ROOT),
        "scratch_bytes": 8_000_000,
        "confidence": 0.7,
    }
    return hostile_spec(name, engine="mcp", settings=settings, limits=limits)


def mcp_engine(*, namespaces: bool) -> McpEngine:
    """An engine for it; it must be told that there is nothing to compare."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
    machine = Machine(namespaces=namespaces, weak_isolation=True)
    return McpEngine(environment, lambda _produced, _asked: (), machine)


async def outcome(engine: McpEngine, name: str, word: str, secret_file: str) -> dict[str, Any]:
    """Call once and check as the runner would."""
    spec = mcp_spec(name)
    call = invocation(spec, word, secret_file=secret_file, limit_s=3.0 if word == "deaf" else 25.0)
    begun = time.perf_counter()
    try:
        output = await engine.invoke(call)
        contract = Contract.compile(spec)
        assert contract.output_violations(contract.sanitise(output).output) == []
    except PodiumError as error:
        return {"code": error.code, "message": error.message, "seconds": time.perf_counter() - begun}
    return {"code": "ok", "message": output["said"], "seconds": time.perf_counter() - begun}


@dataclass
class Neighbour:
    """A healthy server that is called all along."""

    engine: McpEngine
    calls: int = 0
    failures: list[str] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            said = await outcome(self.engine, "healthy", "good", "/nowhere")
            self.calls += 1
            if said["code"] != "ok":
                self.failures.append(f"{said['code']}: {said['message']}")
            await asyncio.sleep(0.02)


async def run(kind: str, folder: Path, words: Sequence[str]) -> dict[str, Any]:
    """The words in turn, each followed by a good one; what became of them, and of the neighbour meanwhile."""
    # Whoever escapes a warden becomes a child of this process, where it is seen.
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    secret = folder / "secret"
    secret.write_text("a secret")
    secret.chmod(0o600)
    engine = mcp_engine(namespaces=KINDS[kind][1])
    neighbour = Neighbour(engine)
    await outcome(engine, "healthy", "good", "/nowhere")
    healthy = set(tree_use(os.getpid()).pids)
    running = asyncio.create_task(neighbour.run())
    found: dict[str, Any] = {}
    for word in words:
        calls, neighbour.failures = neighbour.calls, []
        seen = await outcome(engine, "hostile", word, str(secret))
        if seen["code"] == "AGENT_OVER_LIMIT":
            seen["next"] = (await outcome(engine, "hostile", "good", str(secret)))["code"]
        while neighbour.calls == calls:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.01)
        await engine.forget("hostile")
        seen["left"] = len(set(await _settled(healthy)) - healthy)
        seen["neighbour"] = neighbour.failures
        found[word] = seen
    running.cancel()
    await engine.close()
    return {
        "words": found,
        "left": len(tree_use(os.getpid()).pids),
        "isolation": engine.machine.isolation,
        "files_left": sorted(os.listdir(tempfile.gettempdir())),
        "written": (folder / "written").exists(),
    }


async def _settled(healthy: set[int]) -> tuple[int, ...]:
    """Who runs, once nobody more is ending; after five seconds whoever is left."""
    deadline = time.monotonic() + 5
    while True:
        pids = tree_use(os.getpid()).pids
        if set(pids) <= healthy or time.monotonic() > deadline:
            return pids
        await asyncio.sleep(0.01)


def main() -> None:
    kind, folder, words = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    try:
        become(kind, folder)
    except OSError as error:
        sys.stderr.write(f"this machine cannot pretend to be of that kind: {error}")
        sys.exit(CANNOT)
    json.dump(asyncio.run(run(kind, folder, words)), sys.stdout)


if __name__ == "__main__":
    main()
