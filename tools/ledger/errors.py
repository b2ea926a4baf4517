"""What can be wrong with a ledger, as typed errors that name the place."""

import errno
from dataclasses import dataclass
from pathlib import Path

from podium.errors import Conflict, DataCorrupt, InternalError, PodiumError, StorageFull

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The first place where a ledger is not what was written."""

    segment: str
    """Name of the file; empty when a whole file or the end is missing."""
    offset: int
    """Byte in that file at which the damaged entry begins, or at which the missing one should."""
    length: int
    """Bytes of the damaged entry; 0 when it is missing."""
    sequence: int
    """Number of the entry that should be there."""
    reason: str


class LedgerCorrupt(DataCorrupt):
    """A ledger was changed, cut or damaged; `damage` names the first place."""

    code = "LEDGER_CORRUPT"
    advice = (
        "Keep the folder as it is, as evidence, and put it aside; restore it from a backup and compare with"
        " `podium ledger verify`. Nothing is repaired by itself; a new ledger is started once the folder and its"
        " name in contents.json of the data directory are gone."
    )

    def __init__(self, folder: Path, damage: Damage) -> None:
        place = f"{damage.segment or 'the end'}, byte {damage.offset}, entry {damage.sequence}"
        super().__init__(f"the ledger {folder} is damaged at {place}: {damage.reason}")
        self.damage = damage


class LedgerInUse(Conflict):
    """Another process writes to the ledger."""

    code = "LEDGER_IN_USE"
    advice = "Stop what writes to it (a running `podium serve` writes its audit ledger), then repeat the command."


class LedgerStopped(InternalError):
    """The disk failed in a way after which nobody knows what it holds, so the ledger takes no more entries."""

    code = "LEDGER_STOPPED"
    advice = "Check the disk, then start the program again: opening the ledger checks what is on the disk."


def is_no_room(error: OSError) -> bool:
    """Whether a write failed for want of room, which may come back."""
    return error.errno in _NO_ROOM


def storage_error(error: OSError, path: Path) -> PodiumError:
    """What a caller is told when a file could not be written; nothing of the call stays.

    Args:
        error: as the system raised it.
        path: the file, named in the message.
    """
    if is_no_room(error):
        return StorageFull(f"no room left for {path}; nothing of this call was written")
    return InternalError(
        f"{path} cannot be written: {error.strerror}", next_step="Check that this user may write there."
    )
