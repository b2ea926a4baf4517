"""The writer: entries are on disk when `append` returns, and whoever dies in between loses none of them."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from podium.errors import InternalError, InvalidRequest, NotFound, PodiumError, StorageFull
from tools.ledger.errors import LedgerStopped, is_no_room, storage_error
from tools.ledger.group_commit import GroupCommit
from tools.ledger.keys import KeyIndex, Place
from tools.ledger.opening import catch_up, locked, settle
from tools.ledger.record import SALT_BYTES, Draft, Head, draft, line_of, time_bytes
from tools.ledger.redacting import line_at, without_bodies
from tools.ledger.segment_file import SegmentFile, Sync, sync_data, sync_folder
from tools.ledger.segments import Torn, segment_path, segments

_LOG = logging.getLogger(__name__)

INDEX_FILE = "keys.sqlite"
SEGMENT_BYTES = 16 << 20
"""A file is not begun with more in it than this: it bounds what opening reads and what a redaction rewrites."""
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that an entry is in the ledger."""

    sequence: int
    hash: str
    """The entry's hash, which fixes it and all before it."""
    duplicate: bool
    """True when the key was there already; the receipt is then that of the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One of many entries for `append_many`."""

    body: Mapping[str, Any]
    key: str = ""


class _Job:
    """Some entries of one caller, written together."""

    __slots__ = ("drafts", "failure", "receipts")

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.receipts: list[Receipt] = []
        self.failure: Exception | None = None


