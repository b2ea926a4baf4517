"""Promotions and trust in keys are in the audit ledger, each once, whoever did them and whenever."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agents.audit import AuditEntry, AuditReceipt
from cloud.artefact_audit import ArtefactAudit
from cloud.audit import LedgerAuditLog
from podium.errors import StorageFull
from tests.unit.tools.artefacts.signed import ANN, Desk, now, version
from tools.artefacts.records import Name, Who

RULES = Name(kind="planner", name="rules")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    for number in ("1", "2"):
        desk.add(number, number.encode(), name=RULES, media_type="text/plain")
    yield desk
    desk.registry.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LedgerAuditLog]:
    log = LedgerAuditLog(tmp_path / "audit", clock=now)
    yield log
    log.close()


def actions(log: LedgerAuditLog) -> list[object]:
    return [entry["action"] for entry in log.entries()]


def test_every_move_is_copied_once(desk: Desk, log: LedgerAuditLog) -> None:
    audit = ArtefactAudit(desk.registry, log)
    desk.registry.promote(version("1", RULES), who=Who(name="bob", why="measured"))
    audit.copy_new()
    desk.registry.promote(version("2", RULES), who=ANN)
    desk.registry.roll_back(RULES, who=ANN)
    desk.registry.keys.distrust(desk.key.key_id, who=Who(name="eve", why="lost"))
    audit.copy_new()
    audit.copy_new()
    ArtefactAudit(desk.registry, log).copy_new()  # as after a restart
    assert actions(log) == [
        "artefact.promote",
        "artefact.trust",
        "artefact.promote",
        "artefact.rollback",
        "artefact.distrust",
    ]
    first, last = log.entries()[0], log.entries()[-1]
    assert (first["caller"], first["details"]) == (
        "bob",
        {"name": "planner/rules", "from": None, "to": "1", "why": "measured"},
    )
    assert (last["caller"], last["details"]["key_id"]) == ("eve", desk.key.key_id)  # type: ignore[index]


def test_it_follows_and_copies_a_last_time_when_it_is_closed(desk: Desk, log: LedgerAuditLog) -> None:
    copied = threading.Semaphore(0)

    class Telling:
        def append(self, entry: AuditEntry) -> AuditReceipt:
            receipt = log.append(entry)
            copied.release()
            return receipt

    async def serve() -> None:
        audit = ArtefactAudit(desk.registry, Telling())
        audit.start(every=timedelta(milliseconds=10))
        desk.registry.promote(version("1", RULES), who=ANN)
        for _ in range(2):
            await asyncio.to_thread(copied.acquire)
        desk.registry.promote(version("2", RULES), who=ANN)
        await audit.close()

    asyncio.run(serve())
    assert actions(log).count("artefact.promote") == 2


def test_a_ledger_that_is_full_loses_nothing(desk: Desk, log: LedgerAuditLog) -> None:
    class Full:
        room = 1

        def append(self, entry: AuditEntry) -> AuditReceipt:
            if self.room == 0:
                raise StorageFull("no room")
            self.room -= 1
            return log.append(entry)

    full = Full()
    audit = ArtefactAudit(desk.registry, full)
    for number in ("1", "2"):
        desk.registry.promote(version(number, RULES), who=ANN)
    with pytest.raises(StorageFull):
        audit.copy_new()
    full.room = 10
    audit.copy_new()
    assert actions(log) == ["artefact.promote", "artefact.promote", "artefact.trust"]
