"""How far every machine's messages were applied, in a SQLite file: a restarted server knows what it has taken."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from cloud.bus.schema import opened, podium_error
from cloud.bus.writer import Writer
from podium.link.inbox import SessionMark

_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
  peer TEXT NOT NULL,
  session_id TEXT NOT NULL,
  through INTEGER NOT NULL,
  began INTEGER NOT NULL,
  PRIMARY KEY (peer, session_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_by_age ON sessions (began);
"""
_KEPT_OF_ONE = 8
_KEPT_OF_ALL = 50_000
_IDLE_POLL_S = 3600.0
"""Nobody else writes to the file, so there is no need to look."""


class SqliteInbox:
    """An `InboxStore` that survives `kill -9`; made by `open`.

    A mark is not fsynced: after a power cut it may lie behind what was acknowledged. The machine then says where
    it goes on (`Hello.next_sequence`), and is believed.
    """

    def __init__(self, writer: Writer) -> None:
        """Use `open`."""
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> "SqliteInbox":
        """Open the file, making it when it is not there.

        Raises:
            DatabaseCorrupt: it is damaged.
            StorageFull: there is no room.
            InternalError: it cannot be opened.
        """
        connection = await asyncio.to_thread(_connect, path)
        loop = asyncio.get_running_loop()
        return cls(Writer(connection, path, loop=loop, on_foreign_write=lambda: None, poll_s=_IDLE_POLL_S))

    async def close(self) -> None:
        """Write what waits and close the file."""
        await self._writer.close()

    async def sessions(self, peer: str) -> Sequence[SessionMark]:
        """See `InboxStore`."""

        def read(connection: sqlite3.Connection) -> list[SessionMark]:
            rows = connection.execute(
                "SELECT session_id, through FROM sessions WHERE peer = ? ORDER BY began", (peer,)
            )
            return [SessionMark(session_id=session_id, through=through) for session_id, through in rows]

        return await self._writer.submit(read)

    async def begin(self, peer: str, session_id: str, through: int) -> None:
        """See `InboxStore`."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, (SELECT coalesce(max(began), 0) + 1 FROM sessions))"
                " ON CONFLICT DO UPDATE SET through = excluded.through, began = excluded.began",
                (peer, session_id, through),
            )
            connection.execute(
                "DELETE FROM sessions WHERE peer = ? AND began <="
                " (SELECT began FROM sessions WHERE peer = ? ORDER BY began DESC LIMIT 1 OFFSET ?)",
                (peer, peer, _KEPT_OF_ONE),
            )
            connection.execute(
                "DELETE FROM sessions WHERE began <= (SELECT max(began) FROM sessions) - ?", (_KEPT_OF_ALL,)
            )

        await self._writer.submit(write)

    async def record(self, peer: str, session_id: str, through: int) -> None:
        """See `InboxStore`."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE sessions SET through = ? WHERE peer = ? AND session_id = ?", (through, peer, session_id)
            )

        await self._writer.submit(write)


def _connect(path: Path) -> sqlite3.Connection:
    connection = opened(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        connection.executescript(_TABLES)
    except sqlite3.Error as error:
        connection.close()
        raise podium_error(error, path) from error
    return connection
