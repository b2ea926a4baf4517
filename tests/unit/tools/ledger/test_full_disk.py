import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podium.errors import InternalError, PodiumError, StorageFull
from tests.fakes.ledgers import no_file_beyond, open_ledger, segment_files
from tools.ledger.errors import LedgerStopped
from tools.ledger.ledger import Item
from tools.ledger.reading import entries, verify
from tools.ledger.segment_file import sync_data


class Disk:
    """A disk whose sync fails when told to."""

    def __init__(self) -> None:
        self.fails: int | None = None

    def __call__(self, descriptor: int) -> None:
        if self.fails is not None:
            raise OSError(self.fails, os.strerror(self.fails))
        sync_data(descriptor)


def test_a_full_disk_refuses_and_leaves_nothing_and_later_it_goes_on(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        first = ledger.append({"n": 1}, key="first")
        path = segment_files(tmp_path)[0]
        size = path.stat().st_size
        with no_file_beyond(size + 200):
            for _ in range(3):
                with pytest.raises(StorageFull, match="nothing of this call was written"):
                    ledger.append({"n": 2, "text": "x" * 10_000}, key="second")
                assert path.stat().st_size == size
                assert ledger.head.hash == first.hash
            with pytest.raises(StorageFull):
                ledger.append_many([Item(body={"n": number}) for number in range(100)])
            assert ledger.append({"n": 1}, key="first").duplicate
            assert verify(tmp_path).torn is None
        second = ledger.append({"n": 2}, key="second")
        assert (second.sequence, second.duplicate) == (2, False)
    assert [entry.body for entry in entries(tmp_path)] == [{"n": 1}, {"n": 2}]
    assert verify(tmp_path).damage is None


def test_threads_that_share_a_write_are_all_told(tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger:
        ledger.append({})

        def append(number: int) -> bool:
            try:
                ledger.append({"text": "x" * 2000}, key=str(number))
            except StorageFull:
                return False
            return True

        with no_file_beyond(60_000), ThreadPoolExecutor(8) as pool:
            kept = list(pool.map(append, range(100)))
        assert not all(kept)
        assert any(kept)
        found = {entry.key for entry in entries(tmp_path)} - {""}
        assert found == {str(number) for number, is_kept in enumerate(kept) if is_kept}
        assert all(map(append, range(100)))
    assert verify(tmp_path).head.sequence == 101


def test_no_room_for_a_new_file_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    with open_ledger(tmp_path, segment_bytes=900) as ledger:
        ledger.append({})
        ledger.append({})
        (tmp_path / "000000000000000003.jsonl").mkdir()
        with pytest.raises(InternalError):
            ledger.append({"text": "x" * 500})
        (tmp_path / "000000000000000003.jsonl").rmdir()
    with open_ledger(tmp_path, segment_bytes=900) as ledger:
        assert ledger.append({"text": "x" * 500}).sequence == 3
    assert verify(tmp_path).damage is None


def test_after_a_sync_that_failed_nothing_more_is_taken_until_it_is_opened_again(tmp_path: Path) -> None:
    disk = Disk()
    with open_ledger(tmp_path, sync=disk) as ledger:
        ledger.append({"n": 1})
        disk.fails = errno.EIO
        with pytest.raises(PodiumError):
            ledger.append({"n": 2})
        disk.fails = None
        with pytest.raises(LedgerStopped, match="Input/output error") as refused:
            ledger.append({"n": 3})
        assert "start the program again" in refused.value.next_step
        with pytest.raises(LedgerStopped, match="Input/output error"):
            ledger.redact(1, reason="r", by="b")
    with open_ledger(tmp_path) as ledger:
        assert ledger.append({"n": 4}).sequence == 2
    assert [entry.body for entry in entries(tmp_path)] == [{"n": 1}, {"n": 4}]


def test_a_quota_that_shows_only_in_the_sync_is_a_full_disk(tmp_path: Path) -> None:
    disk = Disk()
    with open_ledger(tmp_path, sync=disk) as ledger:
        ledger.append({"n": 1})
        disk.fails = errno.ENOSPC
        for _ in range(2):
            with pytest.raises(StorageFull):
                ledger.append({"n": 2})
        disk.fails = None
        assert ledger.append({"n": 3}).sequence == 2
    assert [entry.body for entry in entries(tmp_path)] == [{"n": 1}, {"n": 3}]
    assert verify(tmp_path).torn is None


def test_an_interrupt_in_the_middle_of_a_write_stops_the_ledger(tmp_path: Path) -> None:
    class Interrupted(Disk):
        def __call__(self, descriptor: int) -> None:
            if self.fails:
                raise KeyboardInterrupt
            super().__call__(descriptor)

    disk = Interrupted()
    ledger = open_ledger(tmp_path, sync=disk)
    ledger.append({"n": 1})
    disk.fails = 1
    with pytest.raises(KeyboardInterrupt):
        ledger.append({"n": 2})
    disk.fails = None
    with pytest.raises(LedgerStopped, match="interrupted"):
        ledger.append({"n": 3})
    ledger.close()
    with open_ledger(tmp_path) as ledger:
        # Whole lines that nobody was told of are kept: they are in the file.
        assert ledger.head.sequence == 2
        assert ledger.append({"n": 4}).sequence == 3


def test_no_room_to_redact_says_that_it_is_not_done_and_the_next_call_does_it(tmp_path: Path) -> None:
    with open_ledger(tmp_path, segment_bytes=50_000) as ledger:
        for number in range(30):
            ledger.append({"secret": f"patient {number}", "text": "x" * 2000})
        # Room for the entry that records it, not for the copy of the first file.
        with no_file_beyond(40_000), pytest.raises(StorageFull, match="the body still there") as refused:
            ledger.redact(1, reason="r", by="b")
        assert "repeat the call" in refused.value.next_step
        assert verify(tmp_path).unfinished == (1,)
        assert list(tmp_path.glob("*.new")) == []
        receipt = ledger.redact(1, reason="r", by="b")
        assert receipt.duplicate
        assert verify(tmp_path).unfinished == ()
        assert ledger.append({}).sequence == 32
    assert not any(b"patient 0" in path.read_bytes() for path in tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InternalError, match="cannot be written"):
        open_ledger(tmp_path / "file" / "ledger")
