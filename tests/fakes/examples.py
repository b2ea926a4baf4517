"""The agents of docs/examples as real processes on free ports: started, stopped, killed, started again."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
CODE = "/srv/podium/agents"
"""Where the manifests say that code lies."""
PORTS = {"weather": 7500, "population": 7501, "elevation": 7502, "blurb": 7503}
"""Where the examples listen."""
SENTENCE = "It lies by a lake."
_ANSWER = json.dumps({"text": SENTENCE, "confidence_score": 0.9, "sources": []})
_UP_WITHIN_S = 30.0


class Examples:
    """A copy of the examples below `folder`, which processes of other users may read.

    `code` takes the place of the folder that the manifests name; the copy itself when not given.
    """

    def __init__(self, folder: Path, code: Path | None = None) -> None:
        self.folder = folder
        self._code = code or folder
        self.ports = {name: free_port() for name in PORTS}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for path in folder.rglob("*.[py]*"):
            path.write_text(self.here(path.read_text("utf-8")), encoding="utf-8")

    def here(self, text: str) -> str:
        """A text of the page or an example, with the ports and the folder of this copy."""
        for name, port in PORTS.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.ports[name]}")
            text = text.replace(f"port={port}", f"port={self.ports[name]}")
        return text.replace(CODE, str(self._code))

    def manifest(self, name: str, kind: str = "") -> Path:
        """Where a manifest lies."""
        return self.folder / (kind or name) / f"{name}.yaml"

    def start(self, name: str) -> None:
        """Start an agent, also where a killed one was, and wait until it listens."""
        command = {
            "weather": [sys.executable, "weather.py"],
            "population": [sys.executable, "population.py"],
            "elevation": [sys.executable, "elevation.py", "http"],
            "blurb": [sys.executable, "-m", "tests.fakes.scripted_model", str(self.ports[name]), _ANSWER],
        }[name]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
        process = subprocess.Popen(
            command,
            cwd=self.folder / name,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes[name] = process
        wait_until_up(self.ports[name], process)

    def pause(self, name: str) -> None:
        """Stop it as it is: it accepts connections and answers nothing."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        """Let it work again."""
        self._processes[name].send_signal(signal.SIGCONT)

    def kill(self, name: str) -> int:
        """`kill -9`; which process it was."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()
        return process.pid

    def close(self) -> None:
        """End all of them."""
        for name in list(self._processes):
            self.kill(name)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def wait_until_up(port: int, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Return when somebody listens on a port of loopback; fail when the process that should has ended."""
    ends_s = time.monotonic() + _UP_WITHIN_S
    while time.monotonic() < ends_s:
        assert process is None or process.poll() is None, "the agent has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            threading.Event().wait(0.02)
        else:
            return
    raise AssertionError(f"nobody listens on port {port}")


@contextmanager
def examples() -> Iterator[Examples]:
    """The examples, with nothing started."""
    with tempfile.TemporaryDirectory(prefix="podium-examples-") as folder:
        Path(folder).chmod(0o755)
        made = Examples(Path(folder))
        try:
            yield made
        finally:
            made.close()
