"""Calls of foreign agents as the runner makes them, and processes that speak for them."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agents.contract import Contract
from agents.invocation import AgentContext, Caller, Invocation
from tests.fakes.agents import NUMBER, agent_spec
from tests.integration.server import ROOT


def invocation(
    settings: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    *,
    engine: str,
    seconds: float = 20,
    **fields: Any,
) -> Invocation:
    """One call of an agent `atlas` that is asked for the population of a city."""
    spec = agent_spec(
        "atlas",
        inputs=fields.pop(
            "properties", {"city": {"type": "string"}, "seconds": NUMBER, "marks": {"type": "string"}}
        ),
        outputs={"population": NUMBER},
        required=["city"],
        engine=engine,
        settings={"confidence": 0.7, **settings},
        **fields,
    )
    context = AgentContext(
        task_id="t-1",
        step=2,
        attempt=1,
        idempotency_key="t-1/2",
        now=datetime(2026, 10, 8, tzinfo=UTC),
        caller=Caller(name="ann"),
    )
    return Invocation(
        spec=spec, inputs=inputs or {"city": "Suzhou"}, context=context, time_limit=timedelta(seconds=seconds)
    )


def violations(call: Invocation, output: Any) -> list[str]:
    """What the contract has against an output."""
    contract = Contract.compile(call.spec)
    return contract.output_violations(contract.sanitise(output).output)


async def nothing_left() -> None:
    """Every task but the test's own ends by itself, in a moment."""
    if left := asyncio.all_tasks() - {asyncio.current_task()}:
        _, pending = await asyncio.wait(left, timeout=1)
        assert not pending, pending


@contextmanager
def process(module: str, *arguments: str, port_file: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A Python module as a process; waits until it has written its port file."""
    command = [sys.executable, "-m", module, *arguments]
    started = subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}", "PATH": ""})
    try:
        ends = time.monotonic() + 30
        while port_file is not None and not (port_file.exists() and port_file.read_text()):
            assert started.poll() is None, f"{module} ended with {started.returncode}"
            assert time.monotonic() < ends, f"{module} did not start"
            time.sleep(0.02)
        yield started
    finally:
        started.kill()
        started.wait(10)
