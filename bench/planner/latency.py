"""How long planning takes and what memory it needs, beside what was asked for."""

import sys
from collections.abc import Iterable
from typing import Any

from bench.planner.running import Bench, last_object, run
from bench.planner.suites import Suite, write
from conductor.training.datasets import DATA_VARIABLE, read_bfcl, read_nestools

REQUESTS = 500
MOST_SECONDS = 290
_MOST_MS = {"UltraTool, 20 tools": 15, "UltraTool, 260 tools": 25, "NesTools with arguments": 40}


def latency(bench: Bench) -> list[dict[str, Any]]:
    """Rows {what, value, mark}: a batch of 500 whole plans on two cores, and single requests on one."""
    return [_batch(bench), *_single(bench)]


def _batch(bench: Bench) -> dict[str, Any]:
    """Requests with their own tools and schemas, of any part: they are timed here, not scored."""
    examples = (*read_nestools(bench.data), *(one for one in read_bfcl(bench.data) if len(one.tools) > 1))[
        :REQUESTS
    ]
    suite = Suite(name="timed-500", title="500 requests with arguments", mode="micro", examples=examples)
    files = write(suite, bench.work / "suites")
    done = bench.planned_in(suite, files, threads=2)
    return {
        "what": f"{len(examples)} whole plans with arguments, tools read too, 2 cores",
        "value": f"{done['seconds']:.0f} s",
        "mark": f"{MOST_SECONDS} s",
    }


def _single(bench: Bench) -> Iterable[dict[str, Any]]:
    """Of `python -m bench.planner_latency`: one request at a time on one core, the tools known before."""
    command = [sys.executable, "-m", "bench.planner_latency", "--json"]
    if bench.model is not None:
        command += ["--model", str(bench.model)]
    found = bench.remembered(
        "latency",
        bench.model_key,
        lambda: last_object(run(command, {DATA_VARIABLE: str(bench.data)})),
    )
    for row in found["latency"]:
        value = f"p50 {row['p50_ms']:.1f} ms, p95 {row['p95_ms']:.1f} ms, processor {row['cpu_p50_ms']:.1f} ms"
        peer = f"MiniLM router {row['peer_p50_ms']:.1f} ms, {row['ratio']:g} times that"
        mark = _MOST_MS.get(row["what"])
        yield {
            "what": f"{row['what']}, {row['requests']} requests, one core",
            "value": f"{value}; {peer}",
            "mark": "" if mark is None else f"p50 {mark} ms",
        }
    memory = found["memory"]
    yield {
        "what": "most memory of a planning process, 260 tools",
        "value": f"{memory['english_mib']:g} MiB, {memory['with_chinese_mib']:g} MiB after a Chinese request",
        "mark": "300 MB",
    }
