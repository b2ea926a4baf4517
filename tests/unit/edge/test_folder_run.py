"""The device's day over a folder, with a device that is played: what is refused, tried again, followed."""

import asyncio
import os
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import pytest

from edge import folder_run
from edge.folder_run import FolderRun
from edge.pipeline import FileUnreadable
from edge.watching import STATE_FILE, FolderSource
from podium.errors import InvalidRequest, LimitExceeded, ServerUnavailable, StorageFull
from podium.v1 import task_pb2


class PlayedDevice:
    """Reads a file as its name; `faults` holds, by name, the errors that reading, sending or waiting raise."""

    def __init__(self, **faults):
        self.faults = {name: list(errors) for name, errors in faults.items()}
        self.read_names, self.sent = [], []
        self.answered = {}
        self.link_error = None

    async def read(self, path):
        self.read_names.append(path.name)
        self._fail(f"read_{path.stem}")
        return path.name

    async def send(self, seen):
        self._fail(f"send_{seen.split('.')[0]}")
        self.sent.append(seen)
        return f"task-{seen}"

    async def wait(self, task_id):
        answered = self.answered.setdefault(task_id, asyncio.Event())
        await answered.wait()
        self._fail(f"wait_{task_id.removeprefix('task-').split('.')[0]}")
        return task_pb2.Task(task_id=task_id)

    def require_link(self):
        if self.link_error is not None:
            raise self.link_error

    def answer(self, name):
        self.answered.setdefault(f"task-{name}", asyncio.Event()).set()

    def _fail(self, what):
        if self.faults.get(what):
            raise self.faults[what].pop(0)


class Stage:
    def __init__(self, folder, device):
        self.folder, self.device = folder, device
        self.shown, self.said = [], []
        self.source = FolderSource(folder)
        self.changed = asyncio.Event()

    def show(self, name, task):
        self.shown.append((name, task.task_id))

    async def until(self, condition):
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - any condition, seen from outside
                await asyncio.sleep(0.001)


@asynccontextmanager
async def watching(folder, device):
    stage = Stage(folder, device)
    run = FolderRun(device, stage.source, show=stage.show, say=stage.said.append, clock_s=lambda: 1000.0)
    stage.running = asyncio.create_task(run.run())
    try:
        yield stage
    finally:
        stage.running.cancel()
        await asyncio.gather(stage.running, return_exceptions=True)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(folder_run, "POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AFTER_S", 0.002)
    monkeypatch.setattr(folder_run, "_UNREADABLE_FOR_S", 0.02)


def _files(folder, *names):
    for place, name in enumerate(names):
        path = folder / name
        path.write_bytes(name.encode())
        os.utime(path, (50 + place, 50 + place))


def test_a_task_that_waits_holds_up_no_other_document(tmp_path):
    _files(tmp_path, "slow.png", "quick.png")

    async def scenario():
        device = PlayedDevice()
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: len(device.sent) == 2)
            device.answer("quick.png")
            await stage.until(lambda: stage.shown)
            assert stage.shown == [("quick.png", "task-quick.png")]
            device.answer("slow.png")
            await stage.until(lambda: len(stage.shown) == 2)
        assert device.read_names == ["slow.png", "quick.png"]

    asyncio.run(scenario())


def test_no_more_is_sent_than_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_run, "MAX_FOLLOWED", 2)
    _files(tmp_path, "a.png", "b.png", "c.png", "d.png")

    async def scenario():
        device = PlayedDevice()
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: len(device.sent) == 3)
            await asyncio.sleep(0.02)
            assert len(device.sent) == 3
            device.answer("b.png")
            await stage.until(lambda: len(device.sent) == 4)

    asyncio.run(scenario())


def test_a_poisoned_file_is_refused_once_and_the_others_go_on(tmp_path):
    _files(tmp_path, "bad.png", "worse.png", "toobig.png", "good.png")

    async def scenario():
        device = PlayedDevice(
            read_bad=[InvalidRequest("no picture")],
            read_worse=[ZeroDivisionError("a defect")],
            send_toobig=[LimitExceeded("too large")],
        )
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: device.sent)
            await asyncio.sleep(0.02)
        assert device.read_names == ["bad.png", "worse.png", "toobig.png", "good.png"]
        assert device.sent == ["good.png"]
        said = "\n".join(stage.said)
        assert "bad.png refused: INVALID_REQUEST: no picture" in said
        assert "worse.png refused: INTERNAL_ERROR: reading it raised ZeroDivisionError: a defect" in said
        assert "toobig.png refused: LIMIT_EXCEEDED" in said
        assert FolderSource(tmp_path).new_files(now_s=1000.0) == []

    asyncio.run(scenario())


def test_what_may_pass_is_tried_again_without_reading_anew(tmp_path):
    _files(tmp_path, "a.png")

    async def scenario():
        device = PlayedDevice(send_a=[StorageFull("the cloud's disk is full")] * 3)
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: device.sent)
        assert device.read_names == ["a.png"]
        assert stage.said == ["a.png stays here and is tried again later: STORAGE_FULL: the cloud's disk is full"]

    asyncio.run(scenario())


