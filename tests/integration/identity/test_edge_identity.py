"""An enrolled device on the link: it connects by its certificate, under its name, and with new files at once."""

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edge.identity import IdentityInUse, enrolled, held
from edge.link import DeviceLink
from podium.errors import InvalidRequest
from podium.identity.enrolling import renew
from podium.link import IdentityUnusable
from tests.integration.identity import ground
from tests.integration.identity.ground import tls_serving


def _silent(text: str) -> None:
    raise AssertionError(text)


def test_a_device_connects_with_its_files_and_with_renewed_ones_when_told(tmp_path: Path) -> None:
    async def scenario(folder: Path) -> None:
        who = enrolled(folder, name="", target="", on_problem=_silent)
        assert who.name == "pi-1"
        before = who.address()
        states: asyncio.Queue[str] = asyncio.Queue()
        link = DeviceLink(
            who.address,
            device_id=who.name,
            software_version="1",
            capabilities=[],
            handle_step=_no_steps,
            jitter=random.Random(1),
            on_state=states.put_nowait,
        )
        running = asyncio.create_task(link.run())
        assert await states.get() == "connected"
        await asyncio.to_thread(renew, folder, clock=ground.now)
        assert who.address() != before
        link.connect_anew()
        assert await states.get() == "connected"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario(tmp_path / "pi")

    with tls_serving(tmp_path / "data") as server:
        ground.enrolled(server, tmp_path / "pi")
        asyncio.run(limited())


async def _no_steps(request: Any) -> bytes:
    raise AssertionError("no step was expected")


def test_an_identity_says_who_a_device_is_and_nothing_else_may(tmp_path: Path) -> None:
    pi = tmp_path / "pi"
    with tls_serving(tmp_path / "data") as server:
        ground.enrolled(server, pi)
        with pytest.raises(InvalidRequest, match="pi-1, not of pi-2") as caught:
            enrolled(pi, name="pi-2", target="", on_problem=_silent)
        assert caught.value.field == "device"
        with pytest.raises(InvalidRequest, match="HOST:PORT"):
            enrolled(pi, name="pi-1", target="nonsense", on_problem=_silent)
        with pytest.raises(IdentityUnusable):
            enrolled(tmp_path / "nothing", name="", target="", on_problem=_silent)
        # Files that are gone for a moment later on are no reason to stop.
        problems: list[str] = []
        who = enrolled(pi, name="pi-1", target="", on_problem=problems.append)
        address = who.address()
        pi.rename(tmp_path / "away")
        assert who.address() == address
        assert "going on with the identity as it was" in problems[0]
        (tmp_path / "away").rename(pi)
        with held(pi):
            with pytest.raises(IdentityInUse), held(pi):
                raise AssertionError("two processes hold one identity")
            told = _run("--watch", str(tmp_path), "--identity", str(pi))
            assert told["code"] == "IDENTITY_IN_USE"
        told = _run("--watch", str(tmp_path), "--identity", str(pi), "--device", "pi-2")
        assert told["code"] == "INVALID_REQUEST"
        assert "pi-1, not of pi-2" in told["message"]
        told = _run("--watch", str(tmp_path), "--identity", str(pi), "--ca", str(pi / "ca.pem"))
        assert "--ca has no use with --identity" in told["message"]


def _run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "podium.cli", "edge", "run", *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode != 0
    told: dict[str, Any] = json.loads(done.stdout)["error"]
    return told
