"""Which version is current, as a fold over the changes of a name: pure, and the measure for what is stored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from podium.errors import DataCorrupt
from tools.artefacts.records import Change


class BrokenHistory(DataCorrupt):
    """The history of an artefact's name is not whole, or does not come to what is stored as current."""

    code = "ARTEFACT_HISTORY_BROKEN"
    advice = "Restore the registry's folder from a backup."


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """What the changes of one name come to."""

    version: str | None = None
    pinned: bool = False
    before: tuple[str, ...] = ()
    """Versions that a rollback would try, newest first; none of them twice."""
    sequence: int = 0


def fold(changes: Iterable[Change]) -> Pointer:
    """What the changes of one name come to, in order.

    Raises:
        BrokenHistory: a change does not follow from the one before it.
    """
    pointer = Pointer()
    for change in changes:
        pointer = after(pointer, change)
    return pointer


def after(pointer: Pointer, change: Change) -> Pointer:
    """The pointer after one more change.

    Raises:
        BrokenHistory: the change does not follow.
    """
    if change.from_version != pointer.version or change.sequence <= pointer.sequence:
        raise BrokenHistory(
            f"change {change.sequence} of {change.name} is from {change.from_version}, not {pointer.version}"
        )
    if change.action in ("pin", "unpin"):
        return _pinned(pointer, change)
    if pointer.pinned:
        raise BrokenHistory(f"change {change.sequence} of {change.name} moves a pinned version")
    moved = replace(pointer, version=change.to_version, sequence=change.sequence)
    if change.action == "rollback":
        if change.to_version not in pointer.before:
            raise BrokenHistory(
                f"change {change.sequence} rolls back to {change.to_version}, which was not before"
            )
        # What was rolled back from, or could not be loaded on the way, is not rolled back to later.
        return replace(moved, before=pointer.before[pointer.before.index(change.to_version) + 1 :])
    earlier = () if pointer.version is None else (pointer.version, *pointer.before)
    return replace(moved, before=_without(earlier, change.to_version))


def _pinned(pointer: Pointer, change: Change) -> Pointer:
    wanted = change.action == "pin"
    if pointer.version is None or change.to_version != pointer.version or pointer.pinned == wanted:
        raise BrokenHistory(f"change {change.sequence} of {change.name} does not follow: {change.action}")
    return replace(pointer, pinned=wanted, sequence=change.sequence)


def _without(versions: Sequence[str], version: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in versions if item != version))
