import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.audit import AuditEntry, AuditLog
from cloud.audit import SqliteAuditLog
from cloud.bus.schema import DatabaseCorrupt

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _entry(key: str, **details: object) -> AuditEntry:
    return AuditEntry(key=key, at=NOW, task_id="t", caller="anna", action="sql.read", details=details)


def test_an_entry_is_appended_once_by_its_key_and_survives(tmp_path: Path) -> None:
    log = SqliteAuditLog(tmp_path / "audit.sqlite", clock=lambda: NOW)
    assert isinstance(log, AuditLog)
    first = log.append(_entry("t/0", table="sales"))
    again = log.append(_entry("t/0", table="something else"))
    second = log.append(_entry("t/1"))
    assert (first.sequence, first.duplicate) == (1, False)
    assert (again.sequence, again.sha256, again.duplicate) == (1, first.sha256, True)
    assert second.sequence == 2
    log.close()
    reopened = SqliteAuditLog(tmp_path / "audit.sqlite", clock=lambda: NOW)
    assert [(entry["key"], entry["details"]) for entry in reopened.entries()] == [
        ("t/0", {"table": "sales"}),
        ("t/1", {}),
    ]
    reopened.close()


def test_many_threads_append_without_loss(tmp_path: Path) -> None:
    log = SqliteAuditLog(tmp_path / "audit.sqlite", clock=lambda: NOW)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda n: log.append(_entry(f"t/{n % 50}")), range(200)))
    assert sum(not receipt.duplicate for receipt in receipts) == 50
    assert sorted({receipt.sequence for receipt in receipts}) == list(range(1, 51))
    log.close()


def test_entries_cannot_be_changed_or_removed(tmp_path: Path) -> None:
    log = SqliteAuditLog(tmp_path / "audit.sqlite", clock=lambda: NOW)
    log.append(_entry("t/0"))
    log.close()
    with sqlite3.connect(tmp_path / "audit.sqlite") as connection:
        for statement in ("UPDATE entries SET body = ''", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    connection.close()


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "audit.sqlite").write_bytes(b"nonsense " * 1000)
    with pytest.raises(DatabaseCorrupt):
        SqliteAuditLog(tmp_path / "audit.sqlite", clock=lambda: NOW)
