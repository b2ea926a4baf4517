"""How long planning takes and what memory it needs, beside what was asked for."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from bench.planner.running import Bench, last_object, run
from bench.planner.suites import Suite, write
from conductor.training.datasets import read_bfcl, read_nestools

REQUESTS = 500
MOST_SECONDS = 290


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
    command = [sys.executable, "-m", "bench.planner_latency", "--json", "--data", str(bench.data)]
    if bench.model is not None:
        command += ["--model", str(bench.model)]
    found = last_object(run(command))
    (bench.work / "latency.json").write_text(json.dumps(found), encoding="utf-8")
    return list(found["rows"])