class Ledger:
    """A ledger open for writing; safe to use from several threads, by one process at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        entropy: Callable[[int], bytes] = os.urandom,
        segment_bytes: int = SEGMENT_BYTES,
        sync: Sync = sync_data,
    ) -> None:
        """Open a ledger, making it when it is not there; finish what a process that died left unfinished.

        Args:
            folder: where its files are.
            clock: says when an entry is recorded; with its time zone.
            entropy: random bytes, for the salts.
            segment_bytes: size beyond which a new file is begun.
            sync: presses a file's bytes to disk.

        Raises:
            LedgerInUse: another process writes to it.
            LedgerCorrupt: what is read here (the last file, and what the key index has not seen) is damaged,
                or the end is missing.
            StorageFull: there is no room.
            InternalError: the folder cannot be used.
        """
        self._folder = folder
        self._clock = clock
        self._entropy = entropy
        self._segment_bytes = segment_bytes
        self._sync = sync
        self._exclusive = threading.Lock()
        self._queue: GroupCommit[_Job] = GroupCommit(self._commit)
        self._stopped = ""
        self.torn: Torn | None = None
        """What opening cut off: the beginning of a write that was never acknowledged."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked(folder)
        except OSError as error:
            raise storage_error(error, folder) from error
        try:
            self._open()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, OSError):
                raise storage_error(error, folder) from error
            raise

    def _open(self) -> None:
        settle(self._folder)
        self._index = KeyIndex(self._folder / INDEX_FILE)
        try:
            self._head, self.torn = catch_up(self._folder, self._index, INDEX_FILE)
            files = segments(self._folder)
            path = files[-1][1] if files else segment_path(self._folder, 1)
            size = self.torn.offset if self.torn else (path.stat().st_size if files else 0)
            self._file = SegmentFile(path, size=size, sync=self._sync)
            try:
                if not files:
                    sync_folder(self._folder.parent)
                self._finish_redactions()
            except BaseException:
                self._file.close()
                raise
        except BaseException:
            self._index.close()
            raise

    @property
    def head(self) -> Head:
        """The last entry's number and hash: publish or keep it elsewhere, and `verify` finds a cut-off end."""
        return self._head

    def append(self, body: Mapping[str, Any], *, key: str = "") -> Receipt:
        """Record an entry, or find the one that has its key; it is on disk on return.

        Args:
            body: a JSON object of at most 1 MiB.
            key: idempotency key, at most 512 bytes; it stays readable when the body is redacted.

        Raises:
            InvalidRequest: body or key cannot be stored.
            LimitExceeded: they are too long.
            StorageFull: there is no room; nothing was written.
            LedgerStopped: the disk failed earlier, or the ledger is closed.
            InternalError: it cannot be written.
        """
        return self._done([draft(body, key=key, salt=self._entropy(SALT_BYTES))])[0]

    def append_many(self, items: Sequence[Item]) -> list[Receipt]:
        """Record entries in order, up to 1,024 with one write; raises as `append`.

        When it raises, the last run of 1,024 was not written; those before it were, and keys tell which.
        """
        drafts = [draft(item.body, key=item.key, salt=self._entropy(SALT_BYTES)) for item in items]
        receipts: list[Receipt] = []
        for start in range(0, len(drafts), _AT_ONCE):
            receipts += self._done(drafts[start : start + _AT_ONCE])
        return receipts

    def _done(self, drafts: Sequence[Draft]) -> list[Receipt]:
        job = _Job(drafts)
        self._queue.run(job)
        if job.failure is not None:
            # An error of its own for each thread: they add their stack to it.
            raise self._refusal(job.failure) from job.failure
        if len(job.receipts) != len(drafts):
            raise LedgerStopped(f"the write to {self._folder} was interrupted; nobody knows whether it is on disk")
        return job.receipts

    def _refusal(self, failure: Exception) -> PodiumError:
        if isinstance(failure, PodiumError):
            return type(failure)(failure.message, next_step=failure.next_step)
        if isinstance(failure, OSError):
            return storage_error(failure, self._file.path)
        return InternalError(f"the entry could not be written ({type(failure).__name__})")

    def _commit(self, jobs: list[_Job]) -> None:
        with self._exclusive:
            try:
                self._write(jobs)
            except Exception as error:  # noqa: BLE001 - handed to each caller, who raises it
                for job in jobs:
                    job.failure = error

    def _write(self, jobs: Sequence[_Job]) -> None:
        if self._stopped:
            raise LedgerStopped(self._stopped)
        self._index.flush_if_due()
        known = self._index.find([one.digest for job in jobs for one in job.drafts if one.key])
        new: dict[bytes, Place] = {}
        lines: list[bytes] = []
        outcome: list[list[Receipt]] = []
        sequence, hashed = self._head.sequence, self._head.hash.encode()
        time = time_bytes(self._clock())
        for job in jobs:
            receipts = []
            for one in job.drafts:
                first = known.get(one.digest) if one.key else None
                if first is not None:
                    receipts.append(Receipt(sequence=first[0], hash=first[1].hex(), duplicate=True))
                    continue
                sequence += 1
                line, hashed = line_of(one, sequence=sequence, time=time, previous=hashed)
                lines.append(line)
                if one.key:
                    known[one.digest] = new[one.digest] = (sequence, bytes.fromhex(hashed.decode()))
                receipts.append(Receipt(sequence=sequence, hash=hashed.decode(), duplicate=False))
            outcome.append(receipts)
        if lines:
            self._write_lines(b"".join(lines), new, Head(sequence=sequence, hash=hashed.decode()))
        for job, receipts in zip(jobs, outcome, strict=True):
            job.receipts = receipts

    def _write_lines(self, data: bytes, new: Mapping[bytes, Place], head: Head) -> None:
        # Until it is known what is in the file, nothing may follow: an interrupt (Ctrl-C) can come at any place.
        self._stopped = f"a write to {self._folder} was interrupted"
        try:
            if self._file.size and self._file.size + len(data) > self._segment_bytes:
                following = SegmentFile.following(self._folder, self._head.sequence + 1, self._sync)
                self._file.close()
                self._file = following
            self._file.append(data)
        except OSError as error:
            self._stopped = (
                "" if is_no_room(error) else f"{self._file.path} could not be written: {error.strerror}"
            )
            raise
        self._index.note(new, through=head)
        self._head = head
        self._stopped = ""

    def redact(self, sequence: int, *, reason: str, by: str) -> Receipt:
        """Take the body of an entry out of the ledger for good; the chain goes on to verify.

        A new entry says which, why and by whom, and comes first: a crash before the body is gone is made good at
        the next opening. Redacting once more changes nothing and finds the first receipt.

        Args:
            sequence: number of the entry.
            reason: why; stays in the ledger.
            by: who wants it; stays in the ledger.

        Raises:
            NotFound: there is no such entry.
            InvalidRequest: it is itself a redaction, or reason or name is missing.
            LedgerCorrupt: the entry is damaged.
            StorageFull: there is no room; repeat the call when there is.
            LedgerStopped: as in `append`.
        """
        for name, value in (("reason", reason), ("by", by)):
            if not value.strip():
                raise InvalidRequest(f"say {name}: it stays in the ledger in the body's place", field=name)
        body = {"sequence": sequence, "reason": reason, "by": by}
        order = draft(body, key=str(sequence), salt=self._entropy(SALT_BYTES), kind="redaction")
        with self._exclusive:
            self._check_redactable(sequence)
            job = _Job([order])
            try:
                self._write([job])
            except OSError as error:
                raise storage_error(error, self._file.path) from error
            if not job.receipts[0].duplicate:
                self._index.unfinished.add(sequence)
            try:
                self._finish_redactions()
            except OSError as error:
                raise _unfinished(error, sequence) from error
            return job.receipts[0]

    def _check_redactable(self, sequence: int) -> None:
        if self._stopped:
            raise LedgerStopped(self._stopped)
        if not 1 <= sequence <= self._head.sequence:
            raise NotFound(
                f"there is no entry {sequence}; the last one is {self._head.sequence}",
                next_step="`podium ledger show` lists the entries with their numbers.",
            )
        if line_at(self._segment_of(sequence), sequence)["kind"] == b"redaction":
            raise InvalidRequest(f"entry {sequence} records a redaction and stays", field="sequence")

    def _segment_of(self, sequence: int) -> Path:
        return max((number, path) for number, path in segments(self._folder) if number <= sequence)[1]

    def _finish_redactions(self) -> None:
        """Take out every body whose redaction is on record; OSError leaves the rest for another time."""
        by_segment: dict[Path, set[int]] = {}
        for sequence in self._index.unfinished:
            by_segment.setdefault(self._segment_of(sequence), set()).add(sequence)
        for path, sequences in by_segment.items():
            present = {one for one in sequences if line_at(path, one)["body"] is not None}
            if present:
                without_bodies(path, present, self._sync)
                if path == self._file.path:
                    self._reopen()
            self._index.unfinished -= sequences

    def _reopen(self) -> None:
        """Go on in the file that took the place of the last one."""
        path = self._file.path
        self._stopped = f"{path} could not be opened again"
        self._file.close()
        self._file = SegmentFile(path, size=path.stat().st_size, sync=self._sync)
        self._stopped = ""

    def close(self) -> None:
        """Close the files and let others write; what is appended afterwards is refused."""
        with self._exclusive:
            if self._lock < 0:
                return
            self._stopped = f"the ledger {self._folder} is closed"
            try:
                self._index.flush()
            except PodiumError as error:
                # Nothing is lost: the next opening reads it from the ledger.
                _LOG.warning("the key index of ledger %s was not written: %s", self._folder.name, error.code)
            self._index.close()
            self._file.close()
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _unfinished(error: OSError, sequence: int) -> PodiumError:
    if is_no_room(error):
        return StorageFull(
            f"no room to rewrite the file of entry {sequence}; the redaction is on record, the body still there",
            next_step="Free space on the ledger's disk and repeat the call; the next opening tries it too.",
        )
    return InternalError(f"the body of entry {sequence} could not be taken out: {error.strerror}")
