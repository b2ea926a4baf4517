"""`podium health-check` tells operators what is not well with a server that still answers."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from cloud.commands import vitals
from podium.client import Client
from podium.link import Address
from podium.v1 import agent_pb2
from tests.integration.command_line import Ran, podium
from tests.integration.server import serving
from tests.integration.test_registering import ALLOWED, manifest
from tools.ledger.errors import LedgerCorrupt
from tools.ledger.ledger import Ledger

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def _checks(ran: Ran) -> dict[str, tuple[bool, str]]:
    return {check["name"]: (check["ok"], check["detail"]) for check in ran.json["checks"]}


def test_a_server_with_tls_and_metrics_is_well_and_says_what_was_looked_at(tmp_path: Path) -> None:
    with serving(tmp_path, insecure_loopback=False, metrics_listen="127.0.0.1:0") as server:
        health = podium("health-check", "--data", str(tmp_path), "--json")
        ca = str(tmp_path / "tls" / "ca.pem")
        named = podium(
            *("health-check", "--server", server.address, "--ca", ca, "--data", str(tmp_path / "none"), "--json"),
            *("--token-file", str(server.token_file)),
        )
    checks = _checks(health)
    assert (health.status, [name for name, (ok, _) in checks.items() if not ok]) == (0, []), health.out
    assert "is good until" in checks["certificate"][1]
    assert "its last file is as it was written" in checks["ledger"][1]
    assert "0 dropped" in checks["telemetry"][1]
    assert set(checks) - set(_checks(named)) == {"data", "reach", "ledger", "telemetry", "blobs"}
    assert "is good until" in _checks(named)["certificate"][1]


def test_what_is_not_well_is_told_and_fails_the_check(tmp_path: Path) -> None:
    with serving(tmp_path, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        client.register_agent(yaml.safe_dump(manifest(), sort_keys=False))
    (last,) = (tmp_path / "audit").glob("*.jsonl")
    with serving(tmp_path) as server, Client(Address.of(server.address)) as client:
        file = tmp_path / "full.bin"
        file.write_bytes(os.urandom(95_000))
        client.upload(file)
        last.write_bytes(last.read_bytes().replace(b"city_lister", b"city_laster", 1))
        environment = {"PODIUM_BLOBS_MAX_BYTES": "100000"}
        health = podium("health-check", "--data", str(tmp_path), "--json", environment=environment)
    bad = {name: detail for name, (ok, detail) in _checks(health).items() if not ok}
    assert (health.status, set(bad)) == (1, {"agents", "ledger", "blobs"}), health.out
    assert "city_lister 1.0.0: left out at start: " in bad["agents"]
    assert "LEDGER_CORRUPT" in bad["ledger"]
    assert "(95%)" in bad["blobs"]


@pytest.mark.parametrize(
    ("left", "ok", "said"), [(31, True, "good"), (29, False, "expires"), (-1, False, "expired")]
)
def test_a_certificate_that_ends_soon_is_told(tmp_path: Path, left: int, ok: bool, said: str) -> None:
    with serving(tmp_path, insecure_loopback=False) as server:
        ends = x509.load_pem_x509_certificate((tmp_path / "tls" / "server.pem").read_bytes()).not_valid_after_utc
        found = vitals.certificate(server.tls_address(), None, ends - timedelta(days=left))
    assert (found.ok, f"{ends:%Y-%m-%d}" in found.detail, said in found.detail) == (ok, True, True)


def test_an_earlier_file_of_the_ledger_is_only_read_when_asked_for(tmp_path: Path) -> None:
    with Ledger(tmp_path / "audit", clock=lambda: NOW, segment_bytes=4096) as ledger:
        for number in range(40):
            ledger.append({"text": "x" * 200}, key=f"key/{number}")
    first = min((tmp_path / "audit").glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b"xxx", b"xyx", 1))
    assert vitals.ledger(tmp_path, deep=False).ok
    with pytest.raises(LedgerCorrupt):
        vitals.ledger(tmp_path, deep=True)
    assert vitals.ledger(tmp_path / "none", deep=True).ok


def test_agents_that_nothing_listens_for_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        here, gone = (f"127.0.0.1:{one.getsockname()[1]}" for one in (listening, closed))
        closed.close()
        agents = [
            agent_pb2.AgentDescription(name="there", enabled=True, endpoint=f"http://{here}/card"),
            agent_pb2.AgentDescription(name="either", enabled=True, endpoint=f"grpc://{gone},grpc://{here}"),
            agent_pb2.AgentDescription(name="off", enabled=False, endpoint=f"grpc://{gone}"),
            agent_pb2.AgentDescription(name="inside", enabled=True),
        ]
        assert vitals.reach(agents).ok
        agents.append(
            agent_pb2.AgentDescription(name="lost", version="2", enabled=True, endpoint=f"grpc://{gone}")
        )
        found = vitals.reach(agents)
    assert (found.ok, found.detail) == (False, f"lost 2 is not reached at grpc://{gone}")


@contextmanager
def _metrics(dropped: int) -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            lines = (
                f'podium_spans_total{{outcome="dropped"}} {dropped}.0',
                'podium_spans_total{outcome="exported"} 1e+03',
            )
            self.wfile.write("\n".join((*lines, "podium_queue_tasks 7.0", "")).encode())

        def log_message(self, *_: object) -> None:
            """Not on stderr."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("dropped", "ok"), [(5, True), (50, False)])
def test_spans_that_were_dropped_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: int, ok: bool
) -> None:
    with _metrics(dropped) as where:
        monkeypatch.setattr(vitals, "metrics_address", lambda _: where)
        found = vitals.telemetry(tmp_path)
    assert (found.ok, found.detail) == (
        ok,
        f"1000 spans exported, {dropped} dropped since the start; 7 tasks wait",
    )
