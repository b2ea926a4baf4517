"""`podium serve` as a process: its first line, TLS, one server a directory, a graceful end."""

import json
import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from podium.client import Client
from podium.link import Address
from podium.status import task_status_name
from tests.integration.server import PACKS, ROOT, ServerProcess


def _command(*arguments: str, data: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "podium.cli", *arguments, "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PODIUM_PACKS": str(PACKS), "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        check=False,
    )


def test_a_server_says_where_it_is_works_and_ends_gracefully_in_the_middle_of_a_task(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    assert re.fullmatch(r"listening on 127\.0\.0\.1:[1-9]\d*", server.first_line)
    entry = json.loads((server.data / "server.json").read_text())
    nothing = {"machines": None, "metrics": None, "ca": None, "token": None}
    assert entry == {"address": server.target, "tls": False, "pid": server.process.pid} | nothing

    second = _command("serve", "--listen", "127.0.0.1:0", data=server.data)
    assert (second.returncode, second.stdout) == (1, "")
    assert "DATA_DIRECTORY_IN_USE" in second.stderr
    taken = _command("serve", "--listen", server.target, "--insecure-loopback", data=tmp_path / "other")
    assert (taken.returncode, taken.stdout) == (1, "")
    assert "ADDRESS_UNAVAILABLE" in taken.stderr

    with Client(server.address) as client:
        task_id = client.submit("relay the words please").task_id
        for response in client.watch(task_id):
            if response.event.WhichOneof("payload") == "step_started":
                break
        assert server.stop() == 0
    assert not (server.data / "server.json").exists()
    assert '"level": "error"' not in server.log()
    assert "relay the words" not in server.log()

    server.start()
    with Client(server.address) as client:
        assert task_status_name(client.wait(task_id).status) == "succeeded"
        events = [response.event for response in client.watch(task_id)]
    started = [event.header.step for event in events if event.WhichOneof("payload") == "step_started"]
    assert sorted(started) == [0, 1, 2, 3]  # the stop waited for the running steps: none was tried again
    assert (server.data / "reports" / f"{task_id}.md").read_text().startswith("There are 4 words")
    assert server.stop() == 0


def test_without_the_flag_a_server_speaks_tls_that_its_own_authority_vouches_for(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", arguments=["--listen", "127.0.0.1:0"]).start()
    with Client(server.address) as client:
        assert client.list().tasks == []
    port = server.target.rpartition(":")[2]
    token = (server.data / "operator.token").read_text().strip()
    with Client(Address.of(f"localhost:{port}", server.data / "tls" / "ca.pem", token=token)) as client:
        assert client.list().tasks == []
    with grpc.insecure_channel(server.target) as channel, pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert server.stop() == 0


def test_without_tls_only_loopback_is_served(tmp_path: Path) -> None:
    refused = _command("serve", "--listen", "0.0.0.0:0", "--insecure-loopback", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "loopback" in refused.stderr


def test_a_damaged_log_is_told_with_advice_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "events.sqlite").write_bytes(b"garbage " * 1000)
    refused = _command("serve", "--listen", "127.0.0.1:0", "--insecure-loopback", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "DATABASE_CORRUPT" in refused.stderr
    assert "backup" in refused.stderr
    assert (tmp_path / "events.sqlite").read_bytes().startswith(b"garbage")


def test_settings_are_shown_with_their_sources(tmp_path: Path) -> None:
    (tmp_path / "podium.toml").write_text("workers = 3\n")
    shown = _command("config", "show", "--json", data=tmp_path)
    settings = json.loads(shown.stdout)["settings"]
    assert settings["workers"]["value"] == 3
    assert settings["workers"]["source"] == f"file {tmp_path / 'podium.toml'}"
    assert settings["packs"]["source"] == "environment PODIUM_PACKS"
    assert settings["data"]["source"] == "flag --data"
    assert settings["listen"]["source"] == "default"
    (tmp_path / "podium.toml").write_text("workers = 0\n")
    wrong = _command("config", "show", "--json", data=tmp_path)
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["error"]["code"] == "SETTINGS_INVALID"
