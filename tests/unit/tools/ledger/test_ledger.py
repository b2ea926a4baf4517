import hashlib
import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.errors import InvalidRequest, LimitExceeded, NotFound
from tests.fakes.clock import FakeClock
from tests.fakes.ledgers import open_ledger, segment_files
from tools.ledger.errors import LedgerInUse, LedgerStopped
from tools.ledger.group_commit import GroupCommit
from tools.ledger.ledger import INDEX_FILE, Item
from tools.ledger.reading import entries, head_of, verify
from tools.ledger.record import GENESIS, MAX_BODY_BYTES, Head


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    clock = FakeClock(datetime(2026, 11, 29, 12, tzinfo=UTC))
    with open_ledger(tmp_path, clock=clock) as ledger:
        first = ledger.append({"b": 1, "a": "ü\n\u2028"}, key='t/"0"\\')
        clock.advance(seconds=1.5)
        ledger.append({})
    found = list(entries(tmp_path))
    assert [(entry.sequence, entry.kind, entry.key, entry.body) for entry in found] == [
        (1, "entry", 't/"0"\\', {"a": "ü\n\u2028", "b": 1}),
        (2, "entry", "", {}),
    ]
    assert found[0].hash == first.hash
    assert [entry.time for entry in found] == [
        datetime(2026, 11, 29, 12, tzinfo=UTC),
        datetime(2026, 11, 29, 12, 0, 1, 500_000, tzinfo=UTC),
    ]
    assert [entry.sequence for entry in entries(tmp_path, after=1)] == [2]


