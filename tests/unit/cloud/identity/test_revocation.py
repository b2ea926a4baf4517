"""What is asked at every call."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cloud.identity import revocation
from cloud.identity.attempts import AttemptLimiter, TooManyAttempts
from cloud.identity.records import CertificateState
from cloud.identity.revocation import Revocations
from cloud.identity.store import IdentityStore
from podium.errors import DataCorrupt, NotFound, StorageFull
from podium.link.certificates import (
    CertificateExpired,
    CertificateRevoked,
    CertificateSuperseded,
    CertificateUnknown,
)
from tests.unit.cloud.identity.ground import Ground, Machine


def test_states_survive_a_restart(ground: Ground, tmp_path: Path) -> None:
    kept, revoked, old = (ground.enrolled(name) for name in ("a", "b", "c"))
    new = ground.renewed(old)
    ground.revocations.check(new.serial)
    ground.desk.revoke("device", "b", reason="", by="ann")
    ground.revocations.flush()
    ground.store.close()
    store = IdentityStore(tmp_path / "identity.sqlite")
    after = Revocations(store, clock=ground.clock)
    ground.clock.advance(minutes=1)
    after.check(kept.serial)
    after.check(new.serial)
    with pytest.raises(CertificateRevoked):
        after.check(revoked.serial)
    with pytest.raises(CertificateSuperseded):
        after.check(old.serial)
    seen = {machine.name: machine.last_seen_time for machine in store.machines()}
    assert seen["c"] is not None
    assert seen["b"] is None
    store.close()


def test_a_first_use_does_not_undo_a_revocation_that_memory_does_not_know_yet(ground: Ground) -> None:
    machine = ground.enrolled("a")
    ground.store.set_states([machine.serial], CertificateState.REVOKED, ground.clock())
    assert ground.revocations.state(machine.serial) is CertificateState.ISSUED
    with pytest.raises(CertificateRevoked):
        ground.revocations.check(machine.serial)
    known = ground.store.certificate(machine.serial)
    assert known is not None
    assert known.state is CertificateState.REVOKED


def test_one_whose_record_could_not_be_written_is_unknown(ground: Ground) -> None:
    machine = ground.enrolled("a")
    with ground.store.transaction() as rows:
        rows.execute("DELETE FROM certificates")
    for _ in range(2):
        with pytest.raises(CertificateUnknown):
            ground.revocations.check(machine.serial)


def test_revocation_and_first_use_at_the_same_time_end_revoked(ground: Ground) -> None:
    for number in range(30):
        machine = ground.enrolled(f"pi-{number}")
        start = threading.Barrier(2)

        def use(serial: int = machine.serial, start: threading.Barrier = start) -> None:
            start.wait()
            with contextlib.suppress(CertificateRevoked):
                ground.revocations.check(serial)

        using = threading.Thread(target=use)
        using.start()
        start.wait()
        ground.desk.revoke("device", f"pi-{number}", reason="", by="ann")
        using.join()
        with pytest.raises(CertificateRevoked):
            ground.revocations.check(machine.serial)
        known = ground.store.certificate(machine.serial)
        assert known is not None
        assert known.state is CertificateState.REVOKED


def test_everybody_who_asked_ends_the_calls_of_who_was_revoked(ground: Ground) -> None:
    ended: list[tuple[str, str]] = []

    def end(kind: str, name: str) -> int:
        ended.append((kind, name))
        return 3

    ground.revocations.on_revoked(end)
    ground.revocations.on_revoked(end)
    assert ground.revocations.tell("device", "a") == 6
    assert ended == [("device", "a")] * 2


def test_a_connection_that_outlived_its_certificate_is_told_so(ground: Ground) -> None:
    machine = ground.enrolled("a")
    ground.clock.advance(days=90)
    with pytest.raises(CertificateExpired) as raised:
        ground.revocations.check(machine.serial)
    assert raised.value.retryable


def test_who_was_seen_is_in_the_list_at_once(ground: Ground) -> None:
    machine = ground.enrolled("a")
    assert ground.desk.machines()[0].last_seen_time is None
    ground.revocations.check(machine.serial)
    assert ground.desk.machines()[0].last_seen_time == ground.clock()
    assert ground.store.machines()[0].last_seen_time is None
    ground.revocations.flush()
    assert ground.desk.machines() == ground.store.machines()
    assert ground.store.machines()[0].last_seen_time == ground.clock()


def test_who_was_seen_is_on_record_once_the_disk_has_room_again(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = ground.enrolled("a")
    ground.revocations.check(machine.serial)
    note = ground.store.seen
    refused, noted = threading.Event(), threading.Event()

    def full(kind: str, name: str, now: datetime) -> None:
        refused.set()
        raise StorageFull("no room")

    def room(kind: str, name: str, now: datetime) -> None:
        note(kind, name, now)
        noted.set()

    async def keep() -> None:
        keeping = asyncio.create_task(ground.revocations.keep_flushed())
        assert await asyncio.to_thread(refused.wait, 20)
        monkeypatch.setattr(ground.store, "seen", room)
        assert await asyncio.to_thread(noted.wait, 20)
        keeping.cancel()

    monkeypatch.setattr(ground.store, "seen", full)
    monkeypatch.setattr(revocation, "_FLUSHED_EVERY", timedelta(milliseconds=10))
    asyncio.run(keep())
    assert "last seen is not on record: STORAGE_FULL" in caplog.text
    assert ground.store.machines()[0].last_seen_time == ground.clock()


def test_nobody_can_revoke_who_is_not_there(ground: Ground) -> None:
    with pytest.raises(NotFound):
        ground.desk.revoke("device", "nobody", reason="", by="ann")
    ground.enrolled("a")
    with pytest.raises(NotFound):
        ground.desk.revoke("site", "a", reason="", by="ann")


def test_two_connections_are_recorded_for_machines_only(ground: Ground) -> None:
    ground.desk.note_contested("device", "a", "two processes")
    assert "identity.contested" not in ground.audit.actions
    ground.enrolled("a")
    ground.desk.note_contested("device", "a", "two processes")
    assert ground.audit.entries[-1].details == {"kind": "device", "name": "a", "reason": "two processes"}
    assert ground.desk.machines()[0].contested_reason == "two processes"


def test_what_is_over_for_long_is_forgotten_and_what_may_be_in_use_is_not(ground: Ground) -> None:
    old = ground.enrolled("a")
    lost = ground.renewed(old)
    new = ground.renewed(old)
    ground.revocations.check(new.serial)
    assert ground.store.forget_certificates(ground.clock()) == 0
    ground.clock.advance(days=1000)
    assert ground.store.forget_certificates(ground.clock()) == 2
    assert [item.serial for item in ground.store.certificates()] == [new.serial]
    assert ground.store.certificates()[0].state is CertificateState.CURRENT
    assert lost.serial != new.serial


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "identity.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(DataCorrupt):
        IdentityStore(tmp_path / "identity.sqlite")


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_refused_attempts_are_counted_by_address() -> None:
    clock = Seconds()
    attempts = AttemptLimiter(clock_s=clock, most=3)
    for port in range(3):
        attempts.check(f"ipv4:192.0.2.7:{port}")
        attempts.refused(f"ipv4:192.0.2.7:{port}")
    with pytest.raises(TooManyAttempts) as raised:
        attempts.check("ipv4:192.0.2.7:99")
    assert raised.value.retryable
    attempts.check("ipv4:192.0.2.8:1")
    clock.now = 60.0
    attempts.check("ipv4:192.0.2.7:99")


def test_addresses_of_one_network_count_as_one() -> None:
    attempts = AttemptLimiter(clock_s=Seconds(), most=1)
    attempts.refused("ipv6:%5B2001:db8::1%5D:5000")
    with pytest.raises(TooManyAttempts):
        attempts.check("ipv6:[2001:db8::ffff]:7")
    attempts.check("ipv6:%5B2001:db8:0:1::1%5D:5000")
    attempts.refused("unix:/tmp/x")
    attempts.check("ipv6:%5B::1%5D:5000")
    attempts.check("ipv6:nonsense")


def test_addresses_are_not_remembered_without_end() -> None:
    attempts = AttemptLimiter(clock_s=Seconds(), most=1)
    for number in range(10_050):
        attempts.refused(f"ipv4:10.{number >> 16}.{number >> 8 & 255}.{number & 255}:1")
    assert len(attempts._refused) == 10_000


class _FullAtTheEnd:
    """A connection to a disk that has room for everything but the end of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(statement, *parameters)


