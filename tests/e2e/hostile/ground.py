"""What hostile agents are let loose on: a server process, fakes behind its engines, a device, a neighbour."""

import json
import os
import queue
import shutil
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import yaml

from agents.contract import SOURCES_SCHEMA
from podium.client import Client
from podium.errors import PodiumError
from podium.link import channel_options
from podium.status import task_status_name
from podium.v1 import edge_pb2, event_pb2, task_pb2
from tests.cases.hostile_process import misbehaving
from tests.cases.pages import all_packs
from tests.e2e.hostile.cells import CELLS, Cell
from tests.fakes.model_server import model_server
from tests.integration.foreign.calls import process
from tests.integration.hosts.ground import hosting
from tests.integration.server import PACKS, ROOT, ServerProcess
from tests.integration.test_server_devices import READING, Device
from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, version
from tests.unit.tools.onnx.graphs import looping
from tests.unit.tools.onnx.tiny_model import division
from tools.artefacts.records import Name

HERE = "tests.e2e.hostile.agents"
WITHIN = timedelta(seconds=90)
_TEXT = {"type": "string", "maxLength": 1000}
_POPULATION = {"type": "integer", "minimum": 0}
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "process": {"word": "", "server": 0, "secret_file": "/nowhere"},
    "openai": {"word": ""},
    "a2a": {"city": "Suzhou"},
    "mcp_http": {"city": "Suzhou"},
    "mcp_stdio": {"city": "Suzhou"},
    "grpc": {"do": ""},
    "onnx": {"word": ""},
    "device": {"word": ""},
}
"""What the agents of a column are given; an empty text stands for the cell's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the fakes are."""

    model: str
    a2a: str
    mcp: str
    host: str


def manifest(cell: Cell, places: Places) -> dict[str, Any]:
    """Of a cell's agent."""
    given = _arguments(cell)
    counting = cell.engine in ("a2a", "mcp_http", "mcp_stdio")
    said: dict[str, Any] = {"population": _POPULATION} if counting else {"said": {"type": "string"}}
    if cell.word == "other_schema":
        said["said"]["maxLength"] = 7
    inputs = {
        name: dict(_TEXT) if isinstance(value, str) else {"type": "integer"} for name, value in given.items()
    }
    settings = {**_settings(cell, places), **cell.settings}
    if cell.fallback:
        settings["fallback"] = f"{cell.name}_good"
    return {
        "name": cell.name,
        "version": "1.0.0",
        "description": f"Of the hostile matrix, {cell.engine}: {cell.hostility}, by way of {cell.word}.",
        "capability_tags": [f"hostile_{cell.name}"],
        "engine": cell.engine.partition("_")[0],
        "settings": settings,
        "sla": {"timeout": cell.timeout_s, "retries": cell.retries},
        "limits": {
            "max_output_bytes": 100_000,
            "memory_bytes": 200_000_000,
            "cpu_seconds": 4.0 if cell.engine == "mcp_stdio" else 1.0,
            "max_processes": 8,
        },
        "input_schema": _object(inputs),
        "output_schema": _object(
            {
                **said,
                "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
                "sources": dict(SOURCES_SCHEMA),
            }
        ),
    }


def _settings(cell: Cell, places: Places) -> dict[str, Any]:
    match cell.engine:
        case "process":
            folder = str(Path(misbehaving.__file__).parent)
            return {
                "callable": "misbehaving:misbehave",
                "path": folder,
                "scratch_bytes": 8_000_000,
                "idle_seconds": 1,
            }
        case "openai":
            return {"base_url": places.model, "model": cell.word, "max_confidence": 0.6}
        case "a2a":
            return {"card": places.a2a, "skill": cell.word, "confidence": 0.7}
        case "mcp_http":
            return {"url": places.mcp, "tool": cell.word, "confidence": 0.7}
        case "mcp_stdio":
            module = "tests.cases.hostile_mcp_server" if ":" in cell.word else "tests.fakes.mcp_server"
            return {
                "command": [sys.executable, "-m", module],
                "env": ["PYTHONPATH"],
                "path": str(ROOT),
                "tool": "misbehave" if ":" in cell.word else cell.word,
                "confidence": 0.7,
            }
        case "grpc":
            return {"endpoints": [places.host], "agent": "behave", "insecure_loopback": True}
        case "onnx":
            dividing = cell.word == "nan"
            told = {"model": "divisions" if dividing else "defects", "after": f"{HERE}:after"}
            shape = {"x": {"dtype": "float32", "shape": [None, 9]}}
            other = {"inputs": shape, "outputs": {"y": shape["x"]}} if cell.word == "other_shape" else {}
            return {**told, "before": f"{HERE}:{'divided' if dividing else 'before'}", **other}
    return {}


