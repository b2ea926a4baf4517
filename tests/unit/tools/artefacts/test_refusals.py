"""A model that must not be loaded does not become current, and what was current stays so."""

from datetime import timedelta
from pathlib import Path

import pytest

from podium.errors import PodiumError
from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, version
from tests.unit.tools.onnx.graphs import adding, crashing, eating_memory, hanging, not_finite
from tests.unit.tools.onnx.tiny_model import division
from tools.artefacts.admission import Admission
from tools.onnx.inspection import ModelRefused
from tools.onnx.trial import TrialFailed, TrialLimits


def current(desk: Desk) -> str | None:
    found = desk.registry.current(DEFECTS)
    return None if found is None else found.version


@pytest.mark.parametrize(
    ("data", "refusal", "reason"),
    [
        (adding(width=3), ModelRefused, "expected"),
        (not_finite(), TrialFailed, "not finite"),
        (hanging(), TrialFailed, "not done within"),
        (eating_memory(), TrialFailed, "while it ran|while it was loaded"),
        (crashing(), TrialFailed, "was ended by SIGFPE while it was loaded"),
    ],
    ids=["wrong shape", "not finite", "hangs", "eats memory", "crashes"],
)
def test_a_bad_version_is_not_promoted_and_the_old_one_stays(
    tmp_path: Path, data: bytes, refusal: type[PodiumError], reason: str
) -> None:
    # For what never ends; the good version before it must still be tried in time on a busy machine.
    time = timedelta(seconds=8 if data == hanging() else 60)
    desk = Desk(tmp_path, admission=Admission(trial=TrialLimits(time=time)))
    desk.add("1", adding())
    desk.registry.promote(version("1"), who=ANN)
    desk.add("2", data)
    with pytest.raises(refusal, match=reason):
        desk.registry.promote(version("2"), who=ANN)
    assert current(desk) == "1"
    assert len(desk.registry.changes()) == 1
    desk.registry.close()


def test_a_crash_in_the_loader_is_a_typed_refusal_of_the_first_version_too(desk: Desk) -> None:
    desk.add("1", crashing())
    with pytest.raises(TrialFailed, match="SIGFPE"):
        desk.registry.promote(version("1"), who=ANN)
    assert current(desk) is None


@pytest.mark.parametrize(
    "data",
    [adding(ir_version=99), division(opset=9999), adding(external=True), adding()[:-9], b"words"],
    ids=["IR 99", "opset 9999", "external data", "truncated", "no model"],
)
def test_what_must_never_be_loaded_is_not_even_added(desk: Desk, data: bytes) -> None:
    with pytest.raises(ModelRefused):
        desk.add("1", data)
    assert not desk.registry.list()
    assert not desk.registry.stored_hashes()


def test_another_interface_has_to_be_asked_for(desk: Desk) -> None:
    desk.add("1", adding())
    desk.registry.promote(version("1"), who=ANN)
    desk.add("2", adding(width=3))
    desk.registry.promote(version("2"), who=ANN, new_interface=True)
    assert current(desk) == "2"


def test_a_trial_is_fed_what_the_artefact_says(desk: Desk) -> None:
    desk.add("1", division())
    with pytest.raises(TrialFailed, match="not finite"):
        desk.registry.promote(version("1"), who=ANN)
    desk.add("2", division(), trial={"b": {"value": 1}})
    desk.registry.promote(version("2"), who=ANN)
