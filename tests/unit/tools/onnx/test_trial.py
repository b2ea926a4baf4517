"""Whatever a model does to its loader, it does it to a process of its own, and a typed error tells of it."""

import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.tools.onnx.graphs import adding, crashing, eating_memory, hanging, not_finite
from tests.unit.tools.onnx.tiny_model import division
from tools.models.pinned import committed_models
from tools.models.verified import OtherBytes, VerifiedContent, answered_for
from tools.onnx.inspection import inspect
from tools.onnx.interface import Interface, TensorSpec
from tools.onnx.model import OnnxModel
from tools.onnx.trial import Trial, TrialFailed, TrialInput, TrialLimits, _environment, _reports, trial_inputs


def sealed(data: bytes) -> VerifiedContent:
    return answered_for("m", data, sha256=hashlib.sha256(data).hexdigest(), answerer="this test")


def test_a_good_model_runs_and_says_what_it_gave() -> None:
    content = sealed(adding())
    report = Trial().run(content, expected=inspect(content.data, name="m").interface)
    assert report.results == (TensorSpec(name="y", dtype="float32", shape=(1, 2)),)
    assert report.interface == inspect(content.data, name="m").interface
    assert 2**20 < report.peak_bytes < 2**30
    assert OnnxModel.of(content).output_names == ("y",)


def test_a_crash_in_the_loader_is_survived_and_named() -> None:
    with pytest.raises(TrialFailed, match="was ended by SIGFPE while it was loaded"):
        Trial().run(sealed(crashing()))


def test_a_model_without_end_is_stopped() -> None:
    with pytest.raises(TrialFailed, match="not done within 4 s"):
        Trial(limits=TrialLimits(time=timedelta(seconds=4))).run(sealed(hanging()))


def test_a_model_that_eats_memory_is_stopped() -> None:
    with pytest.raises(TrialFailed, match=r"bad_alloc|allocat|SIGKILL|SIGABRT"):
        Trial(limits=TrialLimits(memory_bytes=2**30)).run(sealed(eating_memory()))


def test_what_is_not_finite_is_refused_and_another_trial_value_may_help() -> None:
    with pytest.raises(TrialFailed, match="output 'y' is not finite"):
        Trial().run(sealed(not_finite()))
    with pytest.raises(TrialFailed, match="not finite"):
        Trial().run(sealed(division()))
    Trial(inputs=trial_inputs({"b": {"value": 2}})).run(sealed(division()))


def test_the_shapes_that_come_out_are_checked() -> None:
    expected = Interface(
        inputs=(TensorSpec(name="x", dtype="float32", shape=(None, 2)),),
        outputs=(TensorSpec(name="y", dtype="float32", shape=(3, 2)),),
    )
    Trial(inputs={"x": TrialInput(shape=(3, 2))}).run(sealed(adding()), expected=expected)
    with pytest.raises(TrialFailed, match=r"came as float32\[1, 2\], expected float32\[3, 2\]"):
        Trial().run(sealed(adding()), expected=expected)


def test_what_the_runtime_says_of_inputs_and_outputs_is_checked_too() -> None:
    with pytest.raises(TrialFailed, match=r"input 'x' is float32\[\?, 3\], expected float32\[\?, 2\]"):
        Trial().run(sealed(adding(width=3)), expected=inspect(adding(), name="m").interface)


def test_a_trial_sees_no_secret_and_no_module_of_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit(9)")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_TOKEN", "secret")
    Trial().run(sealed(adding()))
    assert "PODIUM_TOKEN" not in _environment(os.environ)


def test_a_report_that_the_process_died_over_is_none() -> None:
    said = b'{"stage": "load"}\n\xff{}\n3\n{"stage": "run", "inputs": [{"name": "x"}'
    assert _reports(said) == [{"stage": "load"}]


@pytest.mark.parametrize("data", [division(opset=9999), adding()[:-9], b""])
def test_what_does_not_load_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(TrialFailed, match="while it was loaded"):
        Trial().run(sealed(data))


def test_a_shipped_model_of_open_lengths_passes() -> None:
    report = Trial().run(committed_models().verified("ppocr-cls"))
    assert report.results[0].shape[1:] == (2,)


def test_nothing_is_sealed_under_another_hash_or_by_hand() -> None:
    with pytest.raises(OtherBytes):
        answered_for("m", b"x", sha256=hashlib.sha256(b"y").hexdigest(), answerer="nobody")
    with pytest.raises(TypeError, match="answered_for only"):
        VerifiedContent(name="m", data=b"x", sha256="", answerer="", seal=object())


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"x": 1},
        {"x": {"fill": 1}},
        {"x": {"value": float("nan")}},
        {"x": {"value": True}},
        {"x": {"shape": [None]}},
    ],
)
def test_trial_inputs_of_another_form_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"x|object"):
        trial_inputs(wrong)
