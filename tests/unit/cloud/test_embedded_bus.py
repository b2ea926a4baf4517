"""What only the embedded engine promises: its file, its fsyncs, its failures."""

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cloud.bus.embedded import EmbeddedBus
from cloud.bus.schema import DatabaseCorrupt, EventLogTooNew
from conductor.bus import Durability
from podium.errors import InternalError, ServerUnavailable, StorageFull
from tests.contract.bus.scenario import LEASE, RUNNING, WAITING, Clock, accepted, in_loop, step


@in_loop
async def test_callers_that_wait_together_share_a_commit_and_an_fsync(tmp_path: Path) -> None:
    bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=Clock())
    await asyncio.gather(*(bus.accept(accepted()) for _ in range(200)))
    assert bus.commits.jobs == 200
    assert bus.commits.synced < 20
    assert bus.commits.written == 0
    await bus.close()


_FORM_1 = """
CREATE TABLE requests (number INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE, request_id TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL, device_id TEXT NOT NULL, create_us INTEGER NOT NULL) STRICT;
CREATE TABLE tasks (number INTEGER PRIMARY KEY REFERENCES requests, status INTEGER NOT NULL,
  priority INTEGER NOT NULL, update_us INTEGER NOT NULL, last_sequence INTEGER NOT NULL,
  lease_worker TEXT NOT NULL DEFAULT '', lease_until_us INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX tasks_runnable ON tasks (priority DESC, number) WHERE status IN (1, 2);
CREATE INDEX tasks_by_status ON tasks (status, number);
CREATE TABLE events (key INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE effects (key TEXT PRIMARY KEY, output BLOB NOT NULL) STRICT;
CREATE TABLE lease_clock (only INTEGER PRIMARY KEY CHECK (only = 0), now_us INTEGER NOT NULL) STRICT;
INSERT INTO lease_clock VALUES (0, 7);
INSERT INTO effects VALUES ('t1/v1s0', x'01');
INSERT INTO requests VALUES (1, 't1', 'r1', 'asked', '', 5), (2, 't2', 'r2', 'seen', 'pi', 6);
INSERT INTO tasks VALUES (1, 6, 2, 9, 2, 'gone', 99), (2, 1, 3, 8, 1, '', 0);
PRAGMA user_version = 1;
"""


@in_loop
async def test_a_log_from_before_callers_had_names_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript(_FORM_1)
        for number, task_id in ((1, "t1"), (2, "t2")):
            event = accepted(task_id=task_id)
            event.header.sequence = 1
            old.execute("INSERT INTO events VALUES (?, ?)", ((number << 24) + 1, event.SerializeToString()))
        old.execute("INSERT INTO events VALUES (?, ?)", ((1 << 24) + 2, step("t1").SerializeToString()))
        old.commit()
    for _ in range(2):  # what was brought into the new form is opened like any other
        bus = await EmbeddedBus.open(path, clock=Clock(), alone=True)
        assert [row.caller for row in await bus.rows(limit=9)] == ["device/pi", "anonymous"]
        assert await bus.find_request("device/pi", "r2") == "t2"
        assert len(await bus.read("t1")) == 2
        assert await bus.effect("t1/v1s0") == b"\1"
        await bus.close()
    bus = await EmbeddedBus.open(path, clock=Clock(), alone=True)
    lease = await bus.lease("w", duration=LEASE)
    assert lease is not None
    assert lease.task_id == "t2"
    await bus.close()


@in_loop
async def test_only_what_must_be_is_synced(tmp_path: Path) -> None:
    bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=Clock())
    levels: list[int] = []

    async def level(*, synced: bool) -> None:
        # `synchronous` may not change inside a transaction, so it reads here as it will be at the commit.
        run = lambda connection: levels.append(connection.execute("PRAGMA synchronous").fetchone()[0])  # noqa: E731
        await bus._writer.submit(run, synced=synced)

    for synced in (False, True, True, False, True, False):
        await level(synced=synced)
    assert levels == [1, 2, 2, 1, 2, 1]

    before = bus.commits
    task_id = (await bus.accept(accepted())).task_id
    await bus.append(task_id, [step(task_id)], expected_sequence=1, status=RUNNING)
    await bus.append(task_id, [step(task_id)], expected_sequence=2, status=RUNNING, durability=Durability.SYNCED)
    await bus.record_effect("key", b"output")
    assert bus.commits.synced - before.synced == 3
    assert bus.commits.written - before.written == 1
    await bus.close()