def _state_after_restart(folder: Path, ground: Ground, serial: int) -> CertificateState | None:
    store = IdentityStore(folder / "identity.sqlite")
    try:
        return Revocations(store, clock=ground.clock).state(serial)
    finally:
        store.close()


@pytest.mark.parametrize("what", ["revoke", "enrol", "renew", "first use"])
def test_what_a_full_disk_did_not_take_memory_does_not_know_either(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    machine, text = ground.enrolled("a"), ground.token("a")
    if what != "first use":
        ground.revocations.check(machine.serial)
    good = ground.revocations.state(machine.serial)
    act: dict[str, Callable[[], object]] = {
        "revoke": lambda: ground.desk.revoke("device", "a", reason="", by="ann"),
        "enrol": lambda: ground.desk.enrol(text, Machine().csr),
        "renew": lambda: ground.renew(machine, Machine()),
        "first use": lambda: ground.revocations.check(machine.serial),
    }
    with monkeypatch.context() as patched:
        patched.setattr(ground.store, "_connection", _FullAtTheEnd(ground.store._connection))
        with pytest.raises(StorageFull) as refused:
            act[what]()
    if what == "revoke":
        assert "still good" in refused.value.next_step
    assert ground.revocations.state(machine.serial) is good
    assert _state_after_restart(tmp_path, ground, machine.serial) is good
    assert len(ground.revocations.good("device")) == 1
    act[what]()  # once there is room
    state = ground.revocations.state(machine.serial)
    assert _state_after_restart(tmp_path, ground, machine.serial) is state
    assert (state is CertificateState.REVOKED) is (what in ("revoke", "enrol"))


def test_a_revocation_that_the_ledger_did_not_take_holds_and_says_so(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = ground.enrolled("a")

    def full(entry: object) -> None:
        raise StorageFull("no room in the ledger")

    with monkeypatch.context() as patched:
        patched.setattr(ground.audit, "append", full)
        with pytest.raises(StorageFull) as refused:
            ground.desk.revoke("device", "a", reason="", by="ann")
    assert "are taken back" in refused.value.next_step
    assert ground.revocations.is_revoked(machine.serial)
    assert not ground.revocations.holds_good("device", "a")
    assert _state_after_restart(tmp_path, ground, machine.serial) is CertificateState.REVOKED
    ground.desk.revoke("device", "a", reason="", by="ann")
    assert "identity.revoked" in ground.audit.actions
