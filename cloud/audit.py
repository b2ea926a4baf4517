"""The audit log on SQLite: entries are appended once by their key, fsynced, and never changed."""

import json
import sqlite3
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from agents.audit import AuditEntry, AuditReceipt
from agents.canonical import canonical_json, sha256_of
from cloud.bus.schema import podium_error

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
  sequence INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  sha256 TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS entries_remain BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
"""


class SqliteAuditLog:
    """`agents.audit.AuditLog` in one file; agents call it from their threads."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime]) -> None:
        """Open the log, making it when it is not there.

        Args:
            path: the file; its folder must exist.
            clock: says when an entry was recorded.

        Raises:
            DatabaseCorrupt: the file is damaged.
            InternalError: it cannot be used.
        """
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")  # an entry is on disk when `append` returns
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            self._connection.close()
            raise podium_error(error, path) from error

    def append(self, entry: AuditEntry) -> AuditReceipt:
        """Append the entry, or find the one that has its key.

        Raises:
            StorageFull: there is no room; nothing was written.
        """
        body = {
            "key": entry.key,
            "at": entry.at.isoformat(),
            "recorded_at": self._clock().isoformat(),
            "task_id": entry.task_id,
            "caller": entry.caller,
            "action": entry.action,
            "details": entry.details,
        }
        text, sha256 = canonical_json(body).decode("utf-8"), sha256_of(body)
        with self._lock:
            try:
                cursor = self._connection.execute(
                    "INSERT INTO entries (key, body, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (entry.key, text, sha256),
                )
                row = self._connection.execute(
                    "SELECT sequence, sha256 FROM entries WHERE key = ?", (entry.key,)
                ).fetchone()
            except sqlite3.Error as error:
                raise podium_error(error, self._path) from error
        return AuditReceipt(sequence=row[0], sha256=row[1], duplicate=cursor.rowcount == 0)

    def entries(self) -> list[dict[str, object]]:
        """Every entry in order, as stored."""
        with self._lock:
            rows = self._connection.execute("SELECT body FROM entries ORDER BY sequence").fetchall()
        return [json.loads(row[0]) for row in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
