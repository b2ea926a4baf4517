"""Versions never change, exactly one is current, and every move is on record with who and why."""

import hashlib
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from podium.errors import DataCorrupt, InternalError, LimitExceeded, PodiumError, StorageFull
from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, now, signature, version
from tests.unit.tools.onnx.graphs import adding
from tools.artefacts.checking import faults, unused_files
from tools.artefacts.errors import (
    ArtefactCorrupt,
    ArtefactExists,
    ArtefactInvalid,
    ArtefactNotFound,
    ArtefactPinned,
    CurrentChanged,
    NothingCurrent,
    NothingToRollBackTo,
)
from tools.artefacts.records import Description, Name, Reference, Who
from tools.artefacts.registry import ArtefactRegistry
from tools.models.pinned import PinnedModel, PinnedModels

PLAN = Name(kind="planner", name="rules")


def plain(desk: Desk, number: str, data: bytes = b"rules: []") -> None:
    desk.add(number, data + number.encode(), name=PLAN, media_type="application/yaml")


def current(desk: Desk, name: Name = DEFECTS) -> str | None:
    found = desk.registry.current(name)
    return None if found is None else found.version


def test_what_was_added_is_told_again(desk: Desk) -> None:
    base = desk.add("1.0.0", adding(1))
    made = desk.add("1.1.0", adding(2), parents=(base.reference,), metrics={"recall": 0.93})
    found = desk.registry.get(version("1.1.0"))
    assert found == made
    assert (found.created_by, found.note) == ("ann", "because")
    assert found.description.parents == (base.reference,)
    assert found.description.metrics == {"recall": 0.93}
    assert found.sha256 == hashlib.sha256(adding(2)).hexdigest()
    assert desk.registry.load(found).data == adding(2)
    assert [str(item.reference) for item in desk.registry.list()] == [
        "model/defects@1.0.0",
        "model/defects@1.1.0",
    ]
    assert not faults(desk.registry)


def test_promoting_rolling_back_and_the_history(desk: Desk) -> None:
    for number in ("1", "2", "3"):
        desk.add(number, adding(int(number)))
        desk.registry.promote(version(number), who=Who(name="bob", why=f"try {number}"))
    assert desk.registry.roll_back(DEFECTS, who=ANN).version == "2"
    assert desk.registry.roll_back(DEFECTS, who=ANN).version == "1"
    with pytest.raises(NothingToRollBackTo):
        desk.registry.roll_back(DEFECTS, who=ANN)
    desk.registry.promote(version("3"), who=ANN)
    assert desk.registry.succession(DEFECTS) == ("3", "1")
    history = desk.registry.changes(DEFECTS)
    assert [(item.action, item.from_version, item.to_version) for item in history] == [
        ("promote", None, "1"),
        ("promote", "1", "2"),
        ("promote", "2", "3"),
        ("rollback", "3", "2"),
        ("rollback", "2", "1"),
        ("promote", "1", "3"),
    ]
    assert (history[1].by, history[1].why) == ("bob", "try 2")
    assert not faults(desk.registry)


def test_promoting_what_is_current_changes_nothing(desk: Desk) -> None:
    plain(desk, "1")
    first = desk.registry.promote(version("1", PLAN), who=ANN)
    assert desk.registry.promote(version("1", PLAN), who=ANN) == first
    assert len(desk.registry.changes(PLAN)) == 1


def test_a_pinned_name_does_not_move(desk: Desk) -> None:
    plain(desk, "1")
    plain(desk, "2")
    with pytest.raises(NothingCurrent):
        desk.registry.pin(PLAN, who=ANN)
    desk.registry.promote(version("2", PLAN), who=ANN)
    assert desk.registry.pin(PLAN, who=ANN).pinned
    assert desk.registry.pin(PLAN, who=ANN).pinned
    with pytest.raises(ArtefactPinned):
        desk.registry.promote(version("1", PLAN), who=ANN)
    with pytest.raises(ArtefactPinned):
        desk.registry.roll_back(PLAN, who=ANN)
    desk.registry.unpin(PLAN, who=ANN)
    desk.registry.promote(version("1", PLAN), who=ANN)
    assert [item.action for item in desk.registry.changes(PLAN)] == ["promote", "pin", "unpin", "promote"]


def test_a_move_names_what_it_expects_to_find(desk: Desk) -> None:
    for number in ("1", "2"):
        plain(desk, number)
    with pytest.raises(CurrentChanged, match="no version"):
        desk.registry.promote(version("1", PLAN), who=ANN, expected="2")
    desk.registry.promote(version("1", PLAN), who=ANN)
    with pytest.raises(CurrentChanged, match="1 of planner/rules is current, not 2"):
        desk.registry.roll_back(PLAN, who=ANN, expected="2")
    assert current(desk, PLAN) == "1"