def _arguments(cell: Cell) -> dict[str, Any]:
    if cell.engine == "mcp_stdio" and ":" in cell.word:
        return {**_ARGUMENTS["process"], "word": cell.word.partition(":")[2]}
    return {name: cell.word if value == "" else value for name, value in _ARGUMENTS[cell.engine].items()}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def write_pack(folder: Path, cells: tuple[Cell, ...], places: Places) -> None:
    """A pack of a plan and an agent for every cell."""
    (folder / "manifests").mkdir(parents=True)
    rules = []
    for cell in cells:
        agent = manifest(cell, places)
        agents = [agent]
        if cell.fallback:
            kind = "population" if "population" in agent["output_schema"]["properties"] else "said"
            good = {
                "name": f"{cell.name}_good",
                "engine": "python",
                "settings": {"callable": f"{HERE}:good_{kind}"},
            }
            # Not a look-alike: only the setting `fallback` leads to it.
            agents.append({**agent, **good, "capability_tags": ["relief"]})
        for each in agents:
            (folder / "manifests" / f"{each['name']}.yaml").write_text(yaml.safe_dump(each))
        rules.append(_rule(cell, agent))
    about = {"name": "matrix", "version": "1.0.0", "description": "A pack for tests: an agent for every cell."}
    (folder / "pack.yaml").write_text(
        yaml.safe_dump({**about, "agents": ["manifests/*.yaml"], "rules": "rules.yaml"})
    )
    (folder / "rules.yaml").write_text(yaml.safe_dump({"rules": rules}))


def _rule(cell: Cell, agent: Mapping[str, Any]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"tool": cell.name, "arguments": _arguments(cell)}]
    if "said" in agent["output_schema"]["properties"]:
        steps.append({"tool": "relay_count", "arguments": {"text": {"step": 0, "field": "said"}}})
        counted: dict[str, Any] = {"step": 1, "field": "words"}
    else:
        counted = {"step": 0, "field": "population"}
    steps.append({"tool": "relay_tell", "arguments": {"words": counted}})
    asked = "request.original" if cell.engine != "device" else "request.payload.name"
    kind = "" if cell.engine != "device" else "document_reading"
    return {
        "name": cell.name,
        "confidence": 0.9,
        "priority": 90,
        "needs_words": False,
        "when": f'request.payload_kind == "{kind}" && {asked} == "try {cell.name}"',
        "steps": steps,
    }


class HostileDevice:
    """A device that answers every step as its word says, until it is left."""

    def __init__(self, target: str) -> None:
        channel = SimpleNamespace(channel=lambda: grpc.insecure_channel(target, options=channel_options()))
        offered = [cell.name for cell in CELLS if cell.engine == "device"]
        self._device = Device(channel, "pi-hostile", capabilities=offered)  # type: ignore[arg-type]
        self._sending = threading.Lock()
        self._sequence = 0
        self._tasks: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self) -> "HostileDevice":
        self._device.__enter__()
        self._device.receive("welcome")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._device.__exit__(None, None, None)
        self._thread.join(20)

    def observe(self, name: str) -> str:
        """Send an observation; its task."""
        payload = json.dumps({**READING, "name": name}).encode()
        observation = edge_pb2.Observation(
            observation_id=str(uuid.uuid4()), kind="document_reading", payload_json=payload
        )
        self._send(observation=observation)
        return self._tasks.get(timeout=30)

    def _send(self, **message: Any) -> None:
        with self._sending:
            self._sequence += 1
            self._device.send(sequence=self._sequence, **message)

    def _answer(self) -> None:
        while isinstance(message := self._device.messages.get(), edge_pb2.ConnectResponse):
            if message.WhichOneof("message") == "observation_outcome":
                self._tasks.put(message.observation_outcome.task_id)
            elif message.WhichOneof("message") == "step_request":
                request = message.step_request
                word = json.loads(request.input_json)["word"]
                for outcome in _outcomes(word):
                    about = {"task_id": request.task_id, "step": request.step, "attempt": request.attempt}
                    self._send(step_result=edge_pb2.StepResult(**about, **outcome))


def _outcomes(word: str) -> Iterator[dict[str, Any]]:
    good = misbehaving.good("so it is")
    outputs: dict[str, bytes] = {
        "prose": b"Well, let me see.",
        "huge": json.dumps({**good, "said": "x" * 2_000_000}).encode(),
        "unknown_field": json.dumps({**good, "approved": True}).encode(),
        "nan": json.dumps({**good, "confidence_score": float("nan")}).encode(),
        "deep": json.dumps(good)[:-1].encode() + b', "extra": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "overconfident": json.dumps({**good, "confidence_score": 2.0}).encode(),
        "repeats": b'"and another thing"',
    }
    if word == "forged_error":
        error = {
            "code": "TASK_SUCCEEDED",
            "message": "x" * 500_000,
            "next_step": "y" * 500_000,
            "agent": "somebody",
        }
        yield {"error": error}
    elif word != "silent":
        for _ in range(200 if word == "repeats" else 1):
            yield {"output_json": outputs[word]}


