"""Tasks per second and latency of a five-agent graph through the embedded bus, beside LangGraph on the same graph.

Runs the same requests, all different, in turns of several rounds:

bare            the runner on the embedded bus in this process, contracts checked, no text normalisation
full            a server process: gRPC, normalisation, contracts, anchoring by embeddings, rewards, reports
full-quoted     the same server; no agent is given other words than the request's, so nothing is embedded
langgraph-sync  LangGraph with its SQLite checkpointer, each checkpoint written before the next step
langgraph-async LangGraph's default: checkpoints written while the next step runs

Each acceptance and each answer of Podium is fsynced; its other events survive kill -9.
"""

import argparse
import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, permutations, product
from pathlib import Path
from typing import Any

import psutil

from agents.engines.python import PythonEngine
from agents.invocation import Resources
from agents.pack import load_pack
from agents.registry import AgentRegistry
from bench import peer_langgraph
from bench.measuring import Contender, Round, Run, machine, synced_writes_s
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
WARM_UP = 8
_PERIODS = ("last quarter's", "last month's", "last year's", "this quarter's", "this month's")
_MEASURES = ("sales", "orders", "returns", "net sales", "average order value", "return rate")
_REGIONS = ("East", "South", "North", "Central", "Southwest", "Northwest", "Northeast")
_CLOSED = re.compile(r"events\.sqlite closed after (\d+) commits, (\d+) of them synced")