def test_rolling_back_passes_over_what_does_not_load(desk: Desk) -> None:
    made = {}
    for number in ("1", "2", "3"):
        made[number] = desk.add(number, adding(int(number)))
        desk.registry.promote(version(number), who=ANN)
    stored = desk.stored(made["2"])
    stored.chmod(0o644)
    stored.write_bytes(b"x" * made["2"].size_bytes)
    assert desk.registry.roll_back(DEFECTS, who=ANN).version == "1"
    assert [fault.what for fault in faults(desk.registry)] == ["model/defects@2"]


def test_nothing_left_to_roll_back_to_says_why(desk: Desk) -> None:
    first = desk.add("1", adding(1))
    desk.registry.promote(version("1"), who=ANN)
    desk.add("2", adding(2))
    desk.registry.promote(version("2"), who=ANN)
    desk.stored(first).unlink()
    with pytest.raises(NothingToRollBackTo) as refused:
        desk.registry.roll_back(DEFECTS, who=ANN)
    assert "ARTEFACT_CORRUPT" in refused.value.evidence[0]
    assert current(desk) == "2"


def test_a_version_never_becomes_something_else(desk: Desk) -> None:
    made = desk.add("1", adding(1))
    assert desk.add("1", adding(1)) == made
    with pytest.raises(ArtefactExists):
        desk.add("1", adding(2))
    with pytest.raises(ArtefactExists):
        desk.add("1", adding(1), metrics={"recall": 1.0})
    assert len(desk.registry.list()) == 1


def test_adding_again_mends_a_damaged_file(desk: Desk) -> None:
    made = desk.add("1", adding(1))
    desk.stored(made).chmod(0o644)
    desk.stored(made).write_bytes(b"")
    with pytest.raises(ArtefactCorrupt):
        desk.registry.load(made)
    desk.add("1", adding(1))
    assert desk.registry.load(made).data == adding(1)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "longer", "gone", "a folder"])
def test_damaged_bytes_are_never_handed_on(desk: Desk, damage: str) -> None:
    made = desk.add("1", adding(1))
    path = desk.stored(made)
    data = bytearray(path.read_bytes())
    path.chmod(0o644)
    if damage == "flipped":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "truncated":
        path.write_bytes(data[:-1])
    elif damage == "longer":
        path.write_bytes(data + b"\0")
    else:
        path.unlink()
        if damage == "a folder":
            path.mkdir()
    with pytest.raises(ArtefactCorrupt):
        desk.registry.load(made)
    with pytest.raises(ArtefactCorrupt):
        desk.registry.promote(version("1"), who=ANN)


def test_a_model_of_a_package_follows_the_committed_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "adder-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: adder\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "model.onnx").write_bytes(adding())
    entry = PinnedModel(
        name="adder",
        package="adder",
        version="1.0",
        file="model.onnx",
        sha256=hashlib.sha256(adding()).hexdigest(),
        bytes=len(adding()),
        licence="Apache-2.0",
    )
    desk = Desk(tmp_path, packaged=PinnedModels({"adder": entry}))
    told = Description(reference=version("1"), media_type="application/onnx")
    made = desk.registry.add_packaged(told, "adder", who=ANN)
    assert not made.signatures
    desk.registry.promote(version("1"), who=ANN)
    assert not unused_files(desk.registry)
    (tmp_path / "model.onnx").write_bytes(adding(5.0))
    with pytest.raises(PodiumError) as refused:
        desk.registry.load(made)
    assert refused.value.code == "MODEL_HASH_MISMATCH"
    other = PinnedModels({})
    desk.registry.close()
    registry = ArtefactRegistry(tmp_path / "artefacts", clock=now, packaged=other)
    with pytest.raises(PodiumError) as refused:
        registry.load(made)
    assert refused.value.code == "MODEL_NOT_PINNED"
    assert [fault.error.code for fault in faults(registry)] == ["MODEL_NOT_PINNED"]
    with pytest.raises(ArtefactInvalid):
        registry.add_packaged(Description(reference=version("1", PLAN)), "adder", who=ANN)
    registry.close()


