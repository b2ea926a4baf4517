"""What the benchmarks share: latencies, their percentiles, and the line that says on what they were measured."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way of running the same tasks."""

    name: str
    tasks: int
    concurrency: int
    wall_s: float
    latencies_s: Sequence[float]
    commits: int
    synced_commits: int

    @property
    def tasks_per_s(self) -> float:
        """Throughput over the whole run."""
        return self.tasks / self.wall_s

    def percentile_ms(self, share: float) -> float:
        """The latency that a `share` in [0, 1] of the tasks kept, in milliseconds (nearest rank)."""
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000

    def to_json(self) -> dict[str, Any]:
        """The run as JSON-ready values."""
        return {
            "name": self.name,
            "tasks": self.tasks,
            "concurrency": self.concurrency,
            "tasks_per_s": round(self.tasks_per_s, 1),
            "p50_ms": round(self.percentile_ms(0.5), 2),
            "p99_ms": round(self.percentile_ms(0.99), 2),
            "commits_per_task": round(self.commits / self.tasks, 2),
            "synced_commits_per_task": round(self.synced_commits / self.tasks, 2),
        }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
    }
