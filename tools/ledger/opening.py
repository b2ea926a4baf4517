"""What is done before a ledger takes entries: one writer only, and the end of the chain found and believed."""

import fcntl
import logging
import os
from pathlib import Path

from tools.ledger.errors import Damage, LedgerCorrupt, LedgerInUse
from tools.ledger.keys import KeyIndex
from tools.ledger.record import Head, digest_of
from tools.ledger.redacting import NEW_SUFFIX, redaction_target
from tools.ledger.segment_file import sync_folder
from tools.ledger.segments import Record, Torn, Walk, segments

_LOG = logging.getLogger(__name__)

LOCK_FILE = "ledger.lock"


def locked(folder: Path) -> int:
    """Take the writer's place; the kernel gives it back when the process dies. Returns what to close for that.

    Raises:
        LedgerInUse: another process writes to the ledger.
        OSError: the folder cannot be written.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise LedgerInUse(f"another process writes to the ledger {folder}") from error
    return descriptor


def settle(folder: Path) -> None:
    """Press to disk what a killed process wrote: it will be believed, so a power cut must not take it back."""
    for left in folder.glob(f"*{NEW_SUFFIX}"):
        left.unlink()
    for _, path in segments(folder)[-1:]:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    sync_folder(folder)


def catch_up(folder: Path, index: KeyIndex, index_name: str) -> tuple[Head, Torn | None]:
    """Walk from where the key index stopped, at least through the last file.

    Returns:
        The end of the chain, and the unfinished write after it that is to be cut off.

    Raises:
        LedgerCorrupt: what is read is damaged, or the index has seen what is no longer there.
    """
    known = index.through
    first = max((number for number, _ in segments(folder) if number <= known.sequence), default=1)
    walk = Walk(folder, first=first)
    for record in walk:
        if record.sequence == known.sequence and walk.head != known:
            reason = f"{index_name} has seen another entry here; if this is an older copy, delete that file"
            raise record.corrupt(reason)
        if record.sequence > known.sequence:
            _take_in(record, walk.head, index)
    if walk.head.sequence < known.sequence:
        reason = (
            f"the end is missing: {index_name} has seen entries up to {known.sequence};"
            " if this is an older copy, delete that file"
        )
        damage = Damage(segment="", offset=0, length=0, sequence=walk.head.sequence + 1, reason=reason)
        raise LedgerCorrupt(folder, damage)
    if walk.torn is not None:
        torn = walk.torn
        _LOG.warning(
            "cutting off %d bytes of an unfinished write at byte %d of %s",
            torn.length,
            torn.offset,
            torn.segment.name,
        )
    return walk.head, walk.torn


def _take_in(record: Record, head: Head, index: KeyIndex) -> None:
    kind, key = record.parts["kind"].decode(), record.key
    place = (head.sequence, bytes.fromhex(head.hash))
    index.note({digest_of(kind, key): place} if key else {}, through=head)
    if kind == "redaction":
        index.unfinished.add(redaction_target(record))
    index.flush_if_due()
