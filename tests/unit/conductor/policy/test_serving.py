"""Which planner serves: the promoted one, or the one that ships; a bad one changes nothing."""

import hashlib
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from conductor.policy.model import COMMITTED, METADATA, PARTS, PlannerModel, PlannerModelInvalid
from conductor.policy.serving import PLANNER, SHIPPED, PlannerSlot, planner_content
from podium.errors import StorageFull
from tests.unit.tools.artefacts.signed import ANN, Desk, version
from tests.unit.tools.onnx.graphs import adding, crashing
from tests.unit.tools.onnx.tiny_model import chunk
from tools.artefacts.admission import Admission
from tools.models.pinned import OWN_PACKAGE, ModelMissing, PinnedModel, PinnedModels


def planner_file(name: str, graph: bytes | None = None) -> bytes:
    """An ONNX file that says it is a planner of that version; its parts are none."""
    properties = {METADATA: json.dumps({"version": name}), PARTS: "{}"}
    entries = (chunk(1, key.encode()) + chunk(2, text.encode()) for key, text in properties.items())
    told = b"".join(chunk(14, entry) for entry in entries)
    return (graph or adding()) + told


class Careless(Admission):
    """Lets everything become current, so that the slot alone has to refuse it."""

    def look(self, *_: object, **__: object) -> None:
        return None

    def admit(self, *_: object, **__: object) -> None:
        return None


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path, admission=Careless())
    yield desk
    desk.registry.close()


@pytest.fixture
def shipped(tmp_path: Path) -> PinnedModels:
    data = planner_file("that ships")
    path = tmp_path / "planner.onnx"
    path.write_bytes(data)
    return PinnedModels(
        {
            COMMITTED: PinnedModel(
                name=COMMITTED,
                package=OWN_PACKAGE,
                version="1",
                file=str(path),
                sha256=hashlib.sha256(data).hexdigest(),
                bytes=len(data),
                licence="Apache-2.0",
            )
        }
    )


def promote(desk: Desk, number: str, data: bytes) -> None:
    desk.add(number, data, name=PLANNER)
    desk.registry.promote(version(number, PLANNER), who=ANN)


def slot_of(desk: Desk | None, shipped: PinnedModels) -> PlannerSlot[str]:
    def make(model: PlannerModel) -> str:
        return model.version

    return PlannerSlot(make, registry=None if desk is None else desk.registry, models=shipped)


def test_the_planner_that_ships_serves_until_another_is_promoted(desk: Desk, shipped: PinnedModels) -> None:
    slot = slot_of(desk, shipped)
    assert (slot.version, slot.current(), slot.version) == ("", "that ships", SHIPPED)

    promote(desk, "2", planner_file("two"))
    slot.refresh()

    assert (slot.version, slot.current()) == ("2", "two")
    assert PlannerModel(planner_content(desk.registry, shipped)).version == "two"
    assert PlannerModel(planner_content(None, shipped)).version == "that ships"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (adding(), "PLANNER_MODEL_INVALID"),
        (planner_file("bad", crashing()), "ONNX_TRIAL_FAILED"),
        (planner_file("bad", adding(external=True)), "ONNX_REFUSED"),
    ],
    ids=["no planner", "crash", "external"],
)
def test_what_is_refused_leaves_the_old_one_serving(
    desk: Desk, shipped: PinnedModels, data: bytes, code: str
) -> None:
    promote(desk, "1", planner_file("one"))
    slot = slot_of(desk, shipped)
    slot.refresh()

    promote(desk, "2", data)
    slot.refresh()

    assert (slot.current(), [item.code for item in slot.refused]) == ("one", [code])
    promote(desk, "3", planner_file("three"))
    slot.refresh()
    assert (slot.current(), slot.refused) == ("three", ())


def test_a_bad_promotion_at_the_start_is_answered_with_the_planner_that_ships(
    desk: Desk, shipped: PinnedModels
) -> None:
    promote(desk, "1", adding())
    slot = slot_of(desk, shipped)

    assert slot.current() == "that ships"
    assert [item.version for item in slot.refused] == ["1"]


def test_a_planner_whose_signer_is_not_trusted_any_more_is_withdrawn(desk: Desk, shipped: PinnedModels) -> None:
    promote(desk, "1", planner_file("one"))
    slot = slot_of(desk, shipped)
    assert slot.current() == "one"

    desk.registry.keys.distrust(desk.key.key_id, who=ANN)
    slot.refresh()

    assert (slot.current(), slot.version) == ("that ships", SHIPPED)
    assert slot.refused


