"""Gateways as real processes in front of a real server with the sales pack, and callers with tokens."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from podium.client import Client as PodiumClient
from tests.integration.server import ROOT, Running, serving

SALES = "Compare last quarter's sales of East China and South China; find the cities that fell by more than 15%"
UNCLEAR = "Compare last quarter's sales of East China and Atlantis; find the cities that fell by more than 15%"
ANSWER = "South China"
AS_OF = "2026-10-08T01:30:00+00:00"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A server that wants tokens, and the tokens of two callers."""

    server: Running
    ann: str
    bob: str

    def podium(self) -> PodiumClient:
        return PodiumClient(self.server.tls_address())


@contextmanager
def sales_desk(data: Path) -> Iterator[Desk]:
    with serving(data, packs=ROOT / "agents" / "packs", insecure_loopback=False) as running:
        with PodiumClient(running.tls_address()) as client:
            tokens = [client.issue_token(name, ["caller"]).token for name in ("ann", "bob")]
        yield Desk(server=running, ann=tokens[0], bob=tokens[1])


@contextmanager
def gateway(kind: str, *options: str, log: Path) -> Iterator[dict[str, Any]]:
    """`podium gateway KIND` as a process; what its first line says."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
    command = [sys.executable, "-m", "podium.cli", "gateway", kind, "--json", *options]
    with log.open("w") as file:
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=file, text=True, cwd=ROOT, env=environment
        )
    assert started.stdout is not None
    try:
        line = started.stdout.readline()
        assert line, log.read_text()
        yield json.loads(line)
        started.terminate()
        assert started.wait(20) == 0
    finally:
        started.kill()
        started.communicate(timeout=20)


@asynccontextmanager
async def mcp_client(url: str, token: str = "", **options: Any) -> AsyncIterator[Client]:
    """The SDK's client, with a token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    verify = options.pop("verify", True)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, verify=verify) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client
