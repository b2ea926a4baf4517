"""`kill -9` of a process that writes to a ledger: no acknowledged entry is lost and the chain stays whole."""

import os
import random
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e import ledger_writer
from tools.ledger.ledger import Item, Ledger
from tools.ledger.reading import entries, verify

KILLS = 50


class _Writer:
    """The process that is killed again and again, and what it has acknowledged so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.entries: dict[int, tuple[str, str]] = {}
        """Hash and key by sequence."""
        self.redactions: dict[int, int] = {}
        self.asked: set[int] = set()
        self.killed_before_open = 0
        self._process = subprocess.Popen(
            [sys.executable, ledger_writer.__file__, str(folder), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    def run_and_kill(self, turn: int, delay_s: float) -> None:
        """Have it write for a while, kill it, and note what it said before it died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{turn}\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline().removeprefix("pid "))
        killer = threading.Timer(delay_s, os.kill, (pid, signal.SIGKILL))
        killer.start()
        said = []
        while not (line := self._process.stdout.readline()).startswith("dead"):
            assert line, "the writer ended"
            said.append(line.split())
        killer.join()
        assert line.split() == ["dead", str(pid), "-9"]
        self.killed_before_open += not any(what == "open" for what, *_ in said)
        for what, *words in said:
            if what == "entry":
                self.entries[int(words[0])] = (words[1], words[2])
            elif what == "redacted":
                self.redactions[int(words[0])] = int(words[1])
            elif what == "redacting":
                self.asked.add(int(words[0]))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@pytest.mark.slow
def test_a_writer_that_is_killed_50_times_loses_no_acknowledged_entry(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    folder = tmp_path / "ledger"
    writer = _Writer(folder, seed)
    unfinished = 0
    try:
        for turn in range(KILLS):
            # From before it has opened the ledger to long after.
            writer.run_and_kill(turn, chance.uniform(0, 0.02 if chance.random() < 0.2 else 0.3))
            if folder.is_dir() and any(folder.glob("*.jsonl")):
                found = verify(folder)
                assert found.damage is None
                assert found.head.sequence >= max(writer.entries, default=0)
                unfinished += bool(found.unfinished)
    finally:
        writer.close()
    _check_keys(folder, writer)
    found = verify(folder)
    assert (found.damage, found.unfinished, found.torn) == (None, (), None)
    _check_content(folder, writer)
    told = f"{len(writer.entries)} entries, {len(writer.redactions)} redactions; killed before it was open"
    print(f"{told} {writer.killed_before_open}, with a redaction half done {unfinished}")  # noqa: T201 - as above
    assert len(writer.entries) > 500
    assert len(writer.redactions) > 10


def _check_keys(folder: Path, writer: _Writer) -> None:
    """The keys still lead to the receipts that were given."""
    with Ledger(folder, clock=lambda: datetime.now(UTC)) as ledger:
        receipts = ledger.append_many([Item(body={}, key=key) for _, key in writer.entries.values()])
    assert [(one.sequence, one.hash, one.duplicate) for one in receipts] == [
        (sequence, digest, True) for sequence, (digest, _) in writer.entries.items()
    ]


def _check_content(folder: Path, writer: _Writer) -> None:
    by_sequence = {entry.sequence: entry for entry in entries(folder)}
    for sequence, (digest, key) in writer.entries.items():
        entry = by_sequence[sequence]
        assert (entry.hash, entry.key) == (digest, key)
        if entry.body is None:
            assert sequence in writer.asked
        else:
            assert entry.body["for"] == key
    for sequence, record in writer.redactions.items():
        assert by_sequence[sequence].body is None
        assert by_sequence[record].body == {"sequence": sequence, "reason": "test", "by": "test"}
