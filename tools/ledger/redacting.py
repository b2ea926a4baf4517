"""Taking bodies out of a segment: the new file is whole on disk before it takes the old one's place."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tools.ledger.errors import Damage, LedgerCorrupt
from tools.ledger.record import MAX_LINE_BYTES, fault, parse, redacted_line
from tools.ledger.segment_file import Sync, sync_folder
from tools.ledger.segments import Record

NEW_SUFFIX = ".new"
"""Of a file that was not finished when its process died; it is removed at the next opening."""


def without_bodies(segment: Path, sequences: Collection[int], sync: Sync) -> None:
    """Rewrite a segment without the bodies of some entries; a crash leaves the old file or the new one.

    Raises:
        LedgerCorrupt: one of the entries is not as it was written; the file is left as it is.
        OSError: there was no room; the file is left as it is.
    """
    temporary = segment.with_suffix(NEW_SUFFIX)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for line in _lines(segment, sequences):
                file.write(line)
            file.flush()
            sync(file.fileno())
        temporary.replace(segment)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(segment.parent)


def redaction_target(record: Record) -> int:
    """Number of the entry whose body a redaction takes out.

    Raises:
        LedgerCorrupt: it names none before itself, or its own body is gone; no ledger of ours does that.
    """
    body = record.entry().body
    target = None if body is None else body.get("sequence")
    if type(target) is not int or not 1 <= target < record.sequence:
        raise record.corrupt("it records a redaction and does not say of which entry before it")
    return target


def line_at(segment: Path, sequence: int) -> re.Match[bytes]:
    """The checked parts of one entry's line.

    Raises:
        LedgerCorrupt: it is not there or not as it was written.
    """
    offset = 0
    with segment.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            if line.startswith(_beginning(sequence)):
                return _checked(segment, offset, line, sequence)
            offset += len(line)
    raise _corrupt(segment, offset, 0, sequence, "it is missing")


def _lines(segment: Path, sequences: Collection[int]) -> Iterator[bytes]:
    beginnings = {_beginning(sequence): sequence for sequence in sequences}
    offset = 0
    with segment.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            sequence = beginnings.get(line[: line.find(b",") + 1])
            yield line if sequence is None else redacted_line(_checked(segment, offset, line, sequence))
            offset += len(line)


def _beginning(sequence: int) -> bytes:
    return b'{"sequence":%d,' % sequence


def _checked(segment: Path, offset: int, line: bytes, sequence: int) -> re.Match[bytes]:
    found = parse(line)
    wrong = "this is not the form of an entry" if found is None else fault(found)
    if found is None or wrong:
        raise _corrupt(segment, offset, len(line), sequence, wrong)
    return found


def _corrupt(segment: Path, offset: int, length: int, sequence: int, reason: str) -> LedgerCorrupt:
    damage = Damage(segment=segment.name, offset=offset, length=length, sequence=sequence, reason=reason)
    return LedgerCorrupt(segment.parent, damage)
