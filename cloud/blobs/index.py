"""Who stored a blob and what refers to it, in DATA/blobs/index.sqlite. It can be made anew from disk and log.

Order of writes, so that a crash at any point leaves neither a task without its blob nor a row without its file:
a blob's file before its row; a reference before the task that has it; on removal the row before the file.
"""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud.bus.schema import podium_error
from podium.errors import DataCorrupt, PodiumError

_LOG = logging.getLogger(__name__)

FILE_NAME = "index.sqlite"
RECOVERED = "recovered"
"""What holds every blob of an index that was lost, until it is known which tasks refer to them."""
_BLOCK_BYTES = 4096
_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS blobs (
  sha256 TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  media TEXT NOT NULL,
  created REAL NOT NULL,
  last_used REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS owners (
  sha256 TEXT NOT NULL,
  caller TEXT NOT NULL,
  PRIMARY KEY (sha256, caller)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS owned_by ON owners (caller);
CREATE TABLE IF NOT EXISTS refs (
  sha256 TEXT NOT NULL,
  holder TEXT NOT NULL,
  caller TEXT NOT NULL,
  pending REAL,
  PRIMARY KEY (sha256, holder)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS refs_pending ON refs (pending) WHERE pending IS NOT NULL;
CREATE INDEX IF NOT EXISTS refs_of ON refs (holder);
CREATE TABLE IF NOT EXISTS uploads (
  name TEXT PRIMARY KEY,
  synced INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
_TOTAL = "SELECT count(*), coalesce(sum(size), 0) FROM blobs"
_UNUSED = "FROM blobs WHERE last_used <= ? AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.sha256 = blobs.sha256)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number of blobs and what they weigh."""

    count: int
    total_bytes: int


def stored_in(folder: Path) -> Amount:
    """What a store holds, read beside the server that runs on it; nothing is changed.

    Args:
        folder: the store's.

    Raises:
        DatabaseCorrupt, InternalError: its index cannot be read.
    """
    path = folder / FILE_NAME
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            count, total_bytes = connection.execute(_TOTAL).fetchone()
    except sqlite3.Error as error:
        raise podium_error(error, path) from error
    return Amount(count=count, total_bytes=total_bytes)


class BlobIndex:
    """The rows of one store. Safe to call from several threads; each method is all or nothing. Blocking."""

    def __init__(self, path: Path) -> None:
        """Open the index; one that is damaged is put aside and made anew.

        Raises:
            DataCorrupt: a newer Podium wrote it.
            StorageFull, InternalError: it cannot be used.
        """
        self._path = path
        self._lock = threading.RLock()
        try:
            self._connection = _connect(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise podium_error(error, path) from error
            _LOG.error("%s is damaged and made anew; the old one is kept beside it: %s", path.name, error)
            self._put_aside()
            self._connection = _connect(path)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def may_read(self, sha256: str, caller: str) -> bool:
        """Whether a caller stored a blob, or has a task that refers to it."""
        return bool(
            self._rows(
                "SELECT 1 FROM owners WHERE sha256 = ? AND caller = ?"
                " UNION ALL SELECT 1 FROM refs WHERE sha256 = ? AND caller = ? LIMIT 1",
                (sha256, caller, sha256, caller),
            )
        )

    def owns(self, sha256: str, caller: str) -> bool:
        """Whether a caller stored a blob."""
        return bool(self._rows("SELECT 1 FROM owners WHERE sha256 = ? AND caller = ?", (sha256, caller)))

    def bytes_stored_since(self, since_s: float, caller: str) -> int:
        """How much a caller stored from a moment on; a small blob counts as the block of disk that it takes."""
        rows = self._rows(
            "SELECT coalesce(sum(max(size, ?)), 0) FROM owners JOIN blobs USING (sha256)"
            " WHERE caller = ? AND created >= ?",
            (_BLOCK_BYTES, caller, since_s),
        )
        return int(rows[0][0])

    def add(self, sha256: str, *, size_bytes: int, media: str, caller: str, now_s: float) -> None:
        """Note a blob whose file is in place, and its owner."""
        with self._transaction(durable=True) as connection:
            connection.execute(
                "INSERT INTO blobs VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET last_used = excluded.last_used",
                (sha256, size_bytes, media, now_s, now_s),
            )
            connection.execute("INSERT OR IGNORE INTO owners VALUES (?, ?)", (sha256, caller))

    def touch(self, sha256: str, now_s: float) -> None:
        """Note that a blob was asked for."""
        with self._transaction() as connection:
            connection.execute("UPDATE blobs SET last_used = ? WHERE sha256 = ?", (now_s, sha256))

    def hold(self, holder: str, hashes: Iterable[str], *, caller: str, pending_s: float | None) -> None:
        """Add references; with `pending_s` those of a task that is about to be accepted."""
        rows = [(sha256, holder, caller, pending_s) for sha256 in hashes]
        with self._transaction(durable=True) as connection:
            connection.executemany("INSERT OR REPLACE INTO refs VALUES (?, ?, ?, ?)", rows)

    def settle(self, holder: str) -> None:
        """The task of pending references was accepted."""
        with self._transaction() as connection:
            connection.execute("UPDATE refs SET pending = NULL WHERE holder = ?", (holder,))

    def release(self, holder: str) -> None:
        """Remove all references of one holder."""
        with self._transaction(durable=True) as connection:
            connection.execute("DELETE FROM refs WHERE holder = ?", (holder,))

    def pending(self) -> Sequence[str]:
        """Holders whose tasks were about to be accepted; what became of them is not on record here."""
        return [row[0] for row in self._rows("SELECT DISTINCT holder FROM refs WHERE pending IS NOT NULL", ())]

    def note_synced(self, name: str, synced_bytes: int) -> None:
        """Note how much of an unfinished upload is surely on disk."""
        with self._transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO uploads VALUES (?, ?)", (name, synced_bytes))

    def end_upload(self, name: str) -> None:
        """Forget an upload."""
        if self._rows("SELECT 1 FROM uploads WHERE name = ?", (name,)):  # small ones have no row
            with self._transaction() as connection:
                connection.execute("DELETE FROM uploads WHERE name = ?", (name,))

    def synced(self) -> dict[str, int]:
        """How much of each unfinished upload is surely on disk."""
        return {name: synced for name, synced in self._rows("SELECT name, synced FROM uploads", ())}

    def note(self, name: str) -> str:
        """What was noted under a name; '' for nothing."""
        rows = self._rows("SELECT value FROM notes WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def write_note(self, name: str, value: str) -> None:
        """Note something for the next start."""
        with self._transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def reconcile(self, on_disk: dict[str, int], *, now_s: float, holder: str) -> None:
        """Make the rows those of the files: a file without a row gets one, a row without a file goes.

        Owners and references of what is gone stay, so that whoever sends it again mends them.

        Args:
            on_disk: sizes by hash.
            now_s: when they count as stored.
            holder: what is to hold the new ones; '' for nothing.
        """
        known = {row[0] for row in self._rows("SELECT sha256 FROM blobs", ())}
        new = [(sha256, size, "", now_s, now_s) for sha256, size in on_disk.items() if sha256 not in known]
        gone = [(sha256,) for sha256 in known if sha256 not in on_disk]
        if not new and not gone:
            return
        _LOG.warning("the index of blobs lacked %s files and named %s that are gone", len(new), len(gone))
        with self._transaction(durable=True) as connection:
            connection.executemany("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", new)
            connection.executemany("DELETE FROM blobs WHERE sha256 = ?", gone)
            if holder:
                rows = [(row[0], holder) for row in new]
                connection.executemany("INSERT OR IGNORE INTO refs VALUES (?, ?, '', NULL)", rows)

    def unused(self, before_s: float) -> Amount:
        """What nothing refers to and nobody asked for since a moment."""
        row = self._rows(f"SELECT count(*), coalesce(sum(size), 0) {_UNUSED}", (before_s,))[0]
        return Amount(count=row[0], total_bytes=row[1])

    def total(self) -> Amount:
        """All blobs."""
        row = self._rows(_TOTAL, ())[0]
        return Amount(count=row[0], total_bytes=row[1])

    def forget_unused(self, before_s: float, *, limit: int) -> Sequence[tuple[str, int]]:
        """Take such blobs off the index; their hashes and sizes, so that their files can be removed."""
        with self._transaction(durable=True) as connection:
            found: list[tuple[str, int]] = connection.execute(
                f"SELECT sha256, size {_UNUSED} LIMIT ?",
                (before_s, limit),
            ).fetchall()
            hashes = [(sha256,) for sha256, _ in found]
            connection.executemany("DELETE FROM owners WHERE sha256 = ?", hashes)
            connection.executemany("DELETE FROM blobs WHERE sha256 = ?", hashes)
        return found

    def _rows(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise podium_error(error, self._path) from error

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise podium_error(error, self._path) from error
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _put_aside(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            path = self._path.with_name(self._path.name + suffix)
            if path.exists():
                path.replace(self._path.with_name(f"{FILE_NAME}.damaged{suffix}"))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(f"quick_check says {found}")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise _from_the_future(path, version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        path.chmod(0o600)
    except (sqlite3.Error, PodiumError):
        connection.close()
        raise
    return connection


def _from_the_future(path: Path, version: int) -> DataCorrupt:
    return DataCorrupt(
        f"{path} has form {version}, and this Podium knows {_VERSION}",
        next_step="Use the newer Podium that wrote it.",
    )