def main() -> None:
    """Measure, print a table on stderr and, with --json, one object on stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.runtime",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few tasks, under 60 s")
    parser.add_argument("--tasks", type=int, default=600, help="tasks of each contender (default 600)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds they are run in (default 5)")
    parser.add_argument("--concurrency", type=int, default=16, help="tasks at once (default 16)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    arguments = parser.parse_args()
    tasks = 160 if arguments.quick else arguments.tasks
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        disk: list[float] = []
        runs = asyncio.run(_runs(Path(folder), tasks, arguments.rounds, arguments.concurrency, disk))
    disk_ms = statistics.median(disk) * 1000
    report = {
        "machine": machine(),
        "fsync_ms": round(disk_ms, 2),
        "runs": [run.to_json() for run in runs],
        "ratios": _ratios(runs),
        "limits": _limits(runs, disk_ms),
    }
    _table(report)
    if arguments.json:
        print(json.dumps(report))


async def _runs(folder: Path, tasks: int, rounds: int, concurrency: int, disk: list[float]) -> list[Run]:
    runs = []
    for at_once in (1, concurrency):
        here = folder / str(at_once)
        here.mkdir()
        runs += await _measured(here, max(8, tasks // rounds // (4 if at_once == 1 else 1)), rounds, at_once, disk)
    return runs


async def _measured(folder: Path, tasks: int, rounds: int, at_once: int, disk: list[float]) -> list[Run]:
    """Every contender in turn, round after round: a moment in which the machine is busy meets all of them.

    Appends to `disk` how long synced writes take, in seconds, measured between the rounds.
    """
    measured: dict[str, list[Round]] = {}
    async with AsyncExitStack() as open_ones:
        full, quoted = await open_ones.enter_async_context(_server(folder, at_once))
        contenders = [
            await open_ones.enter_async_context(_bare(folder, at_once)),
            full,
            quoted,
            await open_ones.enter_async_context(peer_langgraph.contender(folder, durability="sync")),
            await open_ones.enter_async_context(peer_langgraph.contender(folder, durability="async")),
        ]
        texts = {contender.name: _texts(contender) for contender in contenders}
        for contender in contenders:
            for _ in range(WARM_UP):
                await contender.one(next(texts[contender.name]))
        for number in range(rounds):
            for contender in contenders:
                _say(f"{at_once} at once, round {number + 1} of {rounds}: {contender.name}")
                one = await _round(contender, texts[contender.name], tasks, at_once)
                measured.setdefault(contender.name, []).append(one)
                disk += synced_writes_s(folder)
    runs = []
    for contender in contenders:
        # The server's commits are told when it ends, for both ways of using it together.
        ran = (WARM_UP + rounds * tasks) * (2 if contender in (full, quoted) else 1)
        commits, synced = contender.commits()
        runs.append(
            Run(
                name=contender.name,
                concurrency=at_once,
                rounds=measured[contender.name],
                commits_per_task=commits / ran,
                synced_commits_per_task=synced / ran,
            )
        )
    return runs


async def _round(contender: Contender, texts: Iterator[str], tasks: int, at_once: int) -> Round:
    latencies: list[float] = []
    gate = asyncio.Semaphore(at_once)

    async def timed_one(text: str) -> None:
        async with gate:
            started = time.perf_counter()
            await contender.one(text)
            latencies.append(time.perf_counter() - started)

    cpu_s, started = contender.cpu_s(), time.perf_counter()
    await asyncio.gather(*(timed_one(next(texts)) for _ in range(tasks)))
    wall_s = time.perf_counter() - started
    return Round(wall_s=wall_s, cpu_s=contender.cpu_s() - cpu_s, latencies_s=latencies)


def _texts(contender: Contender) -> Iterator[str]:
    """Requests that differ from each other (1,260 of them), so that nothing remembered of one helps another."""
    verb = "Find" if contender.name == "full-quoted" else "Compare"
    for measure, (one, other), period in cycle(product(_MEASURES, permutations(_REGIONS, 2), _PERIODS)):
        yield f"{verb} {period} {measure} of the {one} China and {other} China regions"


@asynccontextmanager
async def _bare(folder: Path, at_once: int) -> AsyncIterator[Contender]:
    pack = load_pack(RELAY)
    registry = AgentRegistry()
    for spec in pack.specs:
        registry.register(spec, pack=pack.name)
    bus = await EmbeddedBus.open(folder / "bare.sqlite", clock=_now, alone=True)
    engine = PythonEngine(Resources(), threads=1)
    wiring = Wiring(
        bus=bus,
        registry=registry,
        engines={"python": engine},
        planner=RulesPlanner(pack.rules),
        clock=_now,
    )
    worker = Worker(bus, TaskRunner(wiring), worker_id="bench", max_tasks=at_once)
    running = asyncio.create_task(worker.run())
    desk = TaskDesk(bus, registry, _now)

    async def one(text: str) -> None:
        payload = event_pb2.TaskAccepted(request_id=str(uuid.uuid4()), text=text, caller="bench")
        payload.expire_time.FromDatetime(_now() + timedelta(minutes=5))
        accepted = await desk.accept(str(uuid.uuid4()), payload, trace_id=uuid.uuid4().hex)
        async for event in bus.watch(accepted.task_id):
            if event.WhichOneof("payload") == "task_succeeded":
                return
            if event.WhichOneof("payload") in ("task_failed", "task_expired", "review_requested"):
                raise AssertionError(event)

    try:
        yield Contender(
            name="bare",
            one=one,
            cpu_s=time.process_time,
            commits=lambda: (bus.commits.all, bus.commits.synced),
        )
    finally:
        worker.stop()
        await running
        engine.close()
        await bus.close()


@asynccontextmanager
async def _server(folder: Path, at_once: int) -> AsyncIterator[tuple[Contender, Contender]]:
    """A server process, used in two ways: with texts that are embedded, and with texts that are quoted."""
    data = folder / "server"
    data.mkdir()
    (data / "podium.toml").write_text(f'packs = "{RELAY.parent}"\ntasks_per_worker = {at_once}\n')
    command = ["-m", "podium.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data), "--insecure-loopback"]
    with (data / "server.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    try:
        assert server.stdout is not None  # noqa: S101 - asked for above
        first = (await server.stdout.readline()).decode()
        process = psutil.Process(server.pid)
        async with AsyncClient(Address.of(first.removeprefix("listening on ").strip())) as client:

            async def one(text: str) -> None:
                task = await client.submit(text)
                async for response in client.watch(task.task_id):
                    if response.status == status_pb2.TASK_STATUS_SUCCEEDED:
                        return
                    if response.status in ENDED or response.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
                        raise AssertionError(response)

            full = Contender(
                name="full",
                one=one,
                cpu_s=lambda: sum(process.cpu_times()[:2]),
                commits=lambda: _commits_in(data / "server.log"),
            )
            yield full, replace(full, name="full-quoted")
    finally:
        server.terminate()
        await server.wait()


def _commits_in(log: Path) -> tuple[int, int]:
    """What the server said at its end."""
    found = _CLOSED.search(log.read_text(encoding="utf-8"))
    if found is None:
        raise AssertionError(f"the server did not say how often it committed: {log.read_text()[-2000:]}")
    return int(found[1]), int(found[2])


def _ratios(runs: list[Run]) -> dict[str, float]:
    """Podium's throughput over LangGraph's, for the same number of tasks at once."""
    ratios: dict[str, float] = {}
    for peer in (run for run in runs if run.name.startswith("langgraph")):
        for ours in (run for run in runs if run.concurrency == peer.concurrency):
            if not ours.name.startswith("langgraph"):
                key = f"{ours.name}/{peer.name}@{peer.concurrency}"
                ratios[key] = round(ours.tasks_per_s / peer.tasks_per_s, 2)
    return ratios


def _limits(runs: list[Run], disk_ms: float) -> list[str]:
    """What bounds the figures, in words."""
    # Not multiplied into a wait: a write into a log file that has its size already is faster than this one.
    said = [f"a synced write to a new file takes {disk_ms:.1f} ms (median); tasks at once share synced commits"]
    for run in runs:
        share = run.cpu_ms_per_task / 1000 * run.tasks_per_s
        said.append(
            f"{run.name}, {run.concurrency} at once: {run.cpu_ms_per_task:.1f} ms of processor time a task, "
            f"{share:.0%} of one core at the throughput measured, and {run.synced_commits_per_task:.1f} synced "
            "commits"
        )
    by_name = {(run.name, run.concurrency): run.cpu_ms_per_task for run in runs}
    for name, at_once in by_name:
        if name == "full":
            anchoring = by_name["full", at_once] - by_name["full-quoted", at_once]
            said.append(
                f"anchoring, {at_once} at once: {anchoring:.1f} ms of processor time a task, for 2 embeddings"
            )
    return said


def _table(report: dict[str, Any]) -> None:
    columns = ("name", "concurrency", "tasks_per_s", "p50_ms", "p99_ms", "cpu_ms", "commits", "synced")
    _say("  ".join(f"{name:>{max(15, len(name))}}" for name in columns))
    for run in report["runs"]:
        _say("  ".join(f"{run[name]!s:>{max(15, len(name))}}" for name in columns))
    for name, ratio in report["ratios"].items():
        _say(f"{name}: {ratio} × the tasks per second")
    for line in report["limits"]:
        _say(line)
    _say(f"machine: {report['machine']}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
