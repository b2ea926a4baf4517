"""The registry's SQLite file: its tables, how it is opened, and what SQLite's errors mean to callers."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from podium.errors import Conflict, DataCorrupt, InternalError, PodiumError, ServerUnavailable, StorageFull

FORM = 1
"""Stored in the file's `user_version`; grows with every change of the tables."""

_WAIT_S = 15.0
"""How long a call waits for other processes; each of their transactions is a few rows."""

_TABLES = """
CREATE TABLE artefacts (
  number INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  package_model TEXT NOT NULL,           -- '' when the bytes are kept here
  description TEXT NOT NULL,             -- JSON: media type, parents, metrics, trial
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  note TEXT NOT NULL,
  UNIQUE (kind, name, version)
) STRICT;
CREATE TABLE signatures (
  artefact INTEGER NOT NULL REFERENCES artefacts,
  key_id TEXT NOT NULL,
  value BLOB NOT NULL,
  added_by TEXT NOT NULL,
  added_at TEXT NOT NULL,
  PRIMARY KEY (artefact, key_id, value)
) STRICT;
CREATE TABLE changes (
  sequence INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('promote', 'rollback', 'pin', 'unpin')),
  from_version TEXT,
  to_version TEXT NOT NULL,
  by TEXT NOT NULL,
  why TEXT NOT NULL,
  at TEXT NOT NULL,
  FOREIGN KEY (kind, name, to_version) REFERENCES artefacts (kind, name, version)
) STRICT;
CREATE INDEX changes_of_a_name ON changes (kind, name, sequence);
-- One row for each name, so there cannot be two current versions; written with the change that moves it.
CREATE TABLE current (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  pinned INTEGER NOT NULL CHECK (pinned IN (0, 1)),
  sequence INTEGER NOT NULL REFERENCES changes,
  PRIMARY KEY (kind, name),
  FOREIGN KEY (kind, name, version) REFERENCES artefacts (kind, name, version)
) STRICT;
CREATE TRIGGER artefacts_stay BEFORE UPDATE ON artefacts
  BEGIN SELECT RAISE(ABORT, 'artefacts never change'); END;
CREATE TRIGGER artefacts_remain BEFORE DELETE ON artefacts
  BEGIN SELECT RAISE(ABORT, 'artefacts never change'); END;
CREATE TRIGGER changes_stay BEFORE UPDATE ON changes
  BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER changes_remain BEFORE DELETE ON changes
  BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
"""


class Database:
    """One connection that the threads of a process share; other processes have their own."""

    def __init__(self, path: Path, *, max_pages: int | None = None) -> None:
        """Open the file, making its tables when it is new; arguments and errors as `connect`."""
        self._path = path
        self._lock = threading.Lock()
        self._connection = connect(path, max_pages=max_pages)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot for what is read together.

        Raises:
            DataCorrupt, ServerUnavailable, InternalError: see `podium_error`.
        """
        with self._transaction("BEGIN") as connection:
            try:
                yield connection
            except (ValueError, KeyError, TypeError) as error:  # of what a row says
                raise DataCorrupt(
                    f"a record in {self._path} is damaged: {type(error).__name__}: {error}",
                    next_step="Put the file with its -wal file aside and restore both from a backup.",
                ) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes; on disk when this ends, undone when it raises.

        Raises:
            StorageFull, DataCorrupt, ServerUnavailable, InternalError: see `podium_error`; nothing was written.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute(begin)
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise podium_error(error, self._path) from error


def connect(path: Path, *, max_pages: int | None = None) -> sqlite3.Connection:
    """Open the registry's file, making its tables when it is new.

    Args:
        path: the file; its folder must exist.
        max_pages: the file's size limit in pages of 4096 bytes; None leaves only the disk's.

    Raises:
        DataCorrupt: it is damaged or no SQLite file.
        Conflict: a newer Podium wrote it.
        StorageFull: there is no room for the tables.
        InternalError: it cannot be opened; the message says why.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_WAIT_S)
    except sqlite3.Error as error:
        raise InternalError(f"cannot open {path}: {error}", next_step=_OPEN_ADVICE) from error
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a promotion is on disk when it is told
        connection.execute("PRAGMA foreign_keys = ON")
        if max_pages is not None:
            connection.execute(f"PRAGMA max_page_count = {int(max_pages)}")
        _require_form(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise podium_error(error, path) from error
    except PodiumError:
        connection.close()
        raise
    return connection


_OPEN_ADVICE = "Check that the data directory exists and that this user may write in it."


def _require_form(connection: sqlite3.Connection, path: Path) -> None:
    form = connection.execute("PRAGMA user_version").fetchone()[0]
    if form > FORM:
        raise Conflict(
            f"{path} has form {form}; this Podium reads up to {FORM}",
            next_step="Use the Podium version that wrote the data directory, or another directory.",
        )
    if form == FORM:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have made the tables while this one waited for the lock.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            statement = ""
            for line in _TABLES.splitlines(keepends=True):
                statement += line
                if sqlite3.complete_statement(statement):
                    connection.execute(statement)
                    statement = ""
            connection.execute(f"PRAGMA user_version = {FORM}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def podium_error(error: sqlite3.Error, path: Path) -> PodiumError:
    """What a caller is told when SQLite failed; the original goes along as the cause.

    Args:
        error: as `sqlite3` raised it.
        path: the file, named in the message.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary result code
    if code == sqlite3.SQLITE_FULL:
        return StorageFull(f"no room left for {path}; nothing of this call was written")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DataCorrupt(
            f"{path} is damaged: {error}",
            next_step="Put the file with its -wal file aside and restore both from a backup.",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ServerUnavailable(
            f"another process holds {path}", next_step="Close what has the file open and repeat the call."
        )
    return InternalError(f"{path} cannot be used: {error}", next_step=_OPEN_ADVICE)
