"""Reads who stored what from the index of a data directory, also while a server uses it."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cloud.blobs.index import FILE_NAME
from cloud.bus.schema import podium_error
from podium.errors import NotFound

FOLDER = "blobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBlob:
    """One blob, as it is listed."""

    sha256: str
    size_bytes: int
    media_type: str
    stored_at: datetime
    used_at: datetime
    owners: Sequence[str]
    """Callers who sent its bytes."""
    references: int
    """Tasks that have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerUsage:
    """What one caller stores; a blob of two callers counts for both."""

    caller: str
    blobs: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What is stored."""

    blobs: int
    total_bytes: int
    referenced_blobs: int
    referenced_bytes: int
    unfinished_uploads: int
    unfinished_bytes: int
    callers: Sequence[CallerUsage]
    """Those who store most first."""


def list_blobs(data: Path, *, caller: str = "", unreferenced: bool = False, limit: int = 50) -> list[ListedBlob]:
    """Blobs, the newest first.

    Args:
        data: the data directory.
        caller: only those that this caller stored; '' for all.
        unreferenced: only those that no task refers to.
        limit: how many at most.

    Raises:
        NotFound: there is no index.
        DatabaseCorrupt, InternalError: it cannot be read.
    """
    with _reading(data) as connection:
        rows = connection.execute(
            "SELECT sha256, size, media, created, last_used,"
            " (SELECT count(*) FROM refs WHERE refs.sha256 = blobs.sha256) AS referred FROM blobs"
            " WHERE (? = '' OR EXISTS (SELECT 1 FROM owners WHERE owners.sha256 = blobs.sha256 AND caller = ?))"
            " AND (NOT ? OR referred = 0) ORDER BY created DESC, sha256 LIMIT ?",
            (caller, caller, unreferenced, limit),
        ).fetchall()
        return [
            ListedBlob(
                sha256=sha256,
                size_bytes=size,
                media_type=media,
                stored_at=datetime.fromtimestamp(created, UTC),
                used_at=datetime.fromtimestamp(used, UTC),
                owners=[
                    row[0]
                    for row in connection.execute(
                        "SELECT caller FROM owners WHERE sha256 = ? ORDER BY caller", (sha256,)
                    )
                ],
                references=references,
            )
            for sha256, size, media, created, used, references in rows
        ]


def usage(data: Path, *, callers: int = 20) -> Usage:
    """How much is stored, and by whom.

    Raises:
        NotFound: there is no index.
        DatabaseCorrupt, InternalError: it cannot be read.
    """
    with _reading(data) as connection:
        count, total = connection.execute("SELECT count(*), coalesce(sum(size), 0) FROM blobs").fetchone()
        referred, referred_bytes = connection.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM blobs WHERE sha256 IN (SELECT sha256 FROM refs)"
        ).fetchone()
        largest = connection.execute(
            "SELECT caller, count(*), sum(size) AS held FROM owners JOIN blobs USING (sha256)"
            " GROUP BY caller ORDER BY held DESC, caller LIMIT ?",
            (callers,),
        ).fetchall()
    unfinished = [path.stat().st_size for path in (data / FOLDER / "partial").glob("*")]
    return Usage(
        blobs=count,
        total_bytes=total,
        referenced_blobs=referred,
        referenced_bytes=referred_bytes,
        unfinished_uploads=len(unfinished),
        unfinished_bytes=sum(unfinished),
        callers=[CallerUsage(caller=caller, blobs=blobs, total_bytes=held) for caller, blobs, held in largest],
    )


@contextmanager
def _reading(data: Path) -> Iterator[sqlite3.Connection]:
    path = (data / FOLDER / FILE_NAME).resolve()
    if not path.exists():
        raise NotFound(
            f"there is no index of blobs at {path}",
            next_step="Name the data directory of a server with --data; a server makes the index when it starts.",
        )
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise podium_error(error, path) from error
