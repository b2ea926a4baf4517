"""Reading a ledger, also while it is written: show, verify, export. Nothing here changes a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from podium.errors import NotFound
from tools.ledger.errors import Damage, LedgerCorrupt
from tools.ledger.record import Entry, Head
from tools.ledger.redacting import redaction_target
from tools.ledger.segments import Record, Torn, Walk, segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a walk through the whole ledger found."""

    head: Head
    """The last sound entry."""
    redacted: int
    """How many bodies were taken out, each with an entry that says why."""
    unfinished: tuple[int, ...]
    """Entries whose redaction is on record while the body is still there; the next opening takes it out."""
    torn: Torn | None
    """Bytes at the end that are being written, or that the next opening cuts off; not damage."""
    damage: Damage | None
    """The first place that is not as it was written; None when all is well."""


def verify(
    folder: Path, *, head: Head | None = None, each: Callable[[Record], object] | None = None
) -> Verification:
    """Check every byte of every entry.

    Args:
        folder: the ledger's folder.
        head: as it was noted earlier; with it, entries that were cut off at the end are noticed, and a ledger that
            was written anew. Without it, nobody can tell from the files alone.
        each: given every sound entry in order.

    Raises:
        NotFound: there is no ledger.
    """
    check_there(folder)
    walk = Walk(folder)
    bare: dict[int, Record] = {}
    redacted, unfinished, damage = 0, [], None
    try:
        for record in walk:
            if head is not None and record.sequence == head.sequence and walk.head != head:
                raise record.corrupt("its hash is not that of the given head; the ledger was written anew")
            record.entry()
            if record.parts["body"] is None:
                bare[record.sequence] = record
            elif record.parts["kind"] == b"redaction":
                if bare.pop(target := redaction_target(record), None) is None:
                    unfinished.append(target)
                else:
                    redacted += 1
            if each is not None:
                each(record)
        if bare:
            raise min(bare.items())[1].corrupt("its body is gone and no redaction is on record")
        if head is not None and head.sequence > walk.head.sequence:
            damage = _cut_off(folder, walk, head)
    except LedgerCorrupt as error:
        damage = error.damage
    return Verification(
        head=walk.head, redacted=redacted, unfinished=tuple(unfinished), torn=walk.torn, damage=damage
    )


def _cut_off(folder: Path, walk: Walk, head: Head) -> Damage:
    path = segments(folder)[-1][1]
    return Damage(
        segment=path.name,
        offset=walk.torn.offset if walk.torn else path.stat().st_size,
        length=0,
        sequence=walk.head.sequence + 1,
        reason=f"entries {walk.head.sequence + 1} to {head.sequence} are missing at the end",
    )


def entries(folder: Path, *, after: int = 0) -> Iterator[Entry]:
    """Every entry after a number, in order.

    Raises:
        NotFound: there is no ledger.
        LedgerCorrupt: the files that are read are damaged.
    """
    check_there(folder)
    first = max((number for number, _ in segments(folder) if number <= after + 1), default=1)
    for record in Walk(folder, first=first):
        if record.sequence > after:
            yield record.entry()


def head_of(folder: Path) -> Head:
    """The last entry's number and hash, of which only the last file is read; raises as `entries`."""
    check_there(folder)
    walk = Walk(folder, first=segments(folder)[-1][0])
    for _ in walk:
        pass
    if walk.head.sequence or len(segments(folder)) == 1:
        return walk.head
    # A new file has been begun and holds nothing yet.
    walk = Walk(folder, first=segments(folder)[-2][0])
    for _ in walk:
        pass
    return walk.head


def export(folder: Path, output: BinaryIO) -> Verification:
    """Write every entry as its line stands in the ledger (JSON Lines), all of it checked.

    The lines are a ledger again: alone in a folder, under the name of a first segment, they verify.

    Raises:
        NotFound: there is no ledger.
        LedgerCorrupt: it is damaged; what was written up to there is sound.
        OSError: the output cannot be written.
    """
    found = verify(folder, each=lambda record: output.write(record.line))
    if found.damage is not None:
        raise LedgerCorrupt(folder, found.damage)
    return found


def check_there(folder: Path) -> None:
    """Raise NotFound unless there is a ledger."""
    if not folder.is_dir() or not segments(folder):
        raise NotFound(
            f"there is no ledger in {folder}",
            next_step="Name the folder of its .jsonl files with --ledger, or a data directory with --data.",
        )
