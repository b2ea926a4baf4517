"""The audit log: who did what with which data, in a hash-chained ledger."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from agents.audit import AuditEntry, AuditReceipt
from tools.ledger.ledger import Ledger
from tools.ledger.reading import entries

FOLDER = "audit"
"""Where the audit ledger is in a data directory."""


class LedgerAuditLog:
    """`agents.audit.AuditLog` on a ledger; agents call it from their threads."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime]) -> None:
        """Open the log, making it when it is not there.

        Args:
            folder: the ledger's folder; no other process may write to it meanwhile.
            clock: says when an entry was recorded.

        Raises:
            LedgerInUse: another process writes to it.
            LedgerCorrupt: it is damaged.
            StorageFull: there is no room.
            InternalError: it cannot be used.
        """
        self._folder = folder
        self._ledger = Ledger(folder, clock=clock)

    def append(self, entry: AuditEntry) -> AuditReceipt:
        """Append the entry, or find the one that has its key; waits for the disk.

        Raises:
            InvalidRequest: the details are not JSON.
            StorageFull: there is no room; nothing was written.
        """
        body = {
            "at": entry.at.isoformat(),
            "task_id": entry.task_id,
            "caller": entry.caller,
            "action": entry.action,
            "details": entry.details,
        }
        receipt = self._ledger.append(body, key=entry.key)
        return AuditReceipt(sequence=receipt.sequence, sha256=receipt.hash, duplicate=receipt.duplicate)

    def entries(self) -> list[dict[str, object]]:
        """Every entry in order: `key`, `recorded_at` and what was recorded; of a redacted one only `redacted`.

        Raises:
            LedgerCorrupt: the ledger is damaged.
        """
        return [
            {"key": entry.key, "recorded_at": entry.time.isoformat(), **(entry.body or {"redacted": True})}
            for entry in entries(self._folder)
            if entry.kind == "entry"
        ]

    def close(self) -> None:
        """Close the files."""
        self._ledger.close()
