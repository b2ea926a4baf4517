"""What may go and what stays, also when two things happen at once or the process dies between them."""

import asyncio
import random
from datetime import timedelta
from pathlib import Path

import pytest

from cloud.blobs.garbage import holder_of
from podium.errors import NotFound
from tests.contract.bus.scenario import in_loop
from tests.unit.cloud.blob_world import BOB, READERS, BlobWorld, named


@in_loop
async def test_what_a_task_refers_to_stays_and_the_rest_goes_after_a_time_of_grace(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    used, unused = await world.put(b"used"), await world.put(b"not used")
    await world.task(used)
    assert (await world.collector.collect()).removed.count == 0
    world.clock.advance(hours=6)
    planned = await world.collector.collect(dry_run=True)
    assert (planned.removed.count, planned.removed.total_bytes, planned.kept.count) == (1, 8, 1)
    assert (tmp_path / unused[:2] / unused).exists()
    done = await world.collector.collect()
    assert (done.removed, done.kept) == (planned.removed, planned.kept)
    assert not (tmp_path / unused[:2] / unused).exists()
    assert not await world.has(unused)
    assert await world.has(used)
    assert world.store.stored_bytes == 4
    world.restart()
    assert world.store.stored_bytes == 4
    await world.put(b"not used")
    assert await world.has(unused)


@in_loop
async def test_asking_for_a_blob_gives_it_time_again(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    sha256 = await world.put(b"data")
    world.clock.advance(hours=4)
    assert await world.has(sha256)
    world.clock.advance(hours=4)
    assert not (await world.collector.collect()).removed.count
    world.clock.advance(hours=6)
    assert await world.store.state(sha256, BOB)  # no right to it, so no time
    assert (await world.collector.collect()).removed.count == 1


@in_loop
async def test_quotas_are_free_again_when_what_was_stored_is_gone(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path, blob_bytes=1000)
    await world.put(b"a" * 900)
    world.clock.advance(hours=6)
    await world.collector.collect()
    await world.put(b"b" * 900)


@in_loop
async def test_a_reference_whose_task_never_came_goes_and_one_whose_task_did_stays(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    lost, kept = await world.put(b"lost"), await world.put(b"kept")
    await world.store.hold(holder_of("never accepted"), [lost], caller="ann")
    await world.task(kept, settled=False)  # the server died right after it had accepted
    world.restart()
    world.clock.advance(hours=6)
    done = await world.collector.collect()
    assert (done.removed.count, done.kept.count) == (1, 1)
    assert await world.has(kept)
    assert await world.store.pending(timedelta(0)) == []


@in_loop
async def test_a_task_on_its_way_in_keeps_its_blobs(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    sha256 = await world.put(b"data")
    world.clock.advance(hours=6)
    await world.store.hold(holder_of("soon"), [sha256], caller="ann")
    assert (await world.collector.collect()).removed.count == 0


@in_loop
async def test_a_clock_that_jumps_ahead_takes_no_blob_from_a_task_on_its_way_in(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    sha256 = await world.put(b"data")
    await world.store.hold(holder_of("soon"), [sha256], caller="ann")
    world.clock.advance(hours=24 * 400)
    assert (await world.collector.collect()).removed.count == 0
    world.monotonic_s += 3600  # accepting it takes its time: a disk that hangs
    assert (await world.collector.collect()).removed.count == 0
    world.store.leave(holder_of("soon"))
    world.clock.advance(hours=24 * 400)
    world.monotonic_s += 599
    assert (await world.collector.collect()).removed.count == 0
    world.monotonic_s += 2  # there is no such task, and there will be none
    assert (await world.collector.collect()).removed.count == 1


@in_loop
async def test_holding_what_is_gone_is_refused_and_holds_nothing(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    there = await world.put(b"there")
    with pytest.raises(NotFound):
        await world.store.hold(holder_of("x"), [there, named(b"gone")], caller="ann")
    world.clock.advance(hours=6)
    assert (await world.collector.collect()).removed.count == 1


@in_loop
async def test_a_file_without_a_row_is_taken_in_and_a_row_without_a_file_goes(tmp_path: Path) -> None:
    world = BlobWorld(tmp_path)
    first, second = await world.put(b"first"), await world.put(b"second")
    await world.task(first)
    world.store.close()
    orphan = named(b"orphan")
    (tmp_path / orphan[:2]).mkdir(exist_ok=True)
    (tmp_path / orphan[:2] / orphan).write_bytes(b"orphan")
    (tmp_path / first[:2] / first).unlink()
    world.open()
    assert (await world.store.total()).count == 2
    assert not await world.has(first)
    assert await world.has(orphan, READERS[0])
    await world.put(b"first")  # mended by whoever has it
    world.clock.advance(hours=6)
    assert (await world.collector.collect()).removed.count == 2
    assert await world.has(first)
    assert not await world.has(second)


@in_loop
async def test_directories_from_before_there_was_an_index_keep_what_their_tasks_have(tmp_path: Path) -> None:
    data = [b"of a task", b"of nobody"]
    for one in data:
        folder = tmp_path / named(one)[:2]
        folder.mkdir()
        (folder / named(one)).write_bytes(one)
    world = BlobWorld(tmp_path)
    for number in range(3):
        await world.task(*([named(data[0])] if number == 1 else []), who=BOB, held=False)
    world.restart()  # once more, before it was recovered
    world.clock.advance(hours=9)
    assert (await world.collector.collect()).removed.count == 1
    assert await world.has(named(data[0]), BOB)
    world.clock.advance(hours=9)
    assert (await world.collector.collect()).kept.count == 1


@in_loop
async def test_whatever_happens_at_once_no_accepted_task_lacks_its_blob(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    chance = random.Random(seed)
    world = BlobWorld(tmp_path)
    contents = [chance.randbytes(2000) for _ in range(12)]
    held: set[str] = set()

    async def submit(content: bytes) -> None:
        sha256 = await world.put(content)
        await asyncio.sleep(chance.random() / 50)
        try:
            await world.task(sha256)
        except NotFound:
            return
        held.add(sha256)

    async def collect() -> None:
        world.clock.advance(hours=chance.choice((0, 1, 6)))
        await world.collector.collect()

    for _ in range(30):
        work = [submit(content) for content in chance.sample(contents, 4)] + [collect() for _ in range(2)]
        chance.shuffle(work)
        await asyncio.gather(*work)
        if chance.random() < 0.2:
            world.restart()
    assert held
    for sha256 in held:
        assert named(b"".join([piece async for piece in world.store.read(sha256)])) == sha256
    world.clock.advance(hours=6)
    await world.collector.collect()
    assert dict(world.store._files.blobs()).keys() == held
