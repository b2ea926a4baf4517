from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.audit import AuditEntry, AuditLog
from cloud.audit import LedgerAuditLog
from podium.errors import InvalidRequest
from tools.ledger.errors import LedgerCorrupt, LedgerInUse
from tools.ledger.ledger import Ledger
from tools.ledger.reading import verify

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def _open(folder: Path) -> LedgerAuditLog:
    return LedgerAuditLog(folder, clock=lambda: NOW)


def _entry(key: str, **details: object) -> AuditEntry:
    return AuditEntry(key=key, at=NOW, task_id="t", caller="anna", action="sql.read", details=details)


def test_an_entry_is_appended_once_by_its_key_and_survives(tmp_path: Path) -> None:
    log = _open(tmp_path)
    assert isinstance(log, AuditLog)
    first = log.append(_entry("t/0", table="sales"))
    again = log.append(_entry("t/0", table="something else"))
    second = log.append(_entry("t/1"))
    assert (first.sequence, first.duplicate) == (1, False)
    assert (again.sequence, again.sha256, again.duplicate) == (1, first.sha256, True)
    assert second.sequence == 2
    log.close()
    reopened = _open(tmp_path)
    assert reopened.append(_entry("t/0")) == again
    found = reopened.entries()
    assert [(entry["key"], entry["details"]) for entry in found] == [("t/0", {"table": "sales"}), ("t/1", {})]
    assert found[0] == {
        "key": "t/0",
        "at": NOW.isoformat(),
        "recorded_at": NOW.isoformat(),
        "task_id": "t",
        "caller": "anna",
        "action": "sql.read",
        "details": {"table": "sales"},
    }
    reopened.close()


def test_many_threads_append_without_loss(tmp_path: Path) -> None:
    log = _open(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda n: log.append(_entry(f"t/{n % 50}")), range(200)))
    assert sum(not receipt.duplicate for receipt in receipts) == 50
    assert sorted({receipt.sequence for receipt in receipts}) == list(range(1, 51))
    log.close()


def test_a_change_of_an_entry_is_noticed(tmp_path: Path) -> None:
    log = _open(tmp_path)
    log.append(_entry("t/0", table="sales"))
    log.append(_entry("t/1"))
    log.close()
    (segment,) = tmp_path.glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"caller":"anna"', b'"caller":"otto"', 1))
    damage = verify(tmp_path).damage
    assert damage is not None
    assert (damage.sequence, damage.reason) == (1, "the body does not match its commitment")
    with pytest.raises(LedgerCorrupt, match="entry 1"):
        _open(tmp_path)


def test_a_redacted_entry_shows_that_it_was_there(tmp_path: Path) -> None:
    log = _open(tmp_path)
    receipt = log.append(_entry("t/0", table="sales"))
    log.close()
    with Ledger(tmp_path, clock=lambda: NOW) as ledger:
        ledger.redact(receipt.sequence, reason="asked to", by="anna")
    log = _open(tmp_path)
    assert log.entries() == [{"key": "t/0", "recorded_at": NOW.isoformat(), "redacted": True}]
    assert log.append(_entry("t/0")).sha256 == receipt.sha256
    log.close()


def test_two_logs_never_write_to_one_ledger(tmp_path: Path) -> None:
    log = _open(tmp_path)
    with pytest.raises(LedgerInUse):
        _open(tmp_path)
    log.close()


def test_details_that_are_not_json_are_refused_and_not_quoted(tmp_path: Path) -> None:
    log = _open(tmp_path)
    with pytest.raises(InvalidRequest) as refused:
        log.append(_entry("t/0", secret=float("nan")))
    assert refused.value.field == "body"
    assert "secret" not in str(refused.value)
    assert log.entries() == []
    log.close()
