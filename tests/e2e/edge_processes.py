"""`podium serve` over TLS and `podium edge run`, as processes that tests stop, kill and start again."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from podium.client import Client
from podium.link import Address
from podium.link.tokens import token_of
from tests.cases.pages import ROOT
from tests.integration.server import ServerProcess

WITHIN_S = 90
READING_S = 0.1
"""Processor time that only reading a page takes: a round through the folder needs a few milliseconds."""
ENVIRONMENT = {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}", "PODIUM_PACKS": str(ROOT / "agents" / "packs")}


@dataclass
class Cloud:
    """A server over TLS that comes back on the same port."""

    folder: Path
    process: ServerProcess = field(init=False)

    def __post_init__(self) -> None:
        self.process = ServerProcess(
            self.folder / "data", arguments=["--listen", "127.0.0.1:0"], environment=dict(ENVIRONMENT)
        ).start()

    @property
    def target(self) -> str:
        return self.process.target

    @property
    def ca(self) -> Path:
        return self.folder / "data" / "tls" / "ca.pem"

    @property
    def token_file(self) -> Path:
        return self.folder / "data" / "operator.token"

    def kill_and_restart(self) -> None:
        self.process.kill()
        self.restart()

    def restart(self) -> None:
        self.process.arguments = ["--listen", self.target]
        self.process.start()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Keep the process from doing anything; what is sent to it waits in the kernel."""
        process = self.process.process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def client(self) -> Client:
        return Client(Address.of(self.target, self.ca, token=token_of(self.token_file)))

    def task_ids(self) -> set[str]:
        with self.client() as client:
            return {task.task_id for task in client.list(page_size=500).tasks}


class Edge:
    """`podium edge run` with arguments; its lines are read as they come."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "podium.cli", "edge", "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | ENVIRONMENT,
        )
        self.said: queue.Queue[str] = queue.Queue()
        self.heard: list[str] = []
        self.printed: queue.Queue[dict[str, Any]] = queue.Queue()
        self._threads = [threading.Thread(target=self._hear), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.put(line)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.put(json.loads(line))

    def until(self, pattern: str) -> str:
        """Wait until it says something."""
        while True:
            try:
                line = self.said.get(timeout=WITHIN_S)
            except queue.Empty:
                raise AssertionError(f"it never said {pattern!r}, but: {self.heard}") from None
            self.heard.append(line)
            if re.search(pattern, line):
                return line

    def answer(self) -> dict[str, Any]:
        return self.printed.get(timeout=WITHIN_S)

    def cpu_s(self) -> float:
        """Processor time it has used, in seconds."""
        return sum(psutil.Process(self.process.pid).cpu_times()[:2])

    def until_it_worked(self, cpu_s: float) -> None:
        """Wait until it has used so much processor time."""
        ends_s = time.monotonic() + WITHIN_S
        while self.cpu_s() < cpu_s:
            assert time.monotonic() < ends_s, "it does not work"
            time.sleep(0.01)

    def end(self, number: int = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(WITHIN_S)
        for thread in self._threads:
            thread.join(10)
        self.process.stdout.close()  # type: ignore[union-attr]  # both are pipes
        self.process.stderr.close()  # type: ignore[union-attr]
        return status
