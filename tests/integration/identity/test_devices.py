"""What becomes of a running device, a real process, when something is wrong with its certificate."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.link.renewing import Validity
from tests.integration.identity.ground import DEVICE, enrolled, operator, shifted, tls_serving
from tests.integration.server import ROOT, Running

PATIENCE_S = 30.0
"""Within which everything here must be noticed."""


class Device:
    """`podium edge run` that watches an empty folder."""

    def __init__(self, process: "subprocess.Popen[str]", said: Path) -> None:
        self._process = process
        self._said = said

    def says(self, words: str) -> float:
        """Wait until it says so; after how many seconds."""
        began = time.monotonic()
        while words not in self._said.read_text():
            assert time.monotonic() - began < PATIENCE_S, f"not {words!r}, but: {self._said.read_text()}"
            time.sleep(0.05)
        return time.monotonic() - began


@contextmanager
def device(identity: Path, folder: Path) -> Iterator[Device]:
    folder.mkdir()
    said = folder.with_suffix(".log")
    with said.open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "podium.cli",
                "edge",
                "run",
                "--watch",
                str(folder),
                "--identity",
                str(identity),
            ],
            stdout=log,
            stderr=log,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        )
    try:
        yield Device(process, said)
    finally:
        process.terminate()
        process.wait(30)


def ports_of(server: Running) -> dict[str, str]:
    """For a server that takes the place of this one."""
    return {"listen": server.address, "listen_machines": server.app.machines_address}


def test_a_device_that_expired_offline_comes_back_by_itself(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data", clock=shifted(days=-100)) as server:
        before = enrolled(server, pi)  # received just now by its own clock, which lost the 100 days
        ports = ports_of(server)
    with tls_serving(tmp_path / "data", **ports), device(pi, tmp_path / "scans") as running:
        running.says("edge: connected")
        assert Validity.read(pi).serial != before.serial


def test_a_device_that_is_revoked_says_so_and_what_to_do(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data") as server:
        enrolled(server, pi)
        with device(pi, tmp_path / "scans") as running:
            running.says("edge: connected")
            with operator(server) as client:
                assert client.revoke(DEVICE, "pi-1", reason="lost").ended_calls == 1
            assert running.says("CERTIFICATE_REVOKED") < 5
            running.says("podium machine invite")


def test_a_device_whose_server_made_a_new_authority_says_so(tmp_path: Path) -> None:
    pi, data = tmp_path / "pi", tmp_path / "data"
    with tls_serving(data) as server:
        enrolled(server, pi)
        ports = ports_of(server)
    shutil.rmtree(data / "tls")
    with tls_serving(data, **ports), device(pi, tmp_path / "scans") as running:
        running.says("not vouched for by the authority")


def test_a_device_renews_while_it_runs_and_stays_connected(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data", machine_lifetime_hours=6 / 3600) as server:
        before = enrolled(server, pi)
        with device(pi, tmp_path / "scans") as running:
            running.says("edge: connected")
            ends = time.monotonic() + PATIENCE_S
            with operator(server) as client:
                while True:
                    (machine,) = client.machines(DEVICE)
                    past_the_first = machine.last_seen_time.ToDatetime(before.expires.tzinfo) > before.expires
                    if machine.serial != before.serial and past_the_first:
                        break  # it connected with a newer one after the first had expired
                    assert time.monotonic() < ends
                    time.sleep(0.1)
            assert not machine.HasField("contested_time")