def test_an_untrusted_planner_is_withdrawn_also_while_a_newer_one_is_refused(
    desk: Desk, shipped: PinnedModels
) -> None:
    promote(desk, "1", planner_file("one"))
    slot = slot_of(desk, shipped)
    slot.refresh()
    promote(desk, "2", adding())
    slot.refresh()
    assert (slot.current(), [item.version for item in slot.refused]) == ("one", ["2"])

    desk.registry.keys.distrust(desk.key.key_id, who=ANN)
    slot.refresh()

    assert (slot.current(), slot.version) == ("that ships", SHIPPED)
    assert [item.version for item in slot.refused] == ["2"], "the one that should serve"


def test_a_planner_that_fails_as_nobody_foresaw_is_refused_once_and_the_old_one_serves(
    desk: Desk, shipped: PinnedModels, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []

    def make(model: PlannerModel) -> str:
        tried.append(model.version)
        if model.version == "two":
            raise OverflowError("a secret of the model")
        return model.version

    promote(desk, "1", planner_file("one"))
    slot = PlannerSlot(make, registry=desk.registry, models=shipped)
    slot.refresh()
    promote(desk, "2", planner_file("two"))
    for _ in range(3):
        slot.refresh()

    assert (slot.current(), slot.version, tried) == ("one", "1", ["one", "two"])
    [refused] = slot.refused
    assert (refused.version, refused.code) == ("2", "INTERNAL_ERROR")
    assert refused.reason == "making it ready failed with OverflowError"
    assert "planner version 2 is refused" in caplog.text


def test_what_is_refused_stays_known_while_the_registry_cannot_be_read(
    desk: Desk, shipped: PinnedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(desk, "1", adding())
    slot = slot_of(desk, shipped)
    slot.refresh()

    def full(name: object) -> None:
        raise StorageFull("no room")

    with monkeypatch.context() as patched:
        patched.setattr(desk.registry, "current", full)
        slot.refresh()
        assert [(item.version, item.code) for item in slot.refused] == [
            ("1", "PLANNER_MODEL_INVALID"),
            ("", "STORAGE_FULL"),
        ]
        assert slot.current() == "that ships"
    slot.refresh()
    assert [item.version for item in slot.refused] == ["1"]


def test_where_neither_the_promoted_one_nor_the_one_that_ships_can_serve_both_are_told(desk: Desk) -> None:
    nothing = PinnedModel(
        name=COMMITTED, package=OWN_PACKAGE, version="1", file="no.onnx", sha256="0" * 64, bytes=1, licence=""
    )
    promote(desk, "1", adding())
    slot = slot_of(desk, PinnedModels({COMMITTED: nothing}))

    slot.refresh()

    assert slot.version == ""
    assert [item.version for item in slot.refused] == ["1", SHIPPED]


def test_without_any_planner_the_error_says_what_is_missing(desk: Desk) -> None:
    nothing = PinnedModel(
        name=COMMITTED, package=OWN_PACKAGE, version="1", file="no.onnx", sha256="0" * 64, bytes=1, licence=""
    )
    slot = slot_of(desk, PinnedModels({COMMITTED: nothing}))

    with pytest.raises(ModelMissing, match=r"no\.onnx"):
        slot.current()


def test_promotions_are_followed_and_what_serves_is_kept_ready(desk: Desk, shipped: PinnedModels) -> None:
    kept: list[str] = []
    both = threading.Event()

    def keep(served: str) -> None:
        kept.append(served)
        if {"that ships", "two"} <= set(kept):
            both.set()

    def make(model: PlannerModel) -> str:
        return model.version

    slot = PlannerSlot(make, registry=desk.registry, models=shipped, keep_ready=keep)
    slot.current()
    slot.follow(every=timedelta(milliseconds=5))
    try:
        promote(desk, "2", planner_file("two"))
        assert both.wait(30)
    finally:
        slot.close()
    assert slot.current() == "two"


def test_a_file_with_other_metadata_is_no_planner(shipped: PinnedModels) -> None:
    content = shipped.verified(COMMITTED)
    assert PlannerModel(content).parts == ()
    with pytest.raises(PlannerModelInvalid, match="no part"):
        PlannerModel(content).run("bottom", {})
