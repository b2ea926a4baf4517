"""The audit log port: who did what with which data, appended once and never changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the log."""

    key: str
    """Names the effect (task/step): appending the same key again changes nothing."""
    at: datetime
    """When the task says it is, with its time zone; the log adds its own clock."""
    task_id: str
    caller: str
    action: str
    """What was done, e.g. `sql.read`."""
    details: Mapping[str, Any]
    """JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReceipt:
    """Proof that an entry is in the log."""

    sequence: int
    """Position in the log, from 1."""
    sha256: str
    """Hash of the entry as it is stored, in hexadecimal."""
    duplicate: bool
    """True when the key was there already; the entry is then the first one."""


@runtime_checkable
class AuditLog(Protocol):
    """Where the logger agent writes; on disk when `append` returns. Safe to call from several threads."""

    def append(self, entry: AuditEntry) -> AuditReceipt:
        """Append the entry, or find the one that has its key.

        Raises:
            StorageFull: there is no room; nothing was written.
        """
        ...
