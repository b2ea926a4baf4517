"""Look whether everything in a registry is as it should be: bytes, signatures, histories."""

from dataclasses import dataclass

from podium.errors import PodiumError
from tools.artefacts.pointers import BrokenHistory, fold
from tools.artefacts.records import Name
from tools.artefacts.registry import ArtefactRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that is not as it should be."""

    what: str
    error: PodiumError


def faults(registry: ArtefactRegistry) -> tuple[Fault, ...]:
    """Everything that is not as it should be; hashes every file.

    Args:
        registry: what is checked.
    """
    found = [
        Fault(what=str(item.reference), error=error)
        for item in registry.list()
        if (error := registry.fault(item)) is not None
    ]
    named = ((name, history_fault(registry, name)) for name in registry.names())
    return (*found, *(Fault(what=str(name), error=error) for name, error in named if error is not None))


def history_fault(registry: ArtefactRegistry, name: Name) -> PodiumError | None:
    """What is wrong with the history of a name, or None: each change follows, and they come to what is stored.

    Args:
        registry: what is checked.
        name: whose history.
    """
    stored, history = registry.moves(name)
    try:
        pointer = fold(history)
    except BrokenHistory as error:
        return error
    told = (None, False, 0) if stored is None else (stored.version, stored.pinned, stored.sequence)
    if told != (pointer.version, pointer.pinned, pointer.sequence):
        return BrokenHistory(f"{name}: {told[0]} is stored as current, and the history says {pointer.version}")
    return None


def unused_files(registry: ArtefactRegistry) -> tuple[str, ...]:
    """Hashes of files that no artefact names: what a process left that died between two steps of adding.

    Args:
        registry: what is checked.
    """
    used = {item.sha256 for item in registry.list() if not item.package_model}
    return tuple(sorted(registry.stored_hashes() - used))