@in_loop
async def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    bus = await EmbeddedBus.open(path, clock=Clock(), max_pages=40)
    kept: list[str] = []

    async def fill() -> None:
        while True:
            kept.append((await bus.accept(accepted("x" * 3000))).task_id)

    with pytest.raises(StorageFull):
        await fill()
    assert len(kept) > 3
    outcomes = await asyncio.gather(*(bus.accept(accepted("y" * 9000)) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(outcome, StorageFull) for outcome in outcomes)
    small = await bus.accept(accepted("z", request_id="small"))  # what still fits is still taken
    await bus.close()

    bus = await EmbeddedBus.open(path, clock=Clock())
    rows = await bus.rows(limit=100)
    assert [row.task_id for row in rows] == [small.task_id, *kept[::-1]]
    assert not (await bus.accept(accepted("y" * 9000))).duplicate
    await bus.close()


@in_loop
async def test_one_callers_failure_is_not_its_neighbours(tmp_path: Path) -> None:
    bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=Clock(), max_pages=40)

    def defect(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO effects VALUES ('half done', x'00')")
        raise ZeroDivisionError

    outcomes = await asyncio.gather(
        bus.accept(accepted("small")),
        bus.accept(accepted("x" * 200_000)),
        bus._writer.submit(defect),
        bus.accept(accepted("small too")),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], StorageFull)
    assert isinstance(outcomes[2], InternalError)
    assert [row.text for row in await bus.rows(limit=9)] == ["small too", "small"]
    assert await bus.effect("half done") is None
    await bus.close()


@in_loop
async def test_a_file_that_is_not_a_log_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    path.write_bytes(b"this is not a database at all " * 500)
    with pytest.raises(DatabaseCorrupt) as caught:
        await EmbeddedBus.open(path, clock=Clock())
    assert "backup" in caught.value.next_step
    assert path.read_bytes().startswith(b"this is not")


@in_loop
async def test_a_damaged_page_is_told_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    bus = await EmbeddedBus.open(path, clock=Clock())
    ids = [(await bus.accept(accepted("x" * 3000))).task_id for _ in range(30)]
    await bus.close()
    with path.open("r+b") as file:
        for page in range(8, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(200))
    bus = await EmbeddedBus.open(path, clock=Clock())
    with pytest.raises(DatabaseCorrupt):
        await asyncio.gather(*map(bus.read, ids))
    await bus.close()


@in_loop
async def test_a_log_of_a_newer_podium_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(EventLogTooNew):
        await EmbeddedBus.open(path, clock=Clock())


@in_loop
async def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(InternalError):
        await EmbeddedBus.open(tmp_path / "nowhere" / "events.sqlite", clock=Clock())


@in_loop
async def test_leases_of_a_dead_process_are_dropped_by_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    first = await EmbeddedBus.open(path, clock=Clock())
    await first.accept(accepted())
    assert await first.lease("dead", duration=LEASE) is not None
    await first.close()
    careful = await EmbeddedBus.open(path, clock=Clock())
    assert await careful.lease("new", duration=LEASE) is None
    await careful.close()
    alone = await EmbeddedBus.open(path, clock=Clock(), alone=True)
    assert await alone.lease("new", duration=LEASE) is not None
    await alone.close()


