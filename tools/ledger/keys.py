"""Which key was recorded where: a side file that can be thrown away, because the ledger itself says it all.

Digests are kept, not keys, on disk, not in memory; only the newest few thousand are held until they are written
together. The file also remembers how far it has come. That makes opening fast, and a ledger whose end was cut off
behind its back is noticed.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium.errors import InternalError, PodiumError, StorageFull
from tools.ledger.record import EMPTY, Head

_FORM = 1
_HELD = 4096
_ASKED_AT_ONCE = 500
_TABLES = """
CREATE TABLE keys (
  digest BLOB PRIMARY KEY,
  sequence INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE unfinished (sequence INTEGER PRIMARY KEY) STRICT;
CREATE TABLE through (sequence INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
"""


Place = tuple[int, bytes]
"""Number and hash (32 bytes) of an entry."""


class KeyIndex:
    """Finds entries by key; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the side file; one that is missing, damaged or of another form begins empty.

        Raises:
            StorageFull: there is no room for it.
            InternalError: it cannot be written.
        """
        self._path = path
        self._held: dict[bytes, Place] = {}
        self._since_flush = 0
        try:
            self._connection = self._opened()
        except sqlite3.DatabaseError as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in (
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_NOTADB,
            ):
                raise _podium_error(error, path) from error
            self._connection = self._anew()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            # Whoever has the ledger's lock is alone here, so no look-up has to ask for a lock of its own.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may take the newest rows, never the order: the ledger has them, and they are read again.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -4096")
            form = connection.execute("PRAGMA user_version").fetchone()[0]
            if form == 0:
                connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORM};")
                connection.execute("INSERT INTO through VALUES (?, ?)", (EMPTY.sequence, EMPTY.hash))
                connection.execute("COMMIT")
            elif form != _FORM:
                connection.close()
                return self._anew()
            through = connection.execute("SELECT sequence, hash FROM through").fetchone()
            self.unfinished = {row[0] for row in connection.execute("SELECT sequence FROM unfinished")}
            """Entries whose redaction is on record and whose bodies may still be there."""
            if through is None or not all(0 < one < through[0] for one in self.unfinished):
                connection.close()
                return self._anew()
            self.through = Head(sequence=through[0], hash=through[1])
            """The last entry that is known here."""
        except BaseException:
            connection.close()
            raise
        return connection

    def _anew(self) -> sqlite3.Connection:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        try:
            return self._opened()
        except sqlite3.Error as error:
            raise _podium_error(error, self._path) from error

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Place]:
        """Where the entries of some keys are; what is not recorded is left out.

        Raises:
            InternalError: the side file failed.
        """
        found = {digest: self._held[digest] for digest in digests if digest in self._held}
        rest = [digest for digest in digests if digest not in found]
        try:
            # One statement for many: each one lets go of the interpreter, and has to wait for it again.
            for start in range(0, len(rest), _ASKED_AT_ONCE):
                some = rest[start : start + _ASKED_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT digest, sequence, hash FROM keys WHERE digest IN ({marks})"  # noqa: S608 - marks only
                rows = self._connection.execute(query, some).fetchall()
                found.update((digest, (sequence, place)) for digest, sequence, place in rows)
        except sqlite3.Error as error:
            raise _podium_error(error, self._path) from error
        return found

    def note(self, places: Mapping[bytes, Place], *, through: Head) -> None:
        """Take in entries that are on disk.

        Args:
            places: by digest; entries without a key are not among them.
            through: the last of them.
        """
        for digest, place in places.items():
            self._held.setdefault(digest, place)
        self._since_flush += through.sequence - self.through.sequence
        self.through = through

    def flush_if_due(self) -> None:
        """Write what is held once it is much; called before a write, so that a full disk refuses that one.

        Raises:
            StorageFull: there is no room; what is held stays held.
            InternalError: the side file failed.
        """
        if self._since_flush >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held; raises as `flush_if_due`."""
        # Sorted: neighbours in the tree are written together.
        rows = sorted((digest, *place) for digest, place in self._held.items())
        try:
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", rows)
                self._connection.execute(
                    "UPDATE through SET sequence = ?, hash = ?", (self.through.sequence, self.through.hash)
                )
                self._connection.execute("DELETE FROM unfinished")
                self._connection.executemany(
                    "INSERT INTO unfinished VALUES (?)", ((one,) for one in self.unfinished)
                )
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _podium_error(error, self._path) from error
        self._held.clear()
        self._since_flush = 0

    def close(self) -> None:
        """Close the file; what is held is read from the ledger again at the next opening."""
        self._connection.close()


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary result code


def _podium_error(error: sqlite3.Error, path: Path) -> PodiumError:
    if _code(error) == sqlite3.SQLITE_FULL:
        return StorageFull(f"no room left for {path}; nothing of this call was written")
    return InternalError(
        f"{path} failed: {error}",
        next_step="Stop the program and delete the file; it is made again from the ledger.",
    )