def test_the_documented_form_can_be_checked_with_nothing_but_sha256(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append({"z": 1, "a": [True, None]})
        ledger.append({"n": 2})
    previous = GENESIS
    for line in segment_files(tmp_path)[0].read_bytes().splitlines():
        header, _, rest = line.partition(b',"hash":"')
        parts = json.loads(line)
        assert parts["hash"] == hashlib.sha256(header).hexdigest()
        assert rest.startswith(parts["hash"].encode())
        assert parts["previous"] == previous
        body = line.partition(b',"body":')[2][:-1]
        assert parts["commitment"] == hashlib.sha256(parts["salt"].encode() + body).hexdigest()
        previous = parts["hash"]
    assert head_of(tmp_path) == Head(sequence=2, hash=previous)


def test_a_key_is_recorded_once_also_after_reopening_and_without_its_index(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        first = ledger.append({"n": 1}, key="k")
        assert not first.duplicate
        again = ledger.append({"n": 2}, key="k")
        assert (again.sequence, again.hash, again.duplicate) == (1, first.hash, True)
        assert not ledger.append({"n": 2}).duplicate
        assert not ledger.append({"n": 2}).duplicate
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({"n": 3}, key="k") == again
    (tmp_path / INDEX_FILE).unlink()
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({"n": 4}, key="k") == again
    (tmp_path / INDEX_FILE).write_bytes(b"nonsense " * 1000)
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({"n": 5}, key="k") == again
        assert ledger.head.sequence == 3


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM through", "INSERT INTO unfinished VALUES (-1)", "INSERT INTO unfinished VALUES (99)"],
)
def test_a_key_index_that_makes_no_sense_is_made_anew(tmp_path: Path, change: str) -> None:
    with open_ledger(tmp_path) as ledger:
        first = ledger.append({}, key="k")
    with sqlite3.connect(tmp_path / INDEX_FILE) as rows:
        rows.execute(change)
    rows.close()
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({}, key="k") == replace(first, duplicate=True)


def test_a_key_index_that_is_behind_catches_up(tmp_path: Path) -> None:
    with open_ledger(tmp_path, segment_bytes=2000) as ledger:
        ledger.append({}, key="early")
    old = (tmp_path / INDEX_FILE).read_bytes()
    with open_ledger(tmp_path, segment_bytes=2000) as ledger:
        for number in range(40):
            ledger.append({}, key=f"late {number}")
    (tmp_path / INDEX_FILE).write_bytes(old)
    assert len(segment_files(tmp_path)) > 5
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({}, key="early").sequence == 1
        assert [ledger.append({}, key=f"late {number}").sequence for number in range(40)] == list(range(2, 42))
        assert ledger.head.sequence == 41


def test_keys_are_found_when_they_are_no_longer_in_memory(tmp_path: Path) -> None:
    items = [Item(body={}, key=str(number)) for number in range(10_000)]
    with open_ledger(tmp_path) as ledger:
        assert [receipt.sequence for receipt in ledger.append_many(items)] == list(range(1, 10_001))
        again = ledger.append_many([*reversed(items), Item(body={}, key="new"), Item(body={}, key="new")])
    assert [receipt.sequence for receipt in again] == [*range(10_000, 0, -1), 10_001, 10_001]
    assert [receipt.duplicate for receipt in again] == [True] * 10_000 + [False, True]
    assert verify(tmp_path).head.sequence == 10_001


def test_threads_share_writes_and_lose_nothing(tmp_path: Path) -> None:
    with open_ledger(tmp_path, segment_bytes=20_000) as ledger:
        with ThreadPoolExecutor(16) as pool:
            receipts = list(pool.map(lambda n: ledger.append({"n": n % 200}, key=str(n % 200)), range(1000)))
        assert ledger.head.sequence == 200
    assert sum(not receipt.duplicate for receipt in receipts) == 200
    for number, receipt in enumerate(receipts):
        assert receipt.sequence == receipts[number % 200].sequence
    assert verify(tmp_path).damage is None
    by_sequence = {entry.sequence: entry for entry in entries(tmp_path)}
    assert all(by_sequence[receipt.sequence].body == {"n": n % 200} for n, receipt in enumerate(receipts))


def test_those_who_wait_while_a_write_is_on_its_way_share_the_next() -> None:
    groups: list[list[int]] = []
    writing, go_on = threading.Event(), threading.Event()

    def commit(jobs: list[int]) -> None:
        groups.append(jobs)
        writing.set()
        assert go_on.wait(10)

    queue = GroupCommit(commit)
    threads = [threading.Thread(target=queue.run, args=(number,)) for number in range(9)]
    threads[0].start()
    assert writing.wait(10)
    for number, thread in enumerate(threads[1:], 1):
        thread.start()
        while len(queue._waiting) < number:
            threading.Event().wait(0.001)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert groups == [[0], list(range(1, 9))]


def test_a_thread_that_is_interrupted_while_it_waits_stops_nobody() -> None:
    queue: GroupCommit[int] = GroupCommit(lambda jobs: None)
    queue.run(1)
    queue._leading = True  # somebody writes
    waiters = []

    def waits() -> None:
        queue.run(2)
        waiters.append(2)

    thread = threading.Thread(target=waits)
    thread.start()
    while len(queue._waiting) < 1:
        threading.Event().wait(0.001)
    interrupted = queue._waiting[0]
    queue._waiting.insert(0, type(interrupted)(3))
    with queue._mutex:
        queue._pass_on()
    queue._leave(queue._waiting[0])
    thread.join(10)
    assert waiters == [2]
    assert not queue._leading


def test_files_begin_anew_at_a_size_and_are_named_after_their_first_entry(tmp_path: Path) -> None:
    with open_ledger(tmp_path, segment_bytes=3000) as ledger:
        for number in range(30):
            ledger.append({"number": number})
    files = segment_files(tmp_path)
    assert len(files) > 3
    for path in files:
        assert path.stat().st_size <= 3000
        assert int(path.stem) == json.loads(path.read_bytes().splitlines()[0])["sequence"]
    assert [entry.body for entry in entries(tmp_path, after=20)] == [{"number": n} for n in range(20, 30)]
    assert head_of(tmp_path).sequence == 30


def test_one_process_writes_and_any_number_reads(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append({"n": 1})
        with pytest.raises(LedgerInUse, match="another process"):
            open_ledger(tmp_path)
        assert [entry.body for entry in entries(tmp_path)] == [{"n": 1}]
        assert verify(tmp_path).head == ledger.head
    open_ledger(tmp_path).close()


def test_reading_while_it_is_written_never_sees_damage(tmp_path: Path) -> None:
    done = threading.Event()
    seen: list[int] = []
    faults: list[object] = []

    def read() -> None:
        while not done.is_set():
            found = verify(tmp_path)
            seen.append(found.head.sequence)
            faults.append(found.damage)

    # Long entries: a reader meets them half written.
    with open_ledger(tmp_path, segment_bytes=4 << 20) as ledger:
        reader = threading.Thread(target=read)
        reader.start()
        for number in range(60):
            ledger.append_many([Item(body={"text": "x" * 200_000, "number": number})] * 3)
            if number % 20 == 19:
                ledger.redact(number, reason="test", by="test")
        done.set()
        reader.join(30)
    assert set(faults) == {None}
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_what_cannot_be_stored_is_refused_by_its_field(tmp_path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"d": deep}
    with open_ledger(tmp_path) as ledger:
        for body in ({"x": float("nan")}, {"x": "\ud800"}, {"x": {1, 2}}, {"x": b"bytes"}, [1], deep):
            with pytest.raises(InvalidRequest) as refused:
                ledger.append(body)  # type: ignore[arg-type]
            assert refused.value.field == "body"
        for key in ("a\nb", "\x00", "\ud800"):
            with pytest.raises(InvalidRequest) as refused:
                ledger.append({}, key=key)
            assert refused.value.field == "key"
        with pytest.raises(LimitExceeded):
            ledger.append({"x": "x" * MAX_BODY_BYTES})
        with pytest.raises(LimitExceeded):
            ledger.append({}, key="k" * 513)
        assert ledger.head.sequence == 0
        receipts = [ledger.append({"x": "x" * (MAX_BODY_BYTES - 8)}, key="\\" * 512) for _ in range(2)]
        assert [receipt.duplicate for receipt in receipts] == [False, True]
    assert next(entries(tmp_path)).key == "\\" * 512
    assert verify(tmp_path).damage is None
    while deep:  # deep nesting cannot be freed at once
        deep = deep["d"]  # type: ignore[assignment]


def test_a_closed_ledger_takes_nothing(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerStopped, match="closed"):
        ledger.append({})
    with pytest.raises(LedgerStopped, match="closed"):
        ledger.redact(1, reason="r", by="b")


def test_where_there_is_no_ledger_reading_says_so_and_makes_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        for read in (verify, head_of, lambda path: list(entries(path))):
            with pytest.raises(NotFound, match="no ledger"):
                read(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_head_is_read_as_it_is_written() -> None:
    head = Head(sequence=3, hash="ab" * 32)
    assert Head.parse(str(head)) == head
    for text in ("", "3", "3:xyz", f"-1:{'ab' * 32}", f"3:{'AB' * 32}"):
        with pytest.raises(InvalidRequest) as refused:
            Head.parse(text)
        assert refused.value.field == "head"
