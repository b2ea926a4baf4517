import asyncio
import hashlib
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cloud.auth.principal import Principal
from cloud.blobs.errors import HashMismatch, UploadIncomplete, UploadOffsetWrong, UploadSuperseded
from cloud.blobs.files import partial_name
from cloud.blobs.room import BlobLimits
from cloud.blobs.store import BlobState, BlobStore
from cloud.blobs.uploads import CHUNK_BYTES
from podium.errors import DataCorrupt, InvalidRequest, LimitExceeded, NotFound, StorageFull
from tests.contract.bus.scenario import in_loop

LIMITS = BlobLimits(blob_bytes=2_000_000, all_bytes=3_000_000)
ME = Principal.local()


def _store(folder: Path, limits: BlobLimits = LIMITS) -> BlobStore:
    return BlobStore(folder, limits, clock=lambda: datetime.now(UTC))


def _named(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def _put(store: BlobStore, data: bytes) -> str:
    upload = await store.start(_named(data), len(data), ME)
    for offset in range(0, len(data), CHUNK_BYTES):
        await upload.write(offset, data[offset : offset + CHUNK_BYTES])
    await upload.finish()
    await upload.close()
    return _named(data)


async def _get(store: BlobStore, sha256: str, offset_bytes: int = 0) -> bytes:
    return b"".join([piece async for piece in store.read(sha256, offset_bytes=offset_bytes)])


@in_loop
async def test_bytes_come_back_from_any_offset_also_after_a_restart(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3 * CHUNK_BYTES + 17)
    store = _store(tmp_path)
    name = await _put(store, data)
    for again in (store, _store(tmp_path)):
        assert await again.state(name, ME) == BlobState(committed_bytes=len(data), complete=True)
        assert await _get(again, name) == data
        assert await _get(again, name, CHUNK_BYTES + 5) == data[CHUNK_BYTES + 5 :]
        assert await _get(again, name, len(data)) == b""


@in_loop
async def test_an_upload_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    data = random.Random(2).randbytes(600_000)
    first = await _store(tmp_path).start(_named(data), len(data), ME)
    await first.write(0, data[:200_000])
    with pytest.raises(UploadIncomplete):
        await first.finish()
    await first.close()

    store = _store(tmp_path)
    assert await store.state(_named(data), ME) == BlobState(committed_bytes=200_000, complete=False)
    with pytest.raises(NotFound):
        await _get(store, _named(data))
    second = await store.start(_named(data), len(data), ME)
    with pytest.raises(UploadOffsetWrong):
        await second.write(0, data[:10])
    with pytest.raises(UploadOffsetWrong):
        await second.write(2**63, b"x")
    await second.write(200_000, data[200_000:])
    await second.finish()
    await second.close()
    assert await _get(store, _named(data)) == data


@in_loop
async def test_a_stored_blob_needs_nothing_sent(tmp_path: Path) -> None:
    store = _store(tmp_path)
    await _put(store, b"hello")
    upload = await store.start(_named(b"hello"), 5, ME)
    assert upload.complete
    await upload.finish()
    await upload.close()
    assert await _get(store, _named(b"hello")) == b"hello"


@in_loop
async def test_wrong_bytes_never_count_and_are_forgotten(tmp_path: Path) -> None:
    store = _store(tmp_path)
    upload = await store.start(_named(b"right"), 5, ME)
    await upload.write(0, b"wrong")
    with pytest.raises(HashMismatch):
        await upload.finish()
    await upload.close()
    assert await store.state(_named(b"right"), ME) == BlobState(committed_bytes=0, complete=False)
    await _put(store, b"right")
    assert await _get(store, _named(b"right")) == b"right"


@in_loop
async def test_a_second_upload_takes_over_from_the_first(tmp_path: Path) -> None:
    store = _store(tmp_path)
    first = await store.start(_named(b"abcdef"), 6, ME)
    await first.write(0, b"abc")
    second = await store.start(_named(b"abcdef"), 6, ME)
    with pytest.raises(UploadSuperseded):
        await first.write(3, b"def")
    await first.close()
    await second.write(3, b"def")
    await second.finish()
    await second.close()
    assert await _get(store, _named(b"abcdef")) == b"abcdef"


@in_loop
async def test_uploads_that_fight_over_one_blob_leave_it_whole(tmp_path: Path) -> None:
    store = _store(tmp_path)
    data = random.Random(3).randbytes(1_000_000)

    chance = random.Random(4)

    async def one() -> bool:
        await asyncio.sleep(chance.random() / 20)
        committed = (await store.state(_named(data), ME)).committed_bytes
        upload = await store.start(_named(data), len(data), ME)
        try:
            for offset in range(committed, 0 if upload.complete else len(data), 50_000):
                await upload.write(offset, data[offset : offset + 50_000])
            await upload.finish()
        except (UploadSuperseded, UploadOffsetWrong):
            return False
        finally:
            await upload.close()
        return True

    async def until_stored() -> None:
        while not await one():
            pass

    await asyncio.gather(*(until_stored() for _ in range(8)))
    assert await _get(store, _named(data)) == data


@pytest.mark.parametrize(
    "name",
    ["", "../../../etc/passwd", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "\0" * 64, "🧾" * 64],
)
@in_loop
async def test_names_that_are_no_hash_are_refused(tmp_path: Path, name: str) -> None:
    store = _store(tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        await store.start(name, 5, ME)
    assert caught.value.field == "blob.sha256"
    with pytest.raises(InvalidRequest):
        await store.state(name, ME)
    with pytest.raises(InvalidRequest):
        await _get(store, name)


@pytest.mark.parametrize(
    ("size", "error"),
    [(0, InvalidRequest), (2_000_001, LimitExceeded), (2**63, LimitExceeded), (2**64 - 1, LimitExceeded)],
)
@in_loop
async def test_sizes_out_of_bounds_are_refused(tmp_path: Path, size: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        await _store(tmp_path).start("a" * 64, size, ME)


@in_loop
async def test_more_bytes_than_announced_are_refused(tmp_path: Path) -> None:
    upload = await _store(tmp_path).start(_named(b"abc"), 3, ME)
    with pytest.raises(InvalidRequest):
        await upload.write(0, b"abcd")
    await upload.close()


@in_loop
async def test_offsets_past_the_end_are_refused(tmp_path: Path) -> None:
    store = _store(tmp_path)
    name = await _put(store, b"hello")
    for offset in (6, 2**63, 2**64 - 1):
        with pytest.raises(InvalidRequest):
            await _get(store, name, offset)


@in_loop
async def test_all_blobs_together_have_a_limit_that_running_uploads_count_towards(tmp_path: Path) -> None:
    store = _store(tmp_path)
    stored = b"x" * 1_500_000
    await _put(store, stored)
    running = await store.start("a" * 64, 1_000_000, ME)
    with pytest.raises(LimitExceeded):
        await store.start("b" * 64, 600_000, ME)
    await running.close()  # nothing was written: its room is free again
    again = await store.start("b" * 64, 1_500_000, ME)
    await again.write(0, b"y" * 200_000)
    await again.close()
    with pytest.raises(LimitExceeded):
        await store.start("c" * 64, 1_400_000, ME)
    with pytest.raises(LimitExceeded):
        await _store(tmp_path).start("c" * 64, 1_400_000, ME)


@in_loop
async def test_a_full_disk_keeps_whole_chunks_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _store(tmp_path)
    data = random.Random(4).randbytes(500)
    upload = await store.start(_named(data), 500, ME)
    await upload.write(0, data[:200])
    full = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115, ASYNC230 - a disk with no room
    upload_file = upload._file
    assert upload_file is not None

    class HalfFull:
        def write(self, piece: bytes) -> int:
            if len(piece) > 100:
                return upload_file.write(piece[:100])
            return full.write(piece)

        def __getattr__(self, name: str) -> object:
            return getattr(upload_file, name)

    monkeypatch.setattr(upload, "_file", HalfFull())
    with pytest.raises(StorageFull):
        await upload.write(200, data[200:400])
    full.close()
    monkeypatch.setattr(upload, "_file", upload_file)
    await upload.close()
    assert (await store.state(_named(data), ME)).committed_bytes == 200
    again = await store.start(_named(data), 500, ME)
    await again.write(200, data[200:])
    await again.finish()
    await again.close()


@in_loop
async def test_bytes_that_changed_on_the_disk_are_told(tmp_path: Path) -> None:
    store = _store(tmp_path)
    name = await _put(store, b"hello")
    (tmp_path / name[:2] / name).write_bytes(b"hellO")
    with pytest.raises(DataCorrupt):
        await _get(store, name)


@in_loop
async def test_uploads_abandoned_for_a_day_are_removed(tmp_path: Path) -> None:
    store = _store(tmp_path)
    upload = await store.start(_named(b"abc"), 3, ME)
    await upload.write(0, b"ab")
    await upload.close()
    old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
    os.utime(tmp_path / "partial" / partial_name(_named(b"abc"), ME.caller), (old, old))
    assert (await _store(tmp_path).state(_named(b"abc"), ME)).committed_bytes == 0
