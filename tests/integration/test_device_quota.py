"""A device whose cloud has no room for it: the document stays, is tried again, and is taken once there is room."""

import asyncio
import hashlib
import os
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edge import folder_run
from edge.device import Device
from edge.folder_run import FolderRun
from edge.identity import DeviceIdentity, MachineAddress
from edge.pipeline import DocumentSeen
from edge.watching import FolderSource
from podium.v1 import task_pb2
from tests.integration.identity.ground import enrolled, tls_serving
from tests.integration.identity.test_devices import ports_of
from tests.integration.test_server_devices import READING
from tools.document.reading import Crop, DocumentReading


class QuickDevice(Device):
    """Sends and waits as a device does; a file's bytes count as the crop of what was read on it."""

    async def read(self, path: Path, *, observation_id: str = "") -> DocumentSeen:
        data = await asyncio.to_thread(path.read_bytes)
        crop = Crop(sha256=hashlib.sha256(data).hexdigest(), page=1, box=(0, 0, 5, 5))
        scan: Any = SimpleNamespace(
            reading=DocumentReading.from_json(READING), crops=((crop, data),) if len(data) > 1 else ()
        )
        return DocumentSeen(observation_id=str(uuid.uuid4()), text="", scan=scan)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AFTER_S", 0.1)
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AT_THE_LATEST_S", 0.4)


def _scans(folder: Path, **sizes: int) -> None:
    folder.mkdir()
    for place, (name, size_bytes) in enumerate(sizes.items()):
        path = folder / f"{name}.png"
        path.write_bytes(os.urandom(size_bytes))
        os.utime(path, (1000 + place, 1000 + place))


@pytest.mark.parametrize("limit", ["caller_daily_blob_bytes", "blobs_max_bytes"])
def test_a_document_beyond_a_quota_waits_until_the_quota_is_raised(tmp_path: Path, limit: str) -> None:
    pi, scans = tmp_path / "pi", tmp_path / "scans"
    _scans(scans, first=6000, beyond=7000, small=1)
    shown: list[str] = []
    said: list[str] = []

    def show(name: str, task: task_pb2.Task) -> None:
        shown.append(name)

    async def until(count: int) -> None:
        async with asyncio.timeout(30):
            while len(shown) < count or not said:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)

    async def refused() -> None:
        await until(2)
        await asyncio.sleep(1)  # several more attempts
        assert sorted(shown) == ["first.png", "small.png"]
        assert [found.name for found in FolderSource(scans).new_files(now_s=time.time())] == ["beyond.png"]
        assert len(said) == 1, said
        assert said[0].startswith("beyond.png stays here and is tried again later: LIMIT_EXCEEDED")
        assert limit in said[0]

    async def scenario() -> None:
        with ExitStack() as servers:
            server = servers.enter_context(tls_serving(tmp_path / "data", **{limit: 10_000}, blob_max_bytes=8000))
            ports = ports_of(server)
            enrolled(server, pi)
            identity = DeviceIdentity(name="pi-1", address=MachineAddress(pi, "", on_problem=print), folder=pi)
            device = await asyncio.to_thread(QuickDevice, identity, threads=1)
            async with device:
                run = FolderRun(device, FolderSource(scans), show=show, say=said.append, clock_s=time.time)
                running = asyncio.create_task(run.run())
                await refused()
                await asyncio.to_thread(servers.close)
                with tls_serving(tmp_path / "data", **{limit: 1_000_000}, **ports):
                    await until(3)
                    assert shown[-1] == "beyond.png"
                    assert FolderSource(scans).new_files(now_s=time.time()) == []
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())


def test_a_document_with_a_crop_that_is_too_large_is_refused_once(tmp_path: Path) -> None:
    pi, scans = tmp_path / "pi", tmp_path / "scans"
    _scans(scans, large=9000, small=1)
    shown: list[str] = []
    said: list[str] = []

    async def scenario() -> None:
        with tls_serving(tmp_path / "data", blob_max_bytes=8000) as server:
            enrolled(server, pi)
            identity = DeviceIdentity(name="pi-1", address=MachineAddress(pi, "", on_problem=print), folder=pi)
            async with await asyncio.to_thread(QuickDevice, identity, threads=1) as device, asyncio.timeout(30):
                source = FolderSource(scans)
                run = FolderRun(
                    device, source, show=lambda name, _: shown.append(name), say=said.append, clock_s=time.time
                )
                while not shown:
                    await run.one_round()
                await run.one_round()
        assert shown == ["small.png"]
        assert len(said) == 1, said
        assert said[0].startswith("large.png refused: LIMIT_EXCEEDED")
        assert FolderSource(scans).new_files(now_s=time.time()) == []

    asyncio.run(scenario())
