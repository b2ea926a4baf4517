"""Tasks per second and latency of a five-agent graph through the embedded bus, beside LangGraph on the same graph.

Runs, in one process tree and one go:

bare            the runner on the embedded bus in this process, no-op contracts, no text normalisation
full            a server process: gRPC, normalisation, contracts, anchoring by embeddings, rewards, reports
langgraph-sync  LangGraph with its SQLite checkpointer, each checkpoint written before the next step
langgraph-async LangGraph's default: checkpoints written while the next step runs

Each acceptance and each answer of Podium is fsynced; its other events survive kill -9.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents.engines.python import PythonEngine
from agents.invocation import Resources
from agents.pack import load_pack
from agents.registry import AgentRegistry
from bench import peer_langgraph
from bench.measuring import Run, machine
from cloud.bus.embedded import EmbeddedBus
from conductor.desk import TaskDesk
from conductor.rules_planner import RulesPlanner
from conductor.runner import TaskRunner
from conductor.wiring import Wiring
from conductor.worker import Worker
from podium.client import AsyncClient
from podium.link import Address
from podium.status import ENDED
from podium.v1 import event_pb2, status_pb2

RELAY = Path(__file__).parent / "packs" / "relay"
TEXT = "Compare last quarter's sales of the East China and South China regions"
WARM_UP = 5


def main() -> None:
    """Measure, print a table on stderr and, with --json, one object on stdout."""
    parser = argparse.ArgumentParser(prog="python -m bench.runtime", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few tasks, under 60 s")
    parser.add_argument("--tasks", type=int, default=600, help="tasks of each run (default 600)")
    parser.add_argument("--concurrency", type=int, default=16, help="tasks at once (default 16)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    arguments = parser.parse_args()
    tasks = 120 if arguments.quick else arguments.tasks
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        runs = asyncio.run(_runs(Path(folder), tasks, arguments.concurrency))
    report = {"machine": machine(), "runs": [run.to_json() for run in runs], "ratios": _ratios(runs)}
    _table(report)
    if arguments.json:
        print(json.dumps(report))


async def _runs(folder: Path, tasks: int, concurrency: int) -> list[Run]:
    runs = []
    for at_once in (1, concurrency):
        count = max(20, tasks // 4) if at_once == 1 else tasks
        runs.append(await _bare(folder, count, at_once))
        runs.append(await _full(folder, count, at_once))
        for durability in ("sync", "async"):
            _say(f"langgraph-{durability}, {at_once} at once")
            runs.append(
                await peer_langgraph.run(
                    folder, tasks=count, concurrency=at_once, text=TEXT, durability=durability
                )
            )
    return runs


async def _bare(folder: Path, tasks: int, concurrency: int) -> Run:
    _say(f"bare, {concurrency} at once")
    pack = load_pack(RELAY)
    registry = AgentRegistry()
    for spec in pack.specs:
        registry.register(spec, pack=pack.name)
    bus = await EmbeddedBus.open(folder / f"bare-{concurrency}.sqlite", clock=_now, alone=True)
    engine = PythonEngine(Resources(), threads=1)
    wiring = Wiring(
        bus=bus,
        registry=registry,
        engines={"python": engine},
        planner=RulesPlanner(pack.rules),
        clock=_now,
    )
    worker = Worker(bus, TaskRunner(wiring), worker_id="bench", max_tasks=concurrency)
    running = asyncio.create_task(worker.run())
    desk = TaskDesk(bus, registry, _now)

    async def one() -> None:
        payload = event_pb2.TaskAccepted(request_id=str(uuid.uuid4()), text=TEXT, caller="bench")
        payload.expire_time.FromDatetime(_now() + timedelta(minutes=5))
        accepted = await desk.accept(str(uuid.uuid4()), payload, trace_id=uuid.uuid4().hex)
        async for event in bus.watch(accepted.task_id):
            if event.WhichOneof("payload") == "task_succeeded":
                return
            if event.WhichOneof("payload") in ("task_failed", "task_expired", "review_requested"):
                raise AssertionError(event)

    def commits() -> tuple[int, int]:
        counts = bus.commits
        return counts.synced + counts.written, counts.synced

    try:
        return await _timed("bare", one, tasks, concurrency, commits)
    finally:
        worker.stop()
        await running
        engine.close()
        await bus.close()


async def _full(folder: Path, tasks: int, concurrency: int) -> Run:
    _say(f"full, {concurrency} at once")
    data = folder / f"full-{concurrency}"
    data.mkdir()
    settings = f'packs = "{RELAY.parent}"\ntasks_per_worker = {concurrency}\n'
    (data / "podium.toml").write_text(settings)
    command = ["-m", "podium.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data), "--insecure-loopback"]
    with (data / "server.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    try:
        assert server.stdout is not None  # noqa: S101 - asked for above
        first = (await server.stdout.readline()).decode()
        async with AsyncClient(Address.of(first.removeprefix("listening on ").strip())) as client:

            async def one() -> None:
                task = await client.submit(TEXT)
                async for response in client.watch(task.task_id):
                    if response.status == status_pb2.TASK_STATUS_SUCCEEDED:
                        return
                    if response.status in ENDED or response.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
                        raise AssertionError(response)

            return await _timed("full", one, tasks, concurrency, lambda: (0, 0))
    finally:
        server.terminate()
        await server.wait()


async def _timed(
    name: str,
    one: Callable[[], Awaitable[None]],
    tasks: int,
    concurrency: int,
    commits: Callable[[], tuple[int, int]],
) -> Run:
    latencies: list[float] = []
    gate = asyncio.Semaphore(concurrency)

    async def timed_one() -> None:
        async with gate:
            started = time.perf_counter()
            await one()
            latencies.append(time.perf_counter() - started)

    for _ in range(WARM_UP):
        await one()
    before = commits()
    started = time.perf_counter()
    await asyncio.gather(*(timed_one() for _ in range(tasks)))
    wall_s = time.perf_counter() - started
    after = commits()
    return Run(
        name=name,
        tasks=tasks,
        concurrency=concurrency,
        wall_s=wall_s,
        latencies_s=latencies,
        commits=after[0] - before[0],
        synced_commits=after[1] - before[1],
    )


def _ratios(runs: list[Run]) -> dict[str, float]:
    """Podium's throughput over LangGraph's, for the same number of tasks at once."""
    ratios: dict[str, float] = {}
    for peer in (run for run in runs if run.name.startswith("langgraph")):
        for ours in (run for run in runs if run.concurrency == peer.concurrency and run.name in ("bare", "full")):
            key = f"{ours.name}/{peer.name}@{peer.concurrency}"
            ratios[key] = round(ours.tasks_per_s / peer.tasks_per_s, 2)
    return ratios


def _table(report: dict[str, Any]) -> None:
    columns = (
        "name",
        "concurrency",
        "tasks_per_s",
        "p50_ms",
        "p99_ms",
        "commits_per_task",
        "synced_commits_per_task",
    )
    _say("  ".join(f"{name:>{max(15, len(name))}}" for name in columns))
    for run in report["runs"]:
        _say("  ".join(f"{run[name]!s:>{max(15, len(name))}}" for name in columns))
    for name, ratio in report["ratios"].items():
        _say(f"{name}: {ratio} × the tasks per second")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
