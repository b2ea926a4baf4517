"""What a process and everything it started use at the moment, read from /proc."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeUse:
    """A process tree at one moment, without its root."""

    pids: tuple[int, ...] = ()
    """Living processes; the dead that nobody has waited for are left out."""
    tasks: int = 0
    """Their threads, all together."""
    memory_bytes: int = 0
    """Their resident memory, summed: what two of them share counts twice."""
    cpu_seconds: float = 0.0
    """Theirs and that of children they have waited for."""


def tree_use(root: int, *, ours: int | None = None) -> TreeUse:
    """What the descendants of `root` use. Who vanishes meanwhile is left out.

    Args:
        root: A process whose orphaned descendants come back to it, or that has none.
        ours: One of them that only does a service for the others: of it, nothing counts but the processor time of
            children that it has waited for.
    """
    pids: list[int] = []
    tasks, memory, ticks = 0, 0, 0
    for pid in _descendants(root):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                # The name, in brackets, may hold anything.
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # Numbered as in proc(5), less three: state 3, utime 14 … cstime 17, num_threads 20, rss 24.
        ticks += sum(map(int, fields[13:15] if pid == ours else fields[11:15]))
        if fields[0] in (b"Z", b"X") or pid == ours:
            continue
        pids.append(pid)
        tasks += int(fields[17])
        memory += int(fields[21]) * _PAGE_BYTES
    return TreeUse(pids=tuple(pids), tasks=tasks, memory_bytes=memory, cpu_seconds=ticks / _TICKS_PER_SECOND)


def _descendants(root: int) -> Iterator[int]:
    waiting, seen = [root], {root}
    while waiting:
        for child in _children(waiting.pop()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it, or one of its threads, has just ended
    return found