@in_loop
async def test_the_lease_of_a_task_that_was_parked_when_its_process_died_is_dropped_too(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    first = await EmbeddedBus.open(path, clock=Clock())
    task_id = (await first.accept(accepted())).task_id
    assert await first.lease("dead", duration=LEASE) is not None
    await first.append(task_id, [step(task_id)], expected_sequence=1, status=WAITING)
    await first.close()
    alone = await EmbeddedBus.open(path, clock=Clock(), alone=True)
    await alone.append(task_id, [step(task_id)], expected_sequence=2, status=RUNNING)
    assert await alone.lease("new", duration=LEASE) is not None
    await alone.close()


@in_loop
async def test_lease_time_does_not_go_back_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    clock = Clock()
    first = await EmbeddedBus.open(path, clock=clock)
    await first.accept(accepted())
    assert await first.lease("dead", duration=LEASE) is not None
    await first.close()
    clock.advance(days=-20_000)  # a board without a battery starts in 1972
    second = await EmbeddedBus.open(path, clock=clock)
    assert await second.lease("new", duration=LEASE) is None
    clock.advance(seconds=31)
    assert await second.lease("new", duration=LEASE) is not None
    await second.close()


@in_loop
async def test_what_another_process_writes_wakes_watchers_and_workers(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    ours = await EmbeddedBus.open(path, clock=Clock())
    theirs = await EmbeddedBus.open(path, clock=Clock())  # a connection of its own is all that SQLite sees
    task_id = (await ours.accept(accepted())).task_id
    events = ours.watch(task_id, after_sequence=1)
    coming = asyncio.ensure_future(anext(events))
    await theirs.append(task_id, [step(task_id, "other")], expected_sequence=1, status=RUNNING)
    assert (await coming).step_started.agent == "other"
    await ours.close()
    await theirs.close()


@in_loop
async def test_closing_ends_watchers_and_later_calls_with_unavailable(tmp_path: Path) -> None:
    bus = await EmbeddedBus.open(tmp_path / "events.sqlite", clock=Clock())
    task_id = (await bus.accept(accepted())).task_id
    coming = asyncio.ensure_future(anext(bus.watch(task_id, after_sequence=1)))
    writing = [asyncio.ensure_future(bus.accept(accepted())) for _ in range(20)]
    await asyncio.sleep(0)  # let them reach the queue
    await bus.close()
    assert len({(await outcome).task_id for outcome in writing}) == 20
    with pytest.raises(ServerUnavailable):
        await coming
    with pytest.raises(ServerUnavailable):
        await bus.accept(accepted())
    with pytest.raises(ServerUnavailable):
        await bus.read(task_id)
    await bus.close()


_WRITES_UNTIL_KILLED = textwrap.dedent("""
    import asyncio, sys
    from datetime import UTC, datetime
    from pathlib import Path
    from cloud.bus.embedded import EmbeddedBus
    from tests.contract.bus.scenario import RUNNING, accepted, step

    async def main():
        bus = await EmbeddedBus.open(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
        async def one():
            while True:
                task_id = (await bus.accept(accepted())).task_id
                print(task_id, 1, flush=True)
                last = 1
                while last < 20:
                    last = await bus.append(task_id, [step(task_id)] * 2, expected_sequence=last, status=RUNNING)
                    print(task_id, last, flush=True)
        await asyncio.gather(*(one() for _ in range(4)))

    asyncio.run(main())
""")


def test_everything_told_to_a_caller_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    told: dict[str, int] = {}
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITES_UNTIL_KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(5, 400)):
            task_id, last = process.stdout.readline().split()
            told[task_id] = int(last)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split("\n")[:-1]  # the last line may be torn
        told.update((line.split()[0], int(line.split()[1])) for line in rest if line)

    @in_loop
    async def check() -> None:
        bus = await EmbeddedBus.open(path, clock=Clock())
        for task_id, last in told.items():
            sequences = [event.header.sequence for event in await bus.read(task_id)]
            assert sequences == list(range(1, len(sequences) + 1))
            assert len(sequences) >= last
            assert len(sequences) % 2 == 1  # appends of two are whole or absent
        await bus.close()

    assert told
    check()
