"""What came of writes, by their idempotency keys: the same key gets the first outcome and the effect happens once.

In memory, or in a file that outlives the host. A key is noted before its write begins; one that was noted and has
no outcome is a write that nobody knows about.
"""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from podium.agent_host.errors import IdempotencyKeyReused, OutcomeUnknown
from podium.errors import AgentCrashed, AgentError, DataCorrupt, InternalError, PodiumError, StorageFull
from podium.rpc_status import error_of

_TABLE = """
CREATE TABLE IF NOT EXISTS outcomes (
  key TEXT PRIMARY KEY,
  fingerprint BLOB NOT NULL,
  begin_time REAL NOT NULL,
  output BLOB,
  error_code TEXT,
  error_message TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS ended ON outcomes (begin_time) WHERE output IS NOT NULL OR error_code IS NOT NULL;
"""
_ENDED = "(output IS NOT NULL OR error_code IS NOT NULL)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one write: an output, or the error it ended with."""

    output: bytes | None = None
    error: AgentError | None = None


class Outcomes:
    """The record of writes. Safe to call from threads; each method is all or nothing."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        clock: Callable[[], datetime],
        max_entries: int = 100_000,
        max_bytes: int = 256 * 2**20,
    ) -> None:
        """Open the record.

        Args:
            path: a file; None keeps it in memory, and a restarted host knows nothing of earlier writes.
            clock: the present moment.
            max_entries: how many are kept; the oldest that ended go first.
            max_bytes: of their outputs together.

        Raises:
            DataCorrupt: the file is damaged.
            StorageFull, InternalError: it cannot be used.
        """
        self._clock = clock
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                path if path is not None else ":memory:", isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_TABLE)
            self._bytes = self._number("SELECT coalesce(sum(length(output)), 0) FROM outcomes")
        except sqlite3.Error as error:
            raise _typed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def begin(self, key: str, fingerprint: bytes, *, idempotent: bool) -> Outcome | None:
        """Note that a write begins; or give what came of it before.

        Args:
            key: names the write.
            fingerprint: of the agent and its inputs: the same key must come with the same ones.
            idempotent: the agent may be run again when nobody knows what came of the first time.

        Raises:
            IdempotencyKeyReused: the key came with other inputs before.
            OutcomeUnknown: the write began, nobody knows what came of it, and it may not be run again.
            StorageFull, DataCorrupt, InternalError: it cannot be noted, so it must not begin.
        """
        with self._lock:
            try:
                row = self._connection.execute(
                    "SELECT fingerprint, output, error_code, error_message FROM outcomes WHERE key = ?", (key,)
                ).fetchone()
                if row is None:
                    self._connection.execute(
                        "INSERT INTO outcomes (key, fingerprint, begin_time) VALUES (?, ?, ?)",
                        (key, fingerprint, self._clock().timestamp()),
                    )
                    return None
            except sqlite3.Error as error:
                raise _typed(error) from error
        if row[0] != fingerprint:
            raise IdempotencyKeyReused(f"the key {key[:200]!r} came with other inputs before")
        if row[1] is not None:
            return Outcome(output=row[1])
        if row[2] is not None:
            told = error_of(row[2], row[3], otherwise=AgentCrashed)
            return Outcome(error=told if isinstance(told, AgentError) else AgentCrashed(row[3]))
        if not idempotent:
            raise OutcomeUnknown(f"the write {key[:200]!r} began before, and nobody knows what came of it")
        return None

    def end(self, key: str, outcome: Outcome) -> None:
        """Keep what came of a write.

        Raises:
            StorageFull, DataCorrupt, InternalError: it cannot be kept.
        """
        told = outcome.error
        with self._lock:
            try:
                self._connection.execute(
                    "UPDATE outcomes SET output = ?, error_code = ?, error_message = ? WHERE key = ?",
                    (outcome.output, told.code if told else None, told.message if told else None, key),
                )
                self._bytes += len(outcome.output or b"")
                self._make_room()
            except sqlite3.Error as error:
                raise _typed(error) from error

    def forget(self, key: str) -> None:
        """A write failed that may be tried again under its key.

        Raises:
            StorageFull, DataCorrupt, InternalError: it cannot be noted.
        """
        with self._lock:
            try:
                self._connection.execute("DELETE FROM outcomes WHERE key = ?", (key,))
            except sqlite3.Error as error:
                raise _typed(error) from error

    def _make_room(self) -> None:
        while self._bytes > self._max_bytes or self._number("SELECT count(*) FROM outcomes") > self._max_entries:
            oldest = self._connection.execute(
                f"SELECT rowid, coalesce(length(output), 0) FROM outcomes WHERE {_ENDED} "  # noqa: S608 - ours
                "ORDER BY begin_time, rowid LIMIT 1"
            ).fetchone()
            if oldest is None:
                return  # all that are left still run
            self._connection.execute("DELETE FROM outcomes WHERE rowid = ?", (oldest[0],))
            self._bytes -= oldest[1]

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])


def _typed(error: sqlite3.Error) -> PodiumError:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return StorageFull("there is no room for the record of writes")
    if name in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return DataCorrupt("the record of writes is damaged")
    return InternalError(f"the record of writes cannot be used: {error}")
