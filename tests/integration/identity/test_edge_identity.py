"""An enrolled device on the link: it connects by its certificate, under its name, and with new files at once."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edge.device import Device
from edge.identity import DeviceIdentity, IdentityInUse, enrolled, held
from edge.link import DeviceLink
from podium.errors import InvalidRequest, NotFound
from podium.identity.enrolling import renew
from podium.link import IdentityUnusable
from podium.link.certificates import CertificateRefused
from podium.link.renewing import Validity
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


def test_a_device_whose_certificate_expired_renews_it_by_itself_and_connects(tmp_path: Path) -> None:
    data, pi = tmp_path / "data", tmp_path / "pi"
    with tls_serving(data, clock=ground.shifted(days=-100)) as server:
        before = ground.enrolled(server, pi)
        port = server.address.rpartition(":")[2]
    with tls_serving(data, listen=f"127.0.0.1:{port}", listen_machines="127.0.0.1:0") as server:
        who = enrolled(pi, name="", target=server.app.machines_address, on_problem=_silent)
        states = asyncio.run(_until_connected(who))
        assert any("hung up on this machine" in state for state in states)
        assert Validity.read(pi).serial != before.serial


def test_a_device_goes_on_with_the_certificate_that_replaces_a_refused_one(tmp_path: Path) -> None:
    with tls_serving(tmp_path / "data") as server:
        pi = tmp_path / "pi"
        before = ground.enrolled(server, pi)
        who = enrolled(pi, name="", target="", on_problem=_silent)

        async def refused(device: Device) -> None:
            with pytest.raises(NotFound):
                await device.wait("no-such-task")
            first = device._clients[-1]
            device._note_failure(CertificateRefused("hung up"))
            async with asyncio.timeout(60):
                while device._clients[-1] is first:
                    with pytest.raises(NotFound):
                        await device.wait("no-such-task")
                    await asyncio.sleep(0.01)
            # What went over the old certificate is closed; a device runs for years.
            assert len(device._clients) == 1

        states = asyncio.run(_until_connected(who, 2, refused))
        assert states.count("connected") == 2
        assert Validity.read(pi).serial != before.serial


async def _until_connected(
    who: DeviceIdentity, times: int = 1, meanwhile: Callable[[Device], Awaitable[None]] | None = None
) -> list[str]:
    """What the device says until it was connected so often."""
    said: asyncio.Queue[str] = asyncio.Queue()
    states: list[str] = []
    async with asyncio.timeout(90), Device(who, threads=1, on_state=said.put_nowait) as device:
        while states.count("connected") < times:
            states.append(await said.get())
            if meanwhile is not None and states.count("connected") == 1:
                await meanwhile(device)
                meanwhile = None
    return states


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
