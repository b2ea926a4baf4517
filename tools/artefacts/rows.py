"""Artefacts and changes as rows of the registry's tables, and back."""

import json
import sqlite3
from datetime import datetime
from typing import Any

from tools.artefacts.records import (
    Artefact,
    Change,
    Current,
    Description,
    Name,
    Reference,
    Signature,
    Who,
    canonical_json,
)

_ARTEFACT = (
    "SELECT number, kind, name, version, sha256, size_bytes, package_model, description, created_by, created_at,"
    " note FROM artefacts"
)
_CHANGE = "SELECT sequence, kind, name, action, from_version, to_version, by, why, at FROM changes"


def artefact(connection: sqlite3.Connection, reference: Reference) -> Artefact | None:
    """One version, or None."""
    row = connection.execute(
        f"{_ARTEFACT} WHERE kind = ? AND name = ? AND version = ?",
        (reference.name.kind, reference.name.name, reference.version),
    ).fetchone()
    return None if row is None else _artefact(connection, row)


def artefacts(connection: sqlite3.Connection, kind: str | None, name: str | None) -> tuple[Artefact, ...]:
    """Versions in the order they were added."""
    rows = connection.execute(
        f"{_ARTEFACT} WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR name = ?2) ORDER BY number", (kind, name)
    ).fetchall()
    return tuple(_artefact(connection, row) for row in rows)


def insert_artefact(connection: sqlite3.Connection, new: Artefact) -> None:
    """Write one version with its signatures; it must not be there yet."""
    description = new.description
    body = {
        "media_type": description.media_type,
        "parents": [str(parent) for parent in description.parents],
        "metrics": dict(description.metrics),
        "trial": dict(description.trial),
    }
    reference = new.reference
    connection.execute(
        "INSERT INTO artefacts (kind, name, version, sha256, size_bytes, package_model, description, created_by,"
        " created_at, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            reference.name.kind,
            reference.name.name,
            reference.version,
            new.sha256,
            new.size_bytes,
            new.package_model,
            canonical_json(body).decode("utf-8"),
            new.created_by,
            new.created_at.isoformat(),
            new.note,
        ),
    )


def insert_signatures(
    connection: sqlite3.Connection, reference: Reference, signatures: tuple[Signature, ...], by: str, at: datetime
) -> None:
    """Write signatures of a version that is there; those that are there already stay."""
    connection.executemany(
        "INSERT INTO signatures (artefact, key_id, value, added_by, added_at)"
        " SELECT number, ?, ?, ?, ? FROM artefacts WHERE kind = ? AND name = ? AND version = ?"
        " ON CONFLICT DO NOTHING",
        [
            (
                item.key_id,
                item.value,
                by,
                at.isoformat(),
                reference.name.kind,
                reference.name.name,
                reference.version,
            )
            for item in signatures
        ],
    )


def current(connection: sqlite3.Connection, name: Name) -> Current | None:
    """Which version of a name is current, or None."""
    row = connection.execute(
        "SELECT version, pinned, sequence FROM current WHERE kind = ? AND name = ?", (name.kind, name.name)
    ).fetchone()
    return None if row is None else Current(name=name, version=row[0], pinned=bool(row[1]), sequence=row[2])


def names(connection: sqlite3.Connection) -> tuple[Name, ...]:
    """Every name that has a version."""
    rows = connection.execute("SELECT DISTINCT kind, name FROM artefacts ORDER BY kind, name").fetchall()
    return tuple(Name(kind=kind, name=name) for kind, name in rows)


def changes(connection: sqlite3.Connection, name: Name | None, after: int = 0) -> tuple[Change, ...]:
    """Moves of current versions after a number, oldest first."""
    kind, text = (None, None) if name is None else (name.kind, name.name)
    rows = connection.execute(
        f"{_CHANGE} WHERE sequence > ?3 AND (?1 IS NULL OR (kind = ?1 AND name = ?2)) ORDER BY sequence",
        (kind, text, after),
    ).fetchall()
    return tuple(_change(row) for row in rows)


def move(
    connection: sqlite3.Connection,
    name: Name,
    before: Current | None,
    *,
    action: str,
    version: str,
    who: Who,
    at: datetime,
) -> Current:
    """Write a change and what is current after it; the caller has compared `before` in this transaction."""
    pinned = action == "pin"
    cursor = connection.execute(
        "INSERT INTO changes (kind, name, action, from_version, to_version, by, why, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            name.kind,
            name.name,
            action,
            None if before is None else before.version,
            version,
            who.name,
            who.why,
            at.isoformat(),
        ),
    )
    sequence = int(cursor.lastrowid or 0)
    connection.execute(
        "INSERT INTO current (kind, name, version, pinned, sequence) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, pinned = excluded.pinned,"
        " sequence = excluded.sequence",
        (name.kind, name.name, version, int(pinned), sequence),
    )
    return Current(name=name, version=version, pinned=pinned, sequence=sequence)


def _artefact(connection: sqlite3.Connection, row: tuple[Any, ...]) -> Artefact:
    number, kind, name, version, sha256, size_bytes, package_model, body, created_by, created_at, note = row
    content = json.loads(body)
    signatures = connection.execute(
        "SELECT key_id, value FROM signatures WHERE artefact = ? ORDER BY added_at, key_id", (number,)
    ).fetchall()
    return Artefact(
        description=Description(
            reference=Reference(name=Name(kind=kind, name=name), version=version),
            media_type=content["media_type"],
            parents=tuple(Reference.parse(item) for item in content["parents"]),
            metrics=content["metrics"],
            trial=content["trial"],
        ),
        sha256=sha256,
        size_bytes=size_bytes,
        package_model=package_model,
        created_by=created_by,
        created_at=datetime.fromisoformat(created_at),
        note=note,
        signatures=tuple(Signature(key_id=key_id, value=value) for key_id, value in signatures),
    )


def _change(row: tuple[Any, ...]) -> Change:
    sequence, kind, name, action, from_version, to_version, by, why, at = row
    return Change(
        sequence=sequence,
        name=Name(kind=kind, name=name),
        action=action,
        from_version=from_version,
        to_version=to_version,
        by=by,
        why=why,
        at=datetime.fromisoformat(at),
    )