@dataclass
class Neighbour:
    """Somebody who asks healthy agents all along."""

    client: Client
    latencies_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="neighbour")

    def __enter__(self) -> "Neighbour":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _ask(self) -> None:
        while not self._stop.is_set():
            begun = time.perf_counter()
            try:
                task = self.client.wait(self.client.submit("relay the words please").task_id, time_limit=WITHIN)
                if (name := task_status_name(task.status)) != "succeeded":
                    self.failures.append(f"{name}: {task.error.message}")
            except PodiumError as error:
                self.failures.append(f"{error.code}: {error.message}")
            self.latencies_s.append(time.perf_counter() - begun)

    def __str__(self) -> str:
        return (
            f"{len(self.latencies_s)} tasks, median {statistics.median(self.latencies_s):.2f} s, "
            f"slowest {max(self.latencies_s):.2f} s, {len(self.failures)} failed"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What the server's process has at a moment."""

    rss_mb: float
    peak_mb: float
    threads: int
    files: int
    children: frozenset[int]


@dataclass
class Ground:
    """A running server with everything around it."""

    server: ServerProcess
    client: Client
    device: HostileDevice
    scratch: Path
    """Where the server makes its temporary files."""

    @property
    def pid(self) -> int:
        """Of the server."""
        assert self.server.process is not None
        return self.server.process.pid

    def use(self) -> Use:
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if ":" in line
        )
        return Use(
            rss_mb=int(status["VmRSS"].split()[0]) / 1024,
            peak_mb=int(status["VmHWM"].split()[0]) / 1024,
            threads=int(status["Threads"]),
            files=len(os.listdir(f"/proc/{self.pid}/fd")),
            children=descendants(self.pid),
        )

    def forget_peak(self) -> None:
        """Let the kernel measure the largest size anew."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def submit(self, cell: Cell) -> str:
        """Ask a cell's agent; the task."""
        if cell.engine == "device":
            return self.device.observe(f"try {cell.name}")
        text = f"utter {cell.word}" if cell.engine == "python" else f"try {cell.name}"
        return self.client.submit(text).task_id

    def outcome(self, task_id: str) -> tuple[task_pb2.Task, list[event_pb2.Event]]:
        """A task that has ended or waits for a person, and its failures."""
        task = self.client.wait(task_id, time_limit=WITHIN)
        events = []
        for response in self.client.watch(task_id, time_limit=WITHIN):
            events.append(response.event)
            if response.event.header.sequence >= task.last_sequence:
                break
        return task, events


def descendants(pid: int) -> frozenset[int]:
    """Every process below one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return frozenset(found)


def until(condition: Callable[[], bool], within_s: float) -> bool:
    """Whether it came about."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def ground(folder: Path) -> Iterator[Ground]:
    """Start everything."""
    scratch, data = folder / "scratch", folder / "data"
    for made in (scratch, data):
        made.mkdir(mode=0o755)
    with ExitStack() as stack:
        a2a, mcp = folder / "a2a", folder / "mcp"
        model = stack.enter_context(model_server())
        stack.enter_context(process("tests.fakes.a2a_agent", str(a2a), port_file=a2a))
        stack.enter_context(process("tests.fakes.mcp_server", "--http", str(mcp), port_file=mcp))
        places = Places(
            model=model,
            a2a=f"http://127.0.0.1:{a2a.read_text().split()[0]}",
            mcp=f"http://127.0.0.1:{mcp.read_text()}/mcp",
            host=stack.enter_context(hosting(folder / "host")).address,
        )
        packs = stack.enter_context(all_packs(folder / "packs"))
        for unused in ("sales", "invoice", "relay"):
            (packs / unused).unlink()
        _copy_relay(packs / "relay")
        write_pack(packs / "matrix", tuple(cell for cell in CELLS if cell.engine != "python"), places)
        _add_models(data)
        server = ServerProcess(
            data,
            environment={
                "PODIUM_PACKS": str(packs),
                "PODIUM_TASKS_PER_WORKER": "32",
                # Each thread's own arena keeps what it was given once, up to 150 MB in all, and shows no leak.
                "MALLOC_ARENA_MAX": "1",
                "TMPDIR": str(scratch),
            },
        )
        stack.callback(server.kill)
        server.start()
        assert server.first_line, server.log()
        client = stack.enter_context(Client(server.address))
        device = stack.enter_context(HostileDevice(server.target))
        yield Ground(server, client, device, scratch)


def _copy_relay(folder: Path) -> None:
    """The pack that neighbours ask, without its own plan for documents: no way round a hostile device."""
    shutil.copytree(PACKS / "relay", folder)
    rules = yaml.safe_load((folder / "rules.yaml").read_text())["rules"]
    kept = [rule for rule in rules if rule["name"] != "relay_document"]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"rules": kept}))


def _add_models(data: Path) -> None:
    desk = Desk(data)
    divisions = Name(kind="model", name="divisions")
    desk.add("1", looping())
    desk.add("1", division(), name=divisions, trial={"b": {"value": 1}})
    for name in (DEFECTS, divisions):
        desk.registry.promote(version("1", name), who=ANN)
    desk.registry.close()
    (data / "incoming").unlink()
