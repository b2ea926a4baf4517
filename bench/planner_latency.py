"""The trained planner: how long a plan takes, and how much memory planning needs.

    python -m bench.planner_latency [--model FILE] [--requests N] [--quick] [--json]

Plans public requests (`PODIUM_PLANNING_DATA`) on one core: UltraTool's over 20 and over 260 tools, NesTools' with
arguments over 16 to 20 tools with schemas. Tools are known before, as they are in a server; the first requests
are not counted. The peer in the same run is a router without a plan: MiniLM's vector of the request against those
of the tools. Wall time counts whatever else the machine does, processor time does not; both are given. Memory is
the most that a fresh process had resident, with 260 tools and every part loaded.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from conductor.policy.batch import BatchPlanner, BatchRow
from conductor.policy.cards import ToolCard
from conductor.policy.drafting import Drafter
from conductor.policy.model import PlannerModel
from conductor.policy.tokens import Tokens
from conductor.training.datasets import data_folder, read_nestools, read_ultratool
from conductor.training.examples import Example
from conductor.training.local import local_planner
from tools.embeddings.minilm import MiniLmEmbedder

_WARM = 5
_QUICK = 12
_CHINESE = "先查一下明天从北京到上海的航班，然后预订一家酒店，最后给我设一个早上七点的闹钟"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One kind of request."""

    what: str
    requests: int
    tools: int
    """Of the largest request."""
    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float
    """Processor time of the thread."""
    peer_p50_ms: float
    """Of the router without a plan."""

    @property
    def ratio(self) -> float:
        """How many times the peer's time a plan takes."""
        return self.p50_ms / self.peer_p50_ms if self.peer_p50_ms else 0.0


def measured(plan: Callable[[int], object], count: int) -> tuple[list[float], list[float]]:
    """Wall and processor milliseconds of `plan(0)`, `plan(1)`, ..., the first few not counted."""
    wall, cpu = [], []
    for number in range(-min(_WARM, count), count):
        began, began_cpu = time.perf_counter(), time.thread_time()
        plan(max(number, 0))
        if number >= 0:
            wall.append((time.perf_counter() - began) * 1e3)
            cpu.append((time.thread_time() - began_cpu) * 1e3)
    return wall, cpu


def latency(what: str, model: PlannerModel, examples: Sequence[Example]) -> Latency:
    """How long plans for `examples` take, each over its own tools."""
    planner = BatchPlanner(lambda: Drafter(model, Tokens()))
    rows = [BatchRow(id=item.id, request=item.request, tools=item.tools) for item in examples]
    for row in rows:
        planner.plan(row)  # the tools are known from here on, arguments included
    wall, cpu = measured(lambda number: planner.plan(rows[number]), len(rows))
    peer = _peer(examples)
    return Latency(
        what=what,
        requests=len(rows),
        tools=max(len(item.tools) for item in examples),
        p50_ms=statistics.median(wall),
        p95_ms=float(np.quantile(wall, 0.95)),
        cpu_p50_ms=statistics.median(cpu),
        peer_p50_ms=peer,
    )


def _peer(examples: Sequence[Example]) -> float:
    embedder = MiniLmEmbedder()
    known: dict[int, np.ndarray] = {}
    for item in examples:
        if id(item.tools) not in known:
            known[id(item.tools)] = embedder.embed([_words(card) for card in item.tools])

    def route(number: int) -> object:
        item = examples[number]
        return np.argsort(-(known[id(item.tools)] @ embedder.embed([item.request])[0]))[:3]

    return statistics.median(measured(route, len(examples))[0])


def _words(card: ToolCard) -> str:
    return f"{card.name}: {card.description}"[:500]


def narrowed(examples: Sequence[Example], tools: int) -> tuple[Example, ...]:
    """The examples over the tools they need and the first others, `tools` in all."""
    found = []
    for item in examples:
        own = [card for card in item.tools if card.name in item.tool_set]
        rest = [card for card in item.tools if card.name not in item.tool_set]
        cards = tuple([*own, *rest[: tools - len(own)]])
        found.append(Example(source=item.source, id=item.id, request=item.request, tools=cards, steps=item.steps))
    return tuple(found)


