"""The event log's file: how it is opened, which tables it holds, and what SQLite's errors mean to callers."""

import sqlite3
from pathlib import Path

from podium.errors import Conflict, DataCorrupt, InternalError, PodiumError, ServerUnavailable, StorageFull

SCHEMA_VERSION = 1
"""Stored in the file's `user_version`; grows with every change of the tables."""

EVENTS_PER_TASK = 1 << 24
"""Room for sequence numbers of one task within an event's key; see the table `events`."""

# Only a number of ours is inserted.
_TABLES = f"""
CREATE TABLE requests (
  number INTEGER PRIMARY KEY,           -- order of acceptance
  task_id TEXT NOT NULL UNIQUE,
  request_id TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  device_id TEXT NOT NULL,
  create_us INTEGER NOT NULL
) STRICT;
-- What changes with every append is kept apart from the request's text, so that an append rewrites few bytes.
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY REFERENCES requests,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  update_us INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  lease_worker TEXT NOT NULL DEFAULT '',
  lease_until_us INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tasks_runnable ON tasks (priority DESC, number) WHERE status IN (1, 2);
CREATE INDEX tasks_by_status ON tasks (status, number);
-- key = task number * {EVENTS_PER_TASK} + sequence: one B-tree that grows at its end and reads a task in order.
CREATE TABLE events (
  key INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE effects (
  key TEXT PRIMARY KEY,
  output BLOB NOT NULL
) STRICT;
-- The lease clock's highest reading; see cloud.bus.lease_clock.
CREATE TABLE lease_clock (
  only INTEGER PRIMARY KEY CHECK (only = 0),
  now_us INTEGER NOT NULL
) STRICT;
INSERT INTO lease_clock VALUES (0, 0);
"""  # noqa: S608


class EventLogTooNew(Conflict):
    """The event log was written by a newer Podium."""

    code = "EVENT_LOG_TOO_NEW"
    advice = "Start the Podium version that wrote the data directory, or choose another directory with --data."


class DatabaseCorrupt(DataCorrupt):
    """A SQLite file is damaged or is not one."""

    code = "DATABASE_CORRUPT"
    advice = (
        "Stop the server, put the file with its -wal file aside, then restore both from a backup or rescue"
        " what can be read with `sqlite3 FILE .recover`; without the files the server starts anew."
    )


def connect(path: Path, *, read_only: bool = False, max_pages: int | None = None) -> sqlite3.Connection:
    """Open the event log, making its tables when the file is new.

    Args:
        path: the file; its folder must exist.
        read_only: refuse every write on this connection.
        max_pages: the file's size limit in pages of 4096 bytes; None leaves only the disk's.

    Raises:
        DatabaseCorrupt: the file is not a sound SQLite database.
        EventLogTooNew: a newer Podium wrote it.
        StorageFull: there is no room for the tables.
        InternalError: it cannot be opened; the message says why.
    """
    try:
        # One thread at a time uses a connection, but not always the thread that opened it.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    except sqlite3.Error as error:
        raise InternalError(f"cannot open the event log {path}: {error}", next_step=_OPEN_ADVICE) from error
    try:
        _configure(connection, path, max_pages)
        if read_only:
            connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        connection.close()
        raise podium_error(error, path) from error
    except PodiumError:
        connection.close()
        raise
    return connection


_OPEN_ADVICE = "Check that the data directory exists and that this user may write in it."


def _configure(connection: sqlite3.Connection, path: Path, max_pages: int | None) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16000")
    # Without a limit the log file keeps the size of its largest burst for ever.
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if max_pages is not None:
        connection.execute(f"PRAGMA max_page_count = {int(max_pages)}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        _create(connection)
    elif version > SCHEMA_VERSION:
        raise EventLogTooNew(f"{path} has form {version}; this Podium reads up to {SCHEMA_VERSION}")


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have made the tables while this one waited for the lock.
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        statement = ""
        for line in _TABLES.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


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
        return DatabaseCorrupt(f"{path} is damaged: {error}")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return ServerUnavailable(
            f"another process holds {path}", next_step="Close what has the file open and repeat the call."
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return InternalError(f"{path} cannot be written: {error}", next_step=_OPEN_ADVICE)
    return InternalError(f"{path} failed: {error}")
