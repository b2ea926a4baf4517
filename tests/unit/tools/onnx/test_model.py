"""ONNX models load from reviewed files only, and nothing that is not finite passes through them."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.unit.tools.onnx.tiny_model import division
from tools.models.pinned import ModelHashMismatch, PinnedModel, PinnedModels
from tools.onnx.header import OnnxHeaderError, read_header
from tools.onnx.model import NonFinite, OnnxLoadError, OnnxModel, OnnxRunError


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put bytes into an installed package and give the list that pins them."""
    information = tmp_path / "divider-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: divider\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(data: bytes) -> PinnedModels:
        (tmp_path / "model.onnx").write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        model = PinnedModel(
            name="div",
            package="divider",
            version="1.0",
            file="model.onnx",
            sha256=sha256,
            bytes=len(data),
            licence="Apache-2.0",
        )
        return PinnedModels({"div": model})

    return put


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_runs_by_name(install) -> None:
    model = OnnxModel("div", models=install(division()))
    assert model.input_names == ("a", "b")
    assert model.run({"a": array(6, 9), "b": array(2, 3)})["y"].tolist() == [3, 3]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_refuses_what_is_not_finite_going_in(install, bad: float) -> None:
    with pytest.raises(NonFinite, match="input 'a'"):
        OnnxModel("div", models=install(division())).run({"a": array(bad), "b": array(1)})


def test_refuses_what_is_not_finite_coming_out(install) -> None:
    with pytest.raises(NonFinite, match="output 'y'"):
        OnnxModel("div", models=install(division())).run({"a": array(1), "b": array(0)})


def test_a_wrong_input_is_a_typed_error(install) -> None:
    model = OnnxModel("div", models=install(division()))
    with pytest.raises(OnnxRunError):
        model.run({"a": array(1)})
    with pytest.raises(OnnxRunError):
        model.run({"a": np.zeros((2, 2), dtype=np.float32), "b": array(1)})


def test_a_flipped_byte_never_reaches_the_runtime(install, tmp_path: Path) -> None:
    models = install(division())
    data = bytearray((tmp_path / "model.onnx").read_bytes())
    data[20] ^= 1
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(ModelHashMismatch):
        OnnxModel("div", models=models)


def test_a_newer_format_is_refused_with_both_versions(install) -> None:
    with pytest.raises(OnnxLoadError, match="IR version 99, newest supported is"):
        OnnxModel("div", models=install(division(ir_version=99)))


def test_an_unknown_opset_is_a_typed_error(install) -> None:
    with pytest.raises(OnnxLoadError, match="does not load"):
        OnnxModel("div", models=install(division(opset=9999)))


@pytest.mark.parametrize("data", [b"", b"no model at all, just words", division()[:-9], b"\x08"])
def test_truncated_and_foreign_bytes_are_typed_errors(install, data: bytes) -> None:
    with pytest.raises(OnnxLoadError):
        OnnxModel("div", models=install(data))


def test_header_is_read_without_a_runtime() -> None:
    header = read_header(division(ir_version=9, opset=17), name="m")
    assert (header.ir_version, header.opsets) == (9, {"": 17})
    with pytest.raises(OnnxHeaderError, match="m is not an ONNX model"):
        read_header(b"\x0f", name="m")


def test_many_threads_may_create_and_run(install) -> None:
    models = install(division())

    def use(value: int) -> float:
        return float(OnnxModel("div", models=models).run({"a": array(value), "b": array(1)})["y"][0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(12))) == list(range(12))
