"""What hostile agents are let loose on: a server process, fakes behind its engines, a device, a neighbour."""

import json
import os
import queue
import shutil
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import yaml

from podium.client import Client
from podium.errors import PodiumError
from podium.link import channel_options
from podium.status import task_status_name
from podium.v1 import edge_pb2, event_pb2, task_pb2
from tests.cases.hostile_process import misbehaving
from tests.cases.pages import all_packs
from tests.e2e.hostile.cells import CELLS, Cell
from tests.e2e.hostile.pack import Places, write_pack
from tests.fakes.model_server import model_server
from tests.integration.foreign.calls import process
from tests.integration.hosts.ground import hosting
from tests.integration.server import PACKS, ServerProcess
from tests.integration.test_server_devices import READING, Device
from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, version
from tests.unit.tools.onnx.graphs import looping
from tests.unit.tools.onnx.tiny_model import division
from tools.artefacts.records import Name

WITHIN = timedelta(seconds=90)


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
