"""What the benchmarks share: runs, their percentiles, and the line that says on what they were measured."""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SYNCED_WRITES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Some tasks run in one go by one contender."""

    wall_s: float
    cpu_s: float
    """Processor time of the process that runs the tasks, all threads."""
    latencies_s: Sequence[float]
    """One for each task."""

    @property
    def tasks_per_s(self) -> float:
        """Throughput of the round."""
        return len(self.latencies_s) / self.wall_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Something that runs tasks."""

    name: str
    one: Callable[[str], Awaitable[None]]
    """Runs a task with this text to its answer."""
    cpu_s: Callable[[], float]
    """Processor time so far of the process that runs the tasks, all threads."""
    commits: Callable[[], tuple[int, int]]
    """Transactions since it was opened, and how many of them were synced; called after it was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way of running tasks, measured in several rounds."""

    name: str
    concurrency: int
    rounds: Sequence[Round]
    commits_per_task: float
    synced_commits_per_task: float

    @property
    def tasks_per_s(self) -> float:
        """Throughput: the median of the rounds, so that one in which the machine was busy does not decide."""
        return statistics.median(one.tasks_per_s for one in self.rounds)

    @property
    def cpu_ms_per_task(self) -> float:
        """Processor time of a task: that of the best round, because what disturbs can only add to it."""
        return min(one.cpu_s / len(one.latencies_s) for one in self.rounds) * 1000

    def percentile_ms(self, share: float) -> float:
        """The latency that a `share` in [0, 1] of all tasks kept, in milliseconds (nearest rank)."""
        ordered = sorted(latency for one in self.rounds for latency in one.latencies_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000

    def to_json(self) -> dict[str, Any]:
        """The run as JSON-ready values."""
        return {
            "name": self.name,
            "concurrency": self.concurrency,
            "tasks": sum(len(one.latencies_s) for one in self.rounds),
            "rounds_tasks_per_s": [round(one.tasks_per_s, 1) for one in self.rounds],
            "tasks_per_s": round(self.tasks_per_s, 1),
            "p50_ms": round(self.percentile_ms(0.5), 2),
            "p99_ms": round(self.percentile_ms(0.99), 2),
            "cpu_ms": round(self.cpu_ms_per_task, 2),
            "commits": round(self.commits_per_task, 2),
            "synced": round(self.synced_commits_per_task, 2),
        }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def synced_writes_s(folder: Path) -> list[float]:
    """How long some writes of 8 KiB, which is what a small commit takes, need to reach the disk under a folder.

    The figure moves with what else the disk does: take it often, between the rounds.
    """
    sync = getattr(os, "fdatasync", os.fsync)  # what SQLite calls, where there is it
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCED_WRITES):
            file.write(bytes(8192))
            file.flush()
            started = time.perf_counter()
            sync(file.fileno())
            times.append(time.perf_counter() - started)
    return times
