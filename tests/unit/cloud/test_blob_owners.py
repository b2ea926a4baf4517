"""Whose a blob is, how much one caller may have, and what lies in the folder that should not."""

import os
import random
import sqlite3
from pathlib import Path

import pytest

from cloud.blobs.errors import HashMismatch, UploadOffsetWrong
from cloud.blobs.files import partial_name
from cloud.blobs.uploads import SYNC_BYTES, Upload
from podium.errors import DataCorrupt, InvalidRequest, LimitExceeded, NotFound
from tests.contract.bus.scenario import in_loop
from tests.unit.cloud.blob_world import ANN, BOB, READERS, BlobWorld, named, person


@in_loop
async def test_knowing_a_hash_is_no_right(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    sha256 = await world.put(b"hers", ANN)
    state = await world.store.state(sha256, BOB)
    assert (state.committed_bytes, state.complete) == (0, False)
    with pytest.raises(NotFound) as caught:
        await world.store.check_readable(sha256, BOB)
    with pytest.raises(NotFound) as missing:
        await world.store.check_readable(named(b"nobody's"), BOB)
    assert caught.value.message.replace(sha256, "") == missing.value.message.replace(named(b"nobody's"), "")
    for reader in [ANN, *READERS]:
        await world.store.check_readable(sha256, reader)


@in_loop
async def test_who_sends_the_bytes_becomes_an_owner_and_the_disk_holds_them_once(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(1).randbytes(300_000)
    sha256 = await world.put(data, ANN)
    upload = await world.store.start(sha256, len(data), BOB)
    assert not upload.complete  # as if nobody had stored it
    await upload.close()
    await world.put(data, BOB)
    assert await world.has(sha256, BOB)
    assert world.store.stored_bytes == len(data)
    assert (await world.store.total()).count == 1


@in_loop
async def test_two_callers_who_send_one_blob_do_not_notice_each_other(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(2).randbytes(1000)
    hers = await world.store.start(named(data), 1000, ANN)
    await hers.write(0, data[:600])
    his = await world.store.start(named(data), 1000, BOB)
    assert (await world.store.state(named(data), BOB)).committed_bytes == 0
    await his.write(0, b"x" * 1000)
    with pytest.raises(HashMismatch):
        await his.finish()
    await his.close()
    await hers.write(600, data[600:])
    await hers.finish()
    await hers.close()
    assert await world.has(named(data), ANN)


@in_loop
async def test_a_task_gives_its_caller_the_right_to_read(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    sha256 = await world.put(b"hers", ANN)
    await world.task(sha256, who=BOB)
    assert await world.has(sha256, BOB)


@in_loop
async def test_quotas_are_each_callers_own_and_are_named(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path, blob_bytes=10_000, unfinished_uploads=3)
    await world.put(b"a" * 6000)
    with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):
        await world.store.start("b" * 64, 4001, ANN)
    running = await world.store.start("b" * 64, 3000, ANN)
    with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):  # what is under way counts whole
        await world.store.start("c" * 64, 1001, ANN)
    await running.close()
    await world.put(b"a" * 6000)  # hers already
    await world.put(b"b" * 9000, BOB)
    uploads = [await world.store.start(f"{number:064x}", 1, ANN) for number in range(3)]
    with pytest.raises(LimitExceeded, match="caller_unfinished_uploads"):
        await world.store.start("d" * 64, 1, ANN)
    again = await world.store.start(f"{0:064x}", 1, ANN)  # one of the three, gone on with
    await (await world.store.start("d" * 64, 1, BOB)).close()
    for upload in [*uploads, again]:
        await upload.close()
    await (await world.store.start("d" * 64, 1, ANN)).close()


@in_loop
async def test_many_tiny_blobs_count_as_the_blocks_they_take(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path, blob_bytes=10 * 4096)
    for number in range(10):
        await world.put(bytes([number]))
    with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):
        await world.put(b"one more")


@in_loop
async def test_a_day_later_the_quota_is_whole_again_although_everything_is_still_there(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path, blob_bytes=10_000)
    sha256 = await world.put(b"a" * 9000)
    await world.task(sha256)
    world.clock.advance(hours=23)
    with pytest.raises(LimitExceeded, match="caller_daily_blob_bytes"):
        await world.put(b"b" * 9000)
    world.clock.advance(hours=1, seconds=1)
    await world.put(b"b" * 9000)
    assert await world.has(sha256)


@in_loop
async def test_ten_thousand_uploads_of_one_caller_stop_at_the_quota(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path, unfinished_uploads=100)
    refused = 0
    open_ones = []
    for number in range(10_000):
        try:
            open_ones.append(await world.store.start(f"{number:064x}", 10, ANN))
        except LimitExceeded:
            refused += 1
    assert refused == 9_900
    for upload in open_ones:
        await upload.close()
    assert os.listdir(tmp_path / "partial") == []


@in_loop
async def test_a_lie_about_the_size_hurts_only_the_liar(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(3).randbytes(1000)
    upload = await world.store.start(named(data), 40_000_000, ANN)
    await upload.write(0, data + b"more")
    await upload.close()
    upload = await world.store.start(named(data), 1000, ANN)
    with pytest.raises(UploadOffsetWrong):
        await upload.write(1004, b"")
    await upload.close()
    await world.put(data)
    with pytest.raises(InvalidRequest, match="1000 bytes, not 999"):
        await world.store.start(named(data), 999, ANN)


@pytest.mark.parametrize("offset", [0, 1, 499, 501, 1000, 2**63, 2**64 - 1, -1])
@in_loop
async def test_a_lying_offset_is_refused_and_changes_nothing(tmp_path: Path, offset: int) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(4).randbytes(1000)
    upload = await world.store.start(named(data), 1000, ANN)
    await upload.write(0, data[:500])
    with pytest.raises(UploadOffsetWrong):
        await upload.write(offset, data[:10])
    await upload.write(500, data[500:])
    await upload.finish()
    await upload.close()


def _die(upload: Upload) -> None:
    """As when the process is killed: nothing is written any more, the kernel closes the file."""
    assert upload._file is not None
    upload._file.close()


@in_loop
async def test_after_a_power_cut_only_what_was_pressed_to_disk_counts(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(5).randbytes(SYNC_BYTES + 900_000)
    upload = await world.store.start(named(data), len(data), ANN)
    for offset in range(0, len(data) - 300_000, 200_000):
        await upload.write(offset, data[offset : offset + 200_000])
    _die(upload)
    world.boot = "boot 2"
    world.restart()
    committed = (await world.store.state(named(data), ANN)).committed_bytes
    assert SYNC_BYTES <= committed < SYNC_BYTES + 200_000
    again = await world.store.start(named(data), len(data), ANN)
    await again.write(committed, data[committed:])
    await again.finish()
    await again.close()
    assert await world.has(named(data))


@in_loop
async def test_after_a_kill_all_that_was_written_counts(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(6).randbytes(500_000)
    upload = await world.store.start(named(data), len(data), ANN)
    await upload.write(0, data[:200_000])
    _die(upload)
    world.restart()
    assert (await world.store.state(named(data), ANN)).committed_bytes == 200_000


@in_loop
async def test_going_on_does_not_read_what_is_there_again(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    data = random.Random(7).randbytes(500_000)
    upload = await world.store.start(named(data), len(data), ANN)
    await upload.write(0, data[:400_000])
    await upload.close()
    partial = tmp_path / "partial" / partial_name(named(data), ANN.caller)
    descriptor = os.open(partial, os.O_WRONLY)
    os.write(descriptor, b"changed")  # unnoticed, because it is not read
    os.close(descriptor)
    again = await world.store.start(named(data), len(data), ANN)
    await again.write(400_000, data[400_000:])
    await again.finish()
    await again.close()
    with pytest.raises(DataCorrupt):
        _ = [piece async for piece in world.store.read(named(data))]
    await world.put(data, BOB)  # who sends it whole mends it
    assert b"".join([piece async for piece in world.store.read(named(data))]) == data


@pytest.mark.parametrize("planted", ["link", "pipe", "folder"])
@in_loop
async def test_what_is_planted_in_the_folder_is_not_followed(tmp_path: Path, planted: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    world = BlobWorld(tmp_path / "blobs")
    sha256 = await world.put(b"hello")
    whole = tmp_path / "blobs" / sha256[:2] / sha256
    partial = tmp_path / "blobs" / "partial" / partial_name(named(b"other"), ANN.caller)
    whole.unlink()
    for place in (whole, partial):
        if planted == "link":
            place.symlink_to(secret)
        elif planted == "pipe":
            os.mkfifo(place)
        else:
            place.mkdir()
    assert not await world.has(sha256)
    with pytest.raises(DataCorrupt) as read:
        _ = [piece async for piece in world.store.read(sha256)]
    with pytest.raises(DataCorrupt) as begun:
        await world.store.start(named(b"other"), 5, ANN)
    told = [read.value, begun.value]
    if planted == "folder":  # the others are replaced by what is sent anew
        with pytest.raises(DataCorrupt) as kept:
            await world.put(b"hello")
        world.clock.advance(hours=6)
        with pytest.raises(DataCorrupt) as removed:
            await world.collector.collect()
        told += [kept.value, removed.value]
    else:
        assert await world.put(b"hello") == sha256
        assert await world.has(sha256)
    for error in told:  # a caller need not know where the data directory lies
        assert str(tmp_path) not in f"{error.message} {error.next_step} {error.evidence}"
    world.restart()
    assert secret.read_bytes() == b"secret"


@in_loop
async def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path / "blobs")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "blobs" / named(b"hello")[:2]).symlink_to(outside)
    with pytest.raises(DataCorrupt, match="not a file of the blob store"):
        await world.put(b"hello")
    assert os.listdir(outside) == []


@pytest.mark.parametrize("harm", ["lost", "garbage", "cut", "empty"])
@in_loop
async def test_an_index_that_is_lost_loses_no_blob(tmp_path: Path, harm: str) -> None:
    world = BlobWorld(tmp_path)
    hashes = [await world.put(bytes([number]) * 1000, person(f"p{number}")) for number in range(60)]
    await world.task(hashes[0], who=person("p0"))
    world.store.close()
    index = tmp_path / "index.sqlite"
    content = index.read_bytes()
    for path in tmp_path.glob("index.sqlite*"):  # noqa: ASYNC240 - a test
        path.unlink()
    harmed = {"garbage": random.Random(8).randbytes(9000), "cut": content[: len(content) // 2], "empty": b""}
    if harm != "lost":
        index.write_bytes(harmed[harm])
    world.open()
    assert (await world.store.total()).count == 60
    assert await world.has(hashes[1], READERS[0])
    assert not await world.has(hashes[1], person("p1"))  # who stored it is not known any more
    kept = (await world.collector.collect()).kept
    assert kept.count == 60
    assert await world.has(hashes[0], person("p0"))  # the log still knows whose task refers to it
    world.clock.advance(hours=6)
    assert (await world.collector.collect()).removed.count == 59
    assert await world.has(hashes[0], person("p0"))


@in_loop
async def test_an_index_of_a_newer_podium_is_left_alone(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    world.store.close()
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataCorrupt, match="form 99"):
        world.open()
