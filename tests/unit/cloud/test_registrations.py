"""Registrations on disk: all or nothing, on record before anybody sees them, still there after kill -9."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.audit import AuditEntry, AuditReceipt
from agents.foreign_code import ForeignPolicy
from agents.registry import AgentRegistry, RegisteredAgent
from cloud.registrations import REGISTRATIONS, Registrations
from podium.errors import Conflict, InvalidRequest, NotFound, PodiumError, StorageFull
from tests.unit.agents.specs import NOW, spec

POLICY = ForeignPolicy(modules=("tests.unit.agents",))


class MemoryAudit:
    """An audit log that remembers, and can fail."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.before: Callable[[], None] = lambda: None

    def append(self, entry: AuditEntry) -> AuditReceipt:
        self.before()
        self.entries.append(entry)
        return AuditReceipt(sequence=len(self.entries), sha256="0" * 64, duplicate=False)


class Desk:
    """Registrations over a registry with one agent that came with the server."""

    def __init__(self, folder: Path, ships: Sequence[str] = ()) -> None:
        self.registry = AgentRegistry()
        for name in ("shipped", *ships):
            self.registry.register(spec(name=name))
        self.audit = MemoryAudit()
        numbers = iter(range(10**6))
        self.registrations = Registrations(
            folder / REGISTRATIONS,
            self.registry,
            self.audit,
            clock=lambda: NOW,
            new_id=lambda: str(next(numbers)),
        )
        self.left_out = self.registrations.load(POLICY)

    def register(self, version: str = "1.0.0") -> RegisteredAgent:
        return self.registrations.register(RegisteredAgent.of(spec(version=version)), by="ann")


@contextmanager
def _desk(folder: Path, ships: Sequence[str] = ()) -> Iterator[Desk]:
    desk = Desk(folder, ships)
    try:
        yield desk
    finally:
        desk.registrations.close()


def _register_many(desk: Desk) -> None:
    for number in range(2, 500):
        desk.register(f"{number}.0.0")


def _full() -> None:
    raise StorageFull("no room left for the audit log")