def _used_up():
    return LimitExceeded("the quota is used up", retry_after=timedelta(hours=1))


def test_what_a_quota_holds_up_waits_longer_and_longer_and_holds_up_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AFTER_S", 0.02)
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AT_THE_LATEST_S", 0.08)
    _files(tmp_path, "a.png", "b.png")
    tried_s = []

    class Timed(PlayedDevice):
        async def send(self, seen):
            if seen == "a.png":
                tried_s.append(asyncio.get_running_loop().time())
            return await super().send(seen)

    async def scenario():
        device = Timed(send_a=[_used_up() for _ in range(5)] + [StorageFull("full now")])
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: "b.png" in device.sent)
            assert len(tried_s) == 1
            await stage.until(lambda: "a.png" in device.sent)
        assert device.sent == ["b.png", "a.png"]
        waits = [after - before for before, after in pairwise(tried_s)]
        assert all(wait >= least for wait, least in zip(waits, (0.02, 0.04, 0.08, 0.08, 0.08, 0.08), strict=True))
        assert len(stage.said) == 2, stage.said  # once for each reason
        assert FolderSource(tmp_path).new_files(now_s=1000.0) == []

    asyncio.run(scenario())


def test_what_is_put_off_is_there_after_a_restart(tmp_path):
    _files(tmp_path, "a.png")

    async def scenario():
        device = PlayedDevice(send_a=[_used_up() for _ in range(1000)])
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: stage.said)
        assert [found.name for found in FolderSource(tmp_path).new_files(now_s=1000.0)] == ["a.png"]

    asyncio.run(scenario())


def test_no_more_is_read_than_may_wait_for_room(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_run, "MAX_PUT_OFF", 2)
    monkeypatch.setattr(folder_run, "TRY_AGAIN_AFTER_S", 0.005)
    _files(tmp_path, "a.png", "b.png", "c.png", "d.png")

    async def scenario():
        device = PlayedDevice(**{f"send_{name}": [_used_up() for _ in range(4)] for name in "abcd"})
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: len(device.faults["send_b"]) < 3)
            assert device.read_names == ["a.png", "b.png"]
            await stage.until(lambda: len(device.sent) == 4)
        assert device.read_names == ["a.png", "b.png", "c.png", "d.png"]

    asyncio.run(scenario())


def test_one_that_is_put_off_and_then_refused_for_good_is_said_and_over(tmp_path):
    _files(tmp_path, "a.png")

    async def scenario():
        device = PlayedDevice(send_a=[_used_up(), InvalidRequest("no such kind")])
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: len(stage.said) == 2)
        assert "a.png refused: INVALID_REQUEST" in stage.said[1]
        assert FolderSource(tmp_path).new_files(now_s=1000.0) == []

    asyncio.run(scenario())


def test_a_file_without_read_rights_is_tried_again_later_and_holds_up_nobody(tmp_path):
    _files(tmp_path, "locked.png", "open.png")

    async def scenario():
        device = PlayedDevice(read_locked=[FileUnreadable("denied")])
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: len(device.sent) == 2)
        assert device.sent == ["open.png", "locked.png"]
        assert stage.said == ["locked.png: denied"]

    asyncio.run(scenario())


def test_a_full_disk_loses_no_answer(tmp_path):
    _files(tmp_path, "a.png")

    async def scenario():
        device = PlayedDevice()
        device.answer("a.png")
        async with watching(tmp_path, device) as stage:
            (tmp_path / STATE_FILE).symlink_to("/dev/full")
            await stage.until(lambda: stage.shown)
            await asyncio.sleep(0.01)
        assert device.sent == ["a.png"]
        assert "cannot be noted" in stage.said[0]
        assert "No space left" in stage.said[0]

    asyncio.run(scenario())


def test_an_answer_that_cannot_be_had_is_said(tmp_path):
    _files(tmp_path, "a.png")

    async def scenario():
        device = PlayedDevice(wait_a=[InvalidRequest("there is no such task")])
        device.answer("a.png")
        async with watching(tmp_path, device) as stage:
            await stage.until(lambda: stage.said)
            assert not stage.running.done()
        assert "task-a.png cannot be had: INVALID_REQUEST" in stage.said[0]

    asyncio.run(scenario())


def test_a_folder_that_is_away_is_said_and_comes_back(tmp_path):
    folder, away = tmp_path / "scans", tmp_path / "away"
    folder.mkdir()

    async def scenario():
        device = PlayedDevice()
        async with watching(folder, device) as stage:
            folder.rename(away)
            await stage.until(lambda: stage.said)
            assert "cannot be listed" in stage.said[0]
            away.rename(folder)
            _files(folder, "a.png")
            await stage.until(lambda: device.sent)

    asyncio.run(scenario())


def test_a_link_that_has_ended_for_good_ends_the_run(tmp_path):
    async def scenario():
        device = PlayedDevice()
        async with watching(tmp_path, device) as stage:
            device.link_error = ServerUnavailable("never again")
            with pytest.raises(ServerUnavailable, match="never again"):
                await asyncio.wait_for(asyncio.shield(stage.running), 10)

    asyncio.run(scenario())
