"""The files of a ledger, and the walk through them that believes nothing it has not checked."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from podium.errors import InvalidRequest
from tools.ledger.errors import Damage, LedgerCorrupt
from tools.ledger.record import EMPTY, MAX_LINE_BYTES, Entry, Head, entry_of, fault, key_of, parse

_NAME = re.compile(r"([0-9]{18})\.jsonl")
_BUFFER_BYTES = 1 << 20


class Record(NamedTuple):
    """A checked line and where it stands."""

    segment: Path
    offset: int
    line: bytes
    parts: re.Match[bytes]
    sequence: int

    @property
    def key(self) -> str:
        """The idempotency key; empty when there is none.

        Raises:
            LedgerCorrupt: its hash fits, but no ledger of ours wrote it.
        """
        try:
            return key_of(self.parts)
        except ValueError as error:
            raise self.corrupt("its key is not UTF-8") from error

    def entry(self) -> Entry:
        """The entry; raises as `key`."""
        try:
            return entry_of(self.parts)
        except (ValueError, RecursionError) as error:
            raise self.corrupt(f"its hashes fit, but it cannot be read ({type(error).__name__})") from error

    def corrupt(self, reason: str) -> LedgerCorrupt:
        """What to raise when something is wrong with this entry."""
        damage = Damage(
            segment=self.segment.name,
            offset=self.offset,
            length=len(self.line),
            sequence=self.sequence,
            reason=reason,
        )
        return LedgerCorrupt(self.segment.parent, damage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Bytes at the end that no finished write left: being written now, or begun by a process that died."""

    segment: Path
    offset: int
    length: int


def segment_path(folder: Path, first: int) -> Path:
    """The file that begins with an entry of this number."""
    return folder / f"{first:018d}.jsonl"


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The files in order, each with the number of its first entry, as its name says."""
    try:
        found = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError as error:
        raise _unreadable(folder, error) from error
    return sorted((int(name[1]), path) for name, path in found if name is not None)


class Walk:
    """Every entry in order, each held against the one before; iterate once, then ask for `head` and `torn`."""

    def __init__(self, folder: Path, *, first: int = 1) -> None:
        """Prepare to walk.

        Args:
            folder: the ledger's folder.
            first: number of the first entry of the segment to begin with; what is before it is not looked at,
                and the chain's value there is taken from the first line.
        """
        self._folder = folder
        self._first = first
        self.head = EMPTY
        """The last entry so far."""
        self.torn: Torn | None = None
        """Set at the end, when the last file ends in bytes of an unfinished write."""

    def __iter__(self) -> Iterator[Record]:
        """Walk.

        Raises:
            LedgerCorrupt: at the first place that is not as it was written.
            InvalidRequest: a file cannot be read by this user, or the disk does not give it.
        """
        files = [(number, path) for number, path in segments(self._folder) if number >= self._first]
        expected = self._first
        for position, (number, path) in enumerate(files):
            if number != expected:
                raise self._corrupt(None, 0, 0, expected, f"entries {expected} to {number - 1} are missing")
            try:
                for record in self._segment(path, expected, last=position == len(files) - 1):
                    yield record
                    expected = record.sequence + 1
            except OSError as error:
                raise _unreadable(path, error) from error
        if not files and self._first > 1:
            raise self._corrupt(None, 0, 0, self._first, "its file is missing")

    def _segment(self, path: Path, expected: int, *, last: bool) -> Iterator[Record]:
        previous = self.head.hash.encode() if expected == 1 or self.head.sequence else None
        offset = 0
        with path.open("rb", buffering=_BUFFER_BYTES) as file:
            # What is appended from here on is not looked at, so a line that is being written has one fixed length.
            end = os.fstat(file.fileno()).st_size
            while line := file.readline(min(MAX_LINE_BYTES + 1, end - offset)):
                found = parse(line)
                if found is None:
                    if last and _is_torn(line + file.read(end - offset - len(line))):
                        self.torn = Torn(segment=path, offset=offset, length=end - offset)
                        return
                    raise self._corrupt(path, offset, len(line), expected, "this is not the form of an entry")
                wrong = fault(found) or _misplaced(found, expected, previous)
                if wrong:
                    raise self._corrupt(path, offset, len(line), expected, wrong)
                previous = found["hash"]
                self.head = Head(sequence=expected, hash=previous.decode())
                yield Record(path, offset, line, found, expected)
                expected += 1
                offset += len(line)
        if offset == 0 and not last:
            raise self._corrupt(path, 0, 0, expected, "the file is empty")

    def _corrupt(self, path: Path | None, offset: int, length: int, sequence: int, reason: str) -> LedgerCorrupt:
        damage = Damage(
            segment=path.name if path else "", offset=offset, length=length, sequence=sequence, reason=reason
        )
        return LedgerCorrupt(self._folder, damage)


def _unreadable(path: Path, error: OSError) -> InvalidRequest:
    return InvalidRequest(
        f"{path} cannot be read: {error.strerror}",
        field="ledger",
        next_step="Run the command as the user who writes the ledger; if that does not help, check the disk.",
    )


def _misplaced(found: re.Match[bytes], expected: int, previous: bytes | None) -> str:
    number = int(found["sequence"])
    if number > expected:
        return f"entry {number} stands here; the entries before it are missing or moved"
    if number < expected:
        return f"entry {number} stands here once more or out of order"
    if previous is not None and found["previous"] != previous:
        return "it does not follow from the entry before; that one, or this, was replaced"
    return ""


def _is_torn(rest: bytes) -> bool:
    """Whether the end of the last file is what an unfinished write leaves, and nothing that was acknowledged.

    A process that dies leaves the beginning of a line; a power cut may leave blocks of zeros after it, which the
    file system had given to the file and not yet written. A line with its line end is complete: when it is wrong
    it was changed. So is a complete entry with another byte in the place of its line end.
    """
    written = rest.rstrip(b"\0")
    if b"\n" in rest or b"\0" in written or len(written) > MAX_LINE_BYTES:
        return False
    if parse(written + b"\n") is not None:
        return rest == written
    return parse(written[:-1] + b"\n") is None
