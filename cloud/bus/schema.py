"""The event log's file: how it is opened, which tables it holds, and what SQLite's errors mean to callers."""

import sqlite3
from pathlib import Path

from podium.errors import Conflict, DataCorrupt, InternalError, PodiumError, ServerUnavailable, StorageFull

SCHEMA_VERSION = 2
"""Stored in the file's `user_version`; grows with every change of the tables."""

EVENTS_PER_TASK = 1 << 24
"""Room for sequence numbers of one task within an event's key; see the table `events`."""

_TASK_TABLES = """
CREATE TABLE callers (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE requests (
  number INTEGER PRIMARY KEY,           -- order of acceptance
  task_id TEXT NOT NULL UNIQUE,
  caller INTEGER NOT NULL REFERENCES callers,
  request_id TEXT NOT NULL,
  text TEXT NOT NULL,
  device_id TEXT NOT NULL,
  create_us INTEGER NOT NULL,
  UNIQUE (caller, request_id)
) STRICT;
-- What changes with every append is kept apart from the request's text, so that an append rewrites few bytes.
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY REFERENCES requests,
  caller INTEGER NOT NULL,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  update_us INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  lease_worker TEXT NOT NULL DEFAULT '',
  lease_until_us INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Runnable tasks, apart: those that wait, in the order of turns within each caller, and those that are held. Of a
-- lease that lapsed only the time is taken away: its holder may still renew it while nobody else took the task.
CREATE INDEX tasks_waiting ON tasks (priority DESC, caller, number) WHERE status IN (1, 2) AND lease_until_us = 0;
CREATE INDEX tasks_held ON tasks (lease_until_us, caller) WHERE status IN (1, 2) AND lease_until_us > 0;
CREATE INDEX tasks_open ON tasks (caller) WHERE status < 6;
CREATE INDEX tasks_by_status ON tasks (status, number);
CREATE INDEX tasks_by_caller ON tasks (caller, number);
"""

# Only a number of ours is inserted.
_LOG_TABLES = f"""
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

# Until form 2 nobody had a name: what devices sent is theirs, all else belongs to "anonymous". Events, effects and
# the lease clock stay as they are.
_FROM_FORM_1 = f"""
ALTER TABLE requests RENAME TO old_requests;
ALTER TABLE tasks RENAME TO old_tasks;
DROP INDEX tasks_runnable;
DROP INDEX tasks_by_status;
{_TASK_TABLES}
INSERT INTO callers (name)
  SELECT DISTINCT iif(device_id = '', 'anonymous', 'device/' || device_id) FROM old_requests;
INSERT INTO requests (number, task_id, caller, request_id, text, device_id, create_us)
  SELECT o.number, o.task_id, c.number, o.request_id, o.text, o.device_id, o.create_us
  FROM old_requests o JOIN callers c ON c.name = iif(o.device_id = '', 'anonymous', 'device/' || o.device_id);
INSERT INTO tasks (number, caller, status, priority, update_us, last_sequence, lease_worker, lease_until_us)
  SELECT t.number, r.caller, t.status, t.priority, t.update_us, t.last_sequence, t.lease_worker, t.lease_until_us
  FROM old_tasks t JOIN requests r USING (number);
DROP TABLE old_tasks;
DROP TABLE old_requests;
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
        " what can be read with `sqlite3 FILE .recover`. To start anew without what was in it, put both aside and"
        " remove the file's name from contents.json of the data directory."
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
    connection = opened(path)
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


def opened(path: Path) -> sqlite3.Connection:
    """A connection to a SQLite file in autocommit mode, for one thread at a time but not always the same.

    Raises:
        InternalError: the file cannot be opened; what is in it is only looked at later.
    """
    try:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    except sqlite3.Error as error:
        raise InternalError(f"cannot open {path}: {error}", next_step=_OPEN_ADVICE) from error


_OPEN_ADVICE = "Check that the data directory exists and that this user may write in it."


def _configure(connection: sqlite3.Connection, path: Path, max_pages: int | None) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16000")
    # Whose turn it is is found with small tables that live for one statement; as files they took 0.15 ms a lease.
    connection.execute("PRAGMA temp_store = MEMORY")
    # Without a limit the log file keeps the size of its largest burst for ever.
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if max_pages is not None:
        connection.execute(f"PRAGMA max_page_count = {int(max_pages)}")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise EventLogTooNew(f"{path} has form {version}; this Podium reads up to {SCHEMA_VERSION}")
    if version < SCHEMA_VERSION:
        _create(connection)


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, or bring those of an older form into this one; all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have made the tables while this one waited for the lock.
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        _run(connection, _TASK_TABLES + _LOG_TABLES)
    elif version == 1:
        _run(connection, _FROM_FORM_1)
    if version < SCHEMA_VERSION:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Every statement of a script, inside the transaction that is open; `executescript` would commit it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


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
