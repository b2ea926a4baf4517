"""What tests of agent hosts stand on: a manifest, hosts as processes, calls."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agents.contract import SOURCES_SCHEMA
from agents.engines.grpc import GrpcEngine
from agents.invocation import AgentContext, Caller, Invocation
from agents.spec import AgentSpec
from tests.integration.server import ROOT

BEHAVING = Path(__file__).with_name("behaving.py")


def manifest(*endpoints: str, **changes: Any) -> dict[str, Any]:
    """Of the agent in `behaving.py`."""
    return {
        "name": "behave",
        "version": "1.0.0",
        "description": "Does what its input says, for tests of agent hosts.",
        "capability_tags": ["behaving"],
        "engine": "grpc",
        "settings": {"endpoints": list(endpoints or ("127.0.0.1:1",)), "insecure_loopback": True},
        "limits": {"max_output_bytes": 300_000},
        "input_schema": {
            "type": "object",
            "properties": {"do": {"type": "string", "maxLength": 1000}},
            "required": ["do"],
            "additionalProperties": False,
        },
        "output_schema": {
            "type": "object",
            "properties": {
                "said": {"type": "string"},
                "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
                "sources": dict(SOURCES_SCHEMA),
            },
            "required": ["said", "confidence_score", "sources"],
            "additionalProperties": False,
        },
        **changes,
    }


def spec(*endpoints: str, **changes: Any) -> AgentSpec:
    return AgentSpec.model_validate(manifest(*endpoints, **changes))


def call(
    agent: AgentSpec, do: str = "answer", *, limit_s: float = 10, attempt: int = 1, key: str = "t/v1s1"
) -> Invocation:
    context = AgentContext(
        task_id=key.partition("/")[0],
        step=0,
        attempt=attempt,
        idempotency_key=key,
        now=datetime.now(UTC),
        caller=Caller(name="ann"),
    )
    return Invocation(spec=agent, inputs={"do": do}, context=context, time_limit=timedelta(seconds=limit_s))


async def ask(engine: GrpcEngine, invocation: Invocation) -> str:
    """What the agent said."""
    said = json.loads(await engine.invoke(invocation))["said"]
    assert isinstance(said, str)
    return said


def in_clear() -> GrpcEngine:
    return GrpcEngine(lambda: None)


async def eventually(condition: Callable[[], Any], within_s: float = 20) -> None:
    ends = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends, "it did not come about"
        await asyncio.sleep(0.02)


@dataclass
class HostProcess:
    """`podium host run` as a process."""

    process: "subprocess.Popen[str]"
    address: str
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@contextmanager
def hosting(folder: Path, *options: str, listen: str = "127.0.0.1:0", **changes: Any) -> Iterator[HostProcess]:
    """A host of the agent; in clear unless options say otherwise."""
    folder.mkdir(exist_ok=True)
    file = folder / "behave.yaml"
    file.write_text(yaml.safe_dump(manifest(**changes), sort_keys=False))
    arguments = ["--manifest", str(file), "--listen", listen, *(options or ("--insecure-loopback",))]
    log = folder / "host.log"
    with log.open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "podium.cli", "host", "run", f"{BEHAVING}:behave", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield HostProcess(process, json.loads(line)["address"], log)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)
