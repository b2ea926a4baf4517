"""What the metrics page tells of the present moment, looked up when somebody asks for it."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What is looked up when somebody asks for the metrics."""

    queue_depth: int = 0
    """Runnable tasks that no worker holds."""
    queue_age: timedelta = timedelta(0)
    """How long the oldest of them has waited."""
    devices_online: int = 0
    blob_bytes: int = 0
    spans_exported: int = 0
    spans_dropped: int = 0
