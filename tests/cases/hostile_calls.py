"""Call hostile agents in one kind of machine, beside a healthy neighbour, and print what became of each call.

Run as a process of its own: `python -m tests.cases.hostile_calls KIND`. As root it can pretend to be the other
kinds of machine; what it changes for that is its own mount namespace and its own user.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents.contract import SOURCES_SCHEMA, Contract
from agents.engines.process import ProcessEngine
from agents.invocation import AgentContext, Caller, Invocation
from agents.sandbox import kernel
from agents.sandbox.process_tree import tree_use
from agents.spec import AgentSpec
from podium.errors import PodiumError
from tests.cases.hostile_process.misbehaving import WORDS

FOLDER = Path(__file__).parent / "hostile_process"
KINDS = {
    "root": (0, True),
    "root_without_namespaces": (0, False),
    "user": (12_345, True),
    "user_without_namespaces": (12_345, False),
}
"""User id, and whether namespaces are used."""
CANNOT = 77
"""Exit status where this machine cannot pretend to be of the kind asked for."""

_INPUT = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "server": {"type": "integer"}, "secret_file": {"type": "string"}},
    "required": ["word", "server", "secret_file"],
    "additionalProperties": False,
}
_OUTPUT = {
    "type": "object",
    "properties": {
        "said": {"type": "string"},
        "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
        "sources": SOURCES_SCHEMA,
    },
    "required": ["said", "confidence_score", "sources"],
    "additionalProperties": False,
}


def hostile_spec(name: str = "hostile", **changes: Any) -> AgentSpec:
    """A sandboxed agent that does what `word` says; tight limits."""
    values: dict[str, Any] = {
        "name": name,
        "version": "1.0.0",
        "description": "Does whatever its input says, which is seldom good.",
        "input_schema": _INPUT,
        "output_schema": _OUTPUT,
        "capability_tags": ["hostile"],
        "limits": {
            "memory_bytes": 200_000_000,
            "cpu_seconds": 1.0,
            "max_processes": 8,
            "max_output_bytes": 100_000,
        },
        "engine": "process",
        "settings": {
            "callable": "misbehaving:misbehave",
            "path": str(FOLDER),
            "scratch_bytes": 8_000_000,
        },
    }
    return AgentSpec.model_validate(values | changes)


def invocation(spec: AgentSpec, word: str, *, secret_file: str = "/nowhere", limit_s: float = 5.0) -> Invocation:
    """One call."""
    context = AgentContext(
        task_id="t",
        step=0,
        attempt=1,
        idempotency_key="t/0",
        now=datetime.now(UTC),
        caller=Caller(name="somebody"),
    )
    inputs = {"word": word, "server": os.getpid(), "secret_file": secret_file}
    return Invocation(spec=spec, inputs=inputs, context=context, time_limit=timedelta(seconds=limit_s))


@dataclass
class Neighbour:
    """A healthy agent that is called all along."""

    engine: ProcessEngine
    latencies_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def run(self) -> None:
        spec = hostile_spec("healthy")
        while True:
            begun = time.perf_counter()
            try:
                await self.engine.invoke(invocation(spec, "good"))
            except PodiumError as error:
                self.failures.append(f"{error.code}: {error.message}")
            self.latencies_s.append(time.perf_counter() - begun)
            await asyncio.sleep(0.01)


async def outcome(engine: ProcessEngine, word: str, secret_file: str) -> dict[str, Any]:
    """Call once and check as the runner would."""
    spec = hostile_spec()
    limit_s = 0.5 if word in ("sleep", "deaf", "close_everything") else 8.0
    contract = Contract.compile(spec)
    begun = time.perf_counter()
    try:
        raw = await engine.invoke(invocation(spec, word, secret_file=secret_file, limit_s=limit_s))
        output = contract.sanitise(raw).output
        if violations := contract.output_violations(output):
            return {"code": "OUTPUT_CONTRACT_BROKEN", "agent": spec.name, "message": violations[0]}
    except PodiumError as error:
        return {
            "code": error.code,
            "agent": error.agent or spec.name,
            "message": error.message,
            "seconds": time.perf_counter() - begun,
        }
    return {"code": "ok", "agent": spec.name, "message": output["said"]}


async def run(kind: str, folder: Path) -> dict[str, Any]:
    """Every word in turn; what became of it, and of the neighbour meanwhile."""
    # Whoever escapes a warden becomes a child of this process, where it is seen.
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    secret = folder / "secret"
    secret.write_text("a secret")
    secret.chmod(0o600)
    engine = ProcessEngine(namespaces=KINDS[kind][1], weak_isolation=True)
    neighbour = Neighbour(engine)
    await engine.invoke(invocation(hostile_spec("healthy"), "good"))
    healthy = set(tree_use(os.getpid()).pids)
    running = asyncio.create_task(neighbour.run())
    found: dict[str, Any] = {}
    for word in WORDS:
        neighbour.latencies_s, neighbour.failures = [], []
        seen = await outcome(engine, word, str(secret))
        while not neighbour.latencies_s:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.01)
        # A process that did nothing worse than a bad answer waits for the next call; here each word gets its own.
        await engine.forget("hostile")
        seen["left"] = len(set(await _settled(healthy)) - healthy)
        seen["neighbour"] = {"failures": neighbour.failures, "worst_s": max(neighbour.latencies_s)}
        found[word] = seen
    running.cancel()
    await engine.close()
    return {
        "words": found,
        "left": len(tree_use(os.getpid()).pids),
        "isolation": engine.isolation,
        "files_left": sorted(os.listdir(tempfile.gettempdir())),
        "written": (folder / "written").exists(),
    }


async def _settled(healthy: set[int]) -> tuple[int, ...]:
    """Who runs, once nobody more is ending; after two seconds whoever is left."""
    deadline = time.monotonic() + 2
    while True:
        pids = tree_use(os.getpid()).pids
        if set(pids) <= healthy or time.monotonic() > deadline:
            return pids
        await asyncio.sleep(0.01)


def become(kind: str, folder: Path) -> None:
    """Turn this process into one on such a machine; only root can be another."""
    user = KINDS[kind][0]
    if os.geteuid() == 0:
        # Everybody may read the interpreter, as where it is installed for everybody.
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        prefix = os.path.realpath(sys.base_prefix)
        if prefix.startswith("/root/"):
            kernel.mount(prefix, "/mnt", "", kernel.MS_BIND)
            kernel.mount("tmpfs", "/root", "tmpfs", 0, "mode=755")
            os.makedirs(prefix)
            kernel.mount("/mnt", prefix, "", kernel.MS_BIND)
        if user:
            os.chown(folder, user, user)
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    try:
        become(kind, folder)
    except OSError as error:
        sys.stderr.write(f"this machine cannot pretend to be of that kind: {error}")
        sys.exit(CANNOT)
    json.dump(asyncio.run(run(kind, folder)), sys.stdout)


if __name__ == "__main__":
    main()