def rows(found: Sequence[Latency], memory: Mapping[str, float]) -> list[dict[str, str]]:
    """The figures with the marks beside them, for the page of results."""
    wanted = ("p50 <= 15 ms", "p50 <= 25 ms", "p50 <= 40 ms")
    marks = dict(zip((item.what for item in found), wanted, strict=False))
    told = [
        {
            "what": f"{item.what}, one core",
            "value": f"p50 {item.p50_ms:.1f} ms, p95 {item.p95_ms:.1f} ms (processor {item.cpu_p50_ms:.1f} ms); "
            f"{item.ratio:.1f} times MiniLM's {item.peer_p50_ms:.1f} ms",
            "mark": marks[item.what],
        }
        for item in found
    ]
    most = f"{memory['english_mib']:g} MiB, with a Chinese request {memory['with_chinese_mib']:g} MiB"
    return [*told, {"what": "Most resident memory of a fresh process", "value": most, "mark": "<= 300 MB"}]


def peak_memory(model: Path | None, data: Path) -> dict[str, float]:
    """MiB that a fresh process had resident at most: without Chinese requests, and with."""
    command = [sys.executable, "-m", "bench.planner_latency", "--memory", "--data", str(data)]
    command += ["--model", str(model)] if model else []
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    report: dict[str, float] = json.loads(found.stdout)
    return report


def _print_memory(model: PlannerModel, data: Path) -> None:
    """Plan as a server does and say what it took; what only the benchmark needs is not imported by then."""
    examples = read_ultratool(data)[:20]
    before = _peak_mib()
    model.load()
    planner = BatchPlanner(lambda: Drafter(model, Tokens()), tools=examples[0].tools)
    for item in examples:
        planner.plan(BatchRow(id=item.id, request=item.request))
    with_arguments = any(part.startswith("fill") for part in model.parts)
    for item in read_nestools(data)[: 5 if with_arguments else 0]:
        planner.plan(BatchRow(id=item.id, request=item.request, tools=item.tools))
    english = _peak_mib()
    planner.plan(BatchRow(id="zh", request=_CHINESE))
    report = {"before_mib": before, "english_mib": english, "with_chinese_mib": _peak_mib()}
    sys.stdout.write(json.dumps(report) + "\n")


def _peak_mib() -> float:
    # Not ru_maxrss: that survives exec, so a child of a large program would seem as large.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner_latency", description=__doc__)
    parser.add_argument("--model", type=Path, help="an exported file; the shipped planner without")
    parser.add_argument("--data", type=Path, help="folder of the public data; else PODIUM_PLANNING_DATA")
    parser.add_argument("--requests", type=int, default=60, help="requests of each kind")
    parser.add_argument("--quick", action="store_true", help="only a few requests")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    model = local_planner(given.model) if given.model else PlannerModel.committed()
    data = given.data or data_folder()
    if given.memory:
        _print_memory(model, data)
        return 0
    count = _QUICK if given.quick else given.requests
    ultratool = read_ultratool(data)[:count]
    found = [
        latency("UltraTool, 20 tools", model, narrowed(ultratool, 20)),
        latency("UltraTool, 260 tools", model, ultratool),
    ]
    if any(part.startswith("fill") for part in model.parts):
        found.append(latency("NesTools with arguments", model, read_nestools(data)[:count]))
    memory = peak_memory(given.model, data)
    if given.json:
        figures = [asdict(item) | {"ratio": round(item.ratio, 2)} for item in found]
        report = {"model": model.version, "latency": figures, "memory": memory, "rows": rows(found, memory)}
        sys.stdout.write(json.dumps(report) + "\n")
        return 0
    for item in found:
        sys.stdout.write(
            f"{item.what}: p50 {item.p50_ms:.1f} ms, p95 {item.p95_ms:.1f} ms, processor {item.cpu_p50_ms:.1f} ms;"
            f" {item.ratio:.1f} times MiniLM's {item.peer_p50_ms:.1f} ms\n"
        )
    sys.stdout.write(f"memory: {memory['english_mib']:g} MiB, {memory['with_chinese_mib']:g} MiB with Chinese\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