def test_what_cannot_be_recorded_does_not_happen(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        desk.audit.before = _full
        changes: list[Callable[[], object]] = [
            lambda: desk.register("2.0.0"),
            lambda: desk.registrations.set_enabled("echo", "", False, by="ann"),
            lambda: desk.registrations.set_enabled("shipped", "", False, by="ann"),
            lambda: desk.registrations.set_weights("echo", {"1.0.0": 5}, by="ann"),
        ]
        for change in changes:
            with pytest.raises(StorageFull):
                change()
        seen = [(agent.spec.name, agent.spec.version, agent.enabled) for agent in desk.registry.all_versions()]
        assert seen == [("echo", "1.0.0", True), ("shipped", "1.0.0", True)]
        desk.audit.before = lambda: None
        desk.register("3.0.0")
    with _desk(tmp_path) as desk:
        assert [agent.spec.version for agent in desk.registry.versions("echo")] == ["1.0.0", "3.0.0"]
        assert not desk.registry.has_weights("echo")


def test_nobody_sees_a_change_before_it_is_on_record(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        seen: list[RegisteredAgent | None] = []
        desk.audit.before = lambda: seen.append(desk.registry.find("echo"))
        desk.register()
        assert seen == [None]
        assert desk.registry.find("echo") is not None
        (entry,) = desk.audit.entries
        assert (entry.action, entry.caller, entry.at) == ("agent.register", "ann", NOW)
        assert entry.details["agent"] == "echo"
        assert entry.details["manifest_sha256"] == desk.registry.get("echo").manifest_sha256


def test_a_full_disk_refuses_and_keeps_what_there_is(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        pages = desk.registrations._connection.execute("PRAGMA page_count").fetchone()[0]
        desk.registrations._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull):
            _register_many(desk)
        kept = [agent.spec.version for agent in desk.registry.versions("echo")]
    with _desk(tmp_path) as desk:
        assert [agent.spec.version for agent in desk.registry.versions("echo")] == kept


def test_of_many_who_register_one_version_one_does(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        outcomes: list[str] = []

        def register() -> None:
            try:
                desk.register()
            except Conflict:
                outcomes.append("refused")
            else:
                outcomes.append("registered")

        threads = [threading.Thread(target=register) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(outcomes) == ["refused"] * 7 + ["registered"]
        assert len(desk.audit.entries) == 1


def test_weights_and_switches_come_back_and_gaps_are_no_harm(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        desk.register("2.0.0")
        desk.registrations.set_weights("echo", {"1.0.0": 3, "2.0.0": 7}, by="bob")
        desk.registrations.set_enabled("echo", "2.0.0", False, by="bob")
        desk.registrations.set_enabled("shipped", "", False, by="bob")
    with _desk(tmp_path) as desk:
        found = [(agent.weight, agent.enabled) for agent in desk.registry.versions("echo")]
        assert found == [(3, True), (7, False)]
        assert not desk.registry.get("shipped").enabled
        registration = desk.registry.get("echo", "2.0.0").registration
        assert registration is not None
        assert (registration.by, registration.at) == ("ann", NOW)
        desk.registrations._connection.execute("DELETE FROM registrations WHERE version = '1.0.0'")
    with _desk(tmp_path) as desk:
        assert desk.left_out == ()
        assert [agent.spec.version for agent in desk.registry.versions("echo")] == ["2.0.0"]


def test_a_registered_version_that_now_ships_or_is_another_is_left_out(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        desk.register("2.0.0")
        desk.registrations._connection.execute(
            "UPDATE registrations SET version = '3.0.0' WHERE version = '2.0.0'"
        )
    with _desk(tmp_path, ships=("echo",)) as desk:
        assert [said.split(":")[0] for said in desk.left_out] == [
            "agent echo 1.0.0 was left out",
            "agent echo 3.0.0 was left out",
        ]
        assert [agent.registration for agent in desk.registry.versions("echo")] == [None]


def test_a_manifest_that_was_changed_on_disk_is_left_out(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        changed = "UPDATE registrations SET manifest = replace(manifest, 'count', 'total')"
        assert desk.registrations._connection.execute(changed).rowcount == 1
    with _desk(tmp_path) as desk:
        (said,) = desk.left_out
        assert "is not the one that was registered" in said
        (left_out,) = desk.registrations.left_out
        assert (left_out.name, left_out.version) == ("echo", "1.0.0")
        assert "is not the one that was registered" in left_out.reason
        assert desk.registry.find("echo") is None
        with pytest.raises(Conflict, match="left out at the start"):
            desk.register("1.0.0")
        desk.register("1.0.1")


def test_a_manifest_nested_beyond_reading_is_left_out(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register("1.0.0")
        desk.registrations._connection.execute("UPDATE registrations SET manifest = ?", ("[" * 100_000,))
    with _desk(tmp_path) as desk:
        (said,) = desk.left_out
        assert "echo 1.0.0 was left out" in said


def test_what_makes_no_sense_leaves_no_trace(tmp_path: Path) -> None:
    with _desk(tmp_path) as desk:
        desk.register()
        recorded = len(desk.audit.entries)
        for change, error in (
            (lambda: desk.register(), Conflict),
            (lambda: desk.registrations.set_enabled("nobody", "", True, by="x"), NotFound),
            (lambda: desk.registrations.set_weights("echo", {"1.0.0": 0}, by="x"), InvalidRequest),
        ):
            with pytest.raises(error):
                change()
        assert len(desk.audit.entries) == recorded
        desk.registrations.record_refusal("bad", PodiumError("no", evidence=["why"]), by="eve")
        assert desk.audit.entries[-1].action == "agent.register.refused"


_CHILD = """
import sys
from pathlib import Path
from tests.unit.cloud.test_registrations import Desk
desk = Desk(Path(sys.argv[1]))
for number in range(10_000):
    desk.register(f"1.0.{number}")
    print(number, flush=True)
"""


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(root), str(root / "protos")))}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    with child.stdout as told:
        for line in told:
            if int(line) >= 20:
                child.send_signal(signal.SIGKILL)
                break
        answered = 20 + sum(1 for _ in told) + 1
    assert child.wait(30) == -signal.SIGKILL
    with _desk(tmp_path) as desk:
        assert len(desk.registry.versions("echo")) >= answered
        assert desk.left_out == ()
