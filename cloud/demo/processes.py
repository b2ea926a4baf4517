"""The two processes of the demo: a cloud with TLS and a device that watches a folder, both on loopback."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import grpc

from cloud.settings import FILE_NAME
from podium.errors import ServerUnavailable, TimeLimitExceeded
from podium.identity.enrolling import enroll
from podium.link import Address, sync_channel, unreachable
from podium.link.tokens import token_of
from podium.rpc_status import from_rpc_error
from podium.v1 import identity_pb2, identity_pb2_grpc

START_LIMIT_S = 60.0
STOP_LIMIT_S = 20.0
CALL_LIMIT_S = 20.0
DEVICE = "demo-scanner"
AGENT_MODULE = "cloud.demo.reading_time"
"""Whose function the agent runs that the demo registers."""
_LISTENING = "listening on "


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A running `podium serve`."""

    address: Address
    """With the operator's token."""


@contextmanager
def running_cloud(data: Path) -> Iterator[Cloud]:
    """Start `podium serve` with TLS on a free loopback port and stop it with SIGTERM.

    Raises:
        ServerUnavailable: it did not start; the message says where its log is.
    """
    log = data / "cloud.log"
    data.mkdir(parents=True, exist_ok=True)
    (data / FILE_NAME).write_text(f'agent_modules = "{AGENT_MODULE}"\n', encoding="utf-8")
    arguments = ["serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    with _process(arguments, log) as process:
        first = _Lines(process.stdout).next(START_LIMIT_S)
        if first is None or not first.startswith(_LISTENING):
            raise ServerUnavailable(f"the cloud did not start; see {log}")
        ca_file = data / "tls" / "ca.pem"
        target = first.removeprefix(_LISTENING).strip()
        token_file = data / "operator.token"
        address = Address.of(target, ca_file, token=token_of(token_file))
        yield Cloud(address=address)


class WatchingDevice:
    """A running `podium edge run --watch`; prints one answer for each document put into its folder."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, log: Path) -> None:
        self._lines = _Lines(process.stdout)
        self._folder = folder
        self._log = log
        self._answers: dict[str, dict[str, Any]] = {}

    def scan(self, page: Path) -> None:
        """Put a page on the scanner: copy it into the watched folder."""
        # Copied under a name the device does not look at, then renamed: it never sees half a file.
        partial = self._folder / f".{page.name}"
        partial.write_bytes(page.read_bytes())
        partial.rename(self._folder / page.name)

    def answer(self, name: str, *, limit_s: float) -> dict[str, Any]:
        """What the device printed for the file `name`.

        Raises:
            TimeLimitExceeded: nothing was printed within `limit_s`.
        """
        deadline_s = time.monotonic() + limit_s
        while name not in self._answers:
            line = self._lines.next(max(0.0, deadline_s - time.monotonic()))
            if line is None:
                raise TimeLimitExceeded(f"the device has no answer for {name}; see {self._log}")
            answer = json.loads(line)
            self._answers[answer["file"]] = answer
        return self._answers[name]


@contextmanager
def running_device(cloud: Cloud, folder: Path, log: Path) -> Iterator[WatchingDevice]:
    """Enrol a device and start `podium edge run --watch` on a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = log.parent / "scanner-identity"
    _enrol(cloud, identity)
    arguments = ["edge", "run", "--watch", str(folder), "--identity", str(identity), "--json"]
    with _process(arguments, log) as process:
        yield WatchingDevice(process, folder, log)


def _enrol(cloud: Cloud, folder: Path) -> None:
    """As `podium machine invite` and `podium enroll` do: a one-time token becomes a key and a certificate."""
    with sync_channel(cloud.address) as channel:
        request = identity_pb2.CreateEnrolmentTokenRequest(kind=identity_pb2.IDENTITY_KIND_DEVICE, name=DEVICE)
        try:
            invited = identity_pb2_grpc.IdentityServiceStub(channel).CreateEnrolmentToken(
                request, timeout=CALL_LIMIT_S
            )
        except grpc.RpcError as error:
            raise unreachable(cloud.address, from_rpc_error(error)) from error
    enroll(
        cloud.address.target,
        invited.token,
        folder,
        kind="device",
        name=DEVICE,
        clock=lambda: datetime.now(UTC),
    )


class _Lines:
    """Lines of a process's output, with a time limit for each: a pipe has none of its own."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def next(self, limit_s: float) -> str | None:
        """The next line, or None when there is none within `limit_s` or the process has ended."""
        try:
            return self._queue.get(timeout=limit_s)
        except queue.Empty:
            return None

    def _read(self, stream: IO[str] | None) -> None:
        for line in stream or ():
            self._queue.put(line)
        self._queue.put(None)


@contextmanager
def _process(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "podium.cli", *arguments]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