@pytest.mark.parametrize(
    "text",
    [
        "defects",
        "model/",
        "model/../x",
        "model/Defects",
        "robot/x",
        "model/x@",
        "model/x@../1",
        "model/" + "x" * 65,
    ],
)
def test_hostile_names_are_refused(text: str) -> None:
    with pytest.raises(ArtefactInvalid):
        Reference.parse(text if "@" in text else f"{text}@1")


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"metrics": {"recall": float("nan")}}, "metrics"),
        ({"metrics": {"x": "y" * 70_000}}, "metrics"),
        ({"metrics": {"x": object()}}, "metrics"),
        ({"metrics": {"x": "\ud800"}}, "metrics"),
        ({"media_type": "onnx"}, "media_type"),
        ({"trial": {"x": {"shape": [None]}}}, "trial"),
        ({"parents": (version("1"),) * 65}, "parents"),
    ],
)
def test_a_description_of_another_form_names_its_field(told: dict, field: str) -> None:
    with pytest.raises(ArtefactInvalid) as refused:
        Description(reference=version("1"), **told)
    assert refused.value.field == field


def test_nobody_is_its_own_parent(desk: Desk) -> None:
    with pytest.raises(ArtefactInvalid, match="own parent"):
        desk.add("1", adding(), parents=(version("1"),))


def test_what_is_not_there_is_typed(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ArtefactNotFound):
        desk.registry.promote(version("9"), who=ANN)
    with pytest.raises(NothingCurrent):
        desk.registry.roll_back(DEFECTS, who=ANN)
    description = Description(reference=version("1"))
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ArtefactInvalid):
            desk.registry.add(description, path, who=ANN)


def test_empty_and_huge_files_are_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_file_bytes=100)
    with pytest.raises(ArtefactInvalid, match="empty"):
        desk.add("1", b"", media_type="text/plain")
    with pytest.raises(LimitExceeded):
        desk.add("1", b"x" * 101, media_type="text/plain")
    assert not desk.registry.list()
    assert not unused_files(desk.registry)
    desk.registry.close()


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_pages=30)
    plain(desk, "1")
    desk.registry.promote(version("1", PLAN), who=ANN)

    def fill() -> None:
        for number in range(2, 1_000):
            plain(desk, str(number))
            desk.registry.promote(version(str(number), PLAN), who=Who(name="ann", why="x" * 4_000))

    with pytest.raises(StorageFull):
        fill()
    assert not faults(desk.registry)
    assert current(desk, PLAN) is not None
    desk.registry.close()


def test_the_history_cannot_be_rewritten(desk: Desk, tmp_path: Path) -> None:
    plain(desk, "1")
    plain(desk, "2")
    desk.registry.promote(version("1", PLAN), who=ANN)
    other = sqlite3.connect(tmp_path / "artefacts" / "registry.sqlite", isolation_level=None)
    for forgery in ("UPDATE changes SET by = 'eve'", "DELETE FROM changes", "UPDATE artefacts SET sha256 = 'x'"):
        with pytest.raises(sqlite3.IntegrityError):
            other.execute(forgery)
    assert not faults(desk.registry)
    other.execute("UPDATE current SET version = '2'")
    other.close()
    assert [fault.what for fault in faults(desk.registry)] == ["planner/rules"]


@pytest.mark.parametrize(
    "change", ["description = 'not json'", "description = '{}'", "created_at = 'soon'", "kind = 'thing'"]
)
def test_a_record_that_makes_no_sense_is_typed(desk: Desk, change: str) -> None:
    desk.add("1", adding())
    with sqlite3.connect(desk.folder / "artefacts" / "registry.sqlite") as rows:
        rows.execute("DROP TRIGGER artefacts_stay")
        rows.execute(f"UPDATE artefacts SET {change}")
    rows.close()
    with pytest.raises(PodiumError):
        desk.registry.list()


def test_a_damaged_or_newer_file_is_typed(tmp_path: Path) -> None:
    folder = tmp_path / "artefacts"
    folder.mkdir()
    (folder / "registry.sqlite").write_bytes(b"no database at all" * 300)
    with pytest.raises(DataCorrupt):
        ArtefactRegistry(folder, clock=now)
    (folder / "registry.sqlite").unlink()
    newer = sqlite3.connect(folder / "registry.sqlite")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(PodiumError, match="form 99"):
        ArtefactRegistry(folder, clock=now)


def test_a_closed_registry_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.registry.close()
    with pytest.raises(InternalError):
        desk.registry.current(DEFECTS)


def test_what_a_dead_process_left_half_written_goes_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.registry.close()
    left = tmp_path / "artefacts" / "files" / ".adding-1-x"
    left.write_bytes(b"half")
    ArtefactRegistry(tmp_path / "artefacts", clock=now).close()
    assert left.exists()
    ArtefactRegistry(tmp_path / "artefacts", clock=lambda: now() + timedelta(hours=2)).close()
    assert not left.exists()


def test_signing_again_adds_a_key(desk: Desk) -> None:
    made = desk.add("1", adding())
    again = signature(desk.key, made.description, desk.stored(made))
    assert desk.registry.sign(version("1"), again, who=ANN).signatures == made.signatures
