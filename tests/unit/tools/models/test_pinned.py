"""A model file is handed out only when its bytes are the reviewed ones."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.models.pinned import (
    OWN_PACKAGE,
    ModelHashMismatch,
    ModelMissing,
    ModelNotPinned,
    PinnedModel,
    PinnedModels,
    committed_models,
    verified_path,
)

CONTENT = b"weights" * 100


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one model file, whose import would fail."""
    information = tmp_path / "modelpack-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: modelpack\nVersion: 1.0\n")
    (tmp_path / "modelpack").mkdir()
    (tmp_path / "modelpack" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "modelpack" / "model.onnx").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "modelpack" / "model.onnx"


def pinned(**changes: object) -> PinnedModels:
    values: dict[str, object] = {
        "name": "m",
        "package": "modelpack",
        "version": "1.0",
        "file": "modelpack/model.onnx",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
        "licence": "Apache-2.0",
    }
    return PinnedModels({"m": PinnedModel(**(values | changes))})  # type: ignore[arg-type]  # built from a mapping


def test_finds_the_file_without_importing_its_package(installed: Path) -> None:
    assert pinned().verified_path("m") == installed
    assert "modelpack" not in sys.modules


def test_one_changed_byte_is_refused_also_after_a_good_verdict(installed: Path) -> None:
    models = pinned()
    models.verified_path("m")
    installed.write_bytes(b"W" + CONTENT[1:])
    with pytest.raises(ModelHashMismatch) as caught:
        models.verified_path("m")
    assert "modelpack==1.0" in caught.value.next_step


def test_a_changed_byte_under_the_old_time_is_refused(installed: Path) -> None:
    models = pinned()
    models.verified_path("m")
    before = installed.stat()
    installed.write_bytes(b"W" + CONTENT[1:])
    os.utime(installed, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelHashMismatch):
        models.verified_path("m")


def test_the_bytes_given_are_those_that_were_hashed(installed: Path) -> None:
    models = pinned()
    assert models.verified_bytes("m") == CONTENT
    installed.write_bytes(b"W" + CONTENT[1:])
    with pytest.raises(ModelHashMismatch, match="has SHA-256"):
        models.verified_bytes("m")
    installed.write_bytes(CONTENT + b"W")
    with pytest.raises(ModelHashMismatch, match="701 bytes"):
        models.verified_bytes("m")
    with pytest.raises(ModelNotPinned):
        models.verified_bytes("other")


def test_another_length_is_refused(installed: Path) -> None:
    with pytest.raises(ModelHashMismatch, match="700 bytes, the list says 699"):
        pinned(bytes=699).verified_path("m")


def test_a_missing_file_or_package_says_what_to_install(installed: Path) -> None:
    with pytest.raises(ModelMissing, match=r"no file modelpack/other\.onnx"):
        pinned(file="modelpack/other.onnx").verified_path("m")
    with pytest.raises(ModelMissing) as caught:
        pinned(package="no-such-package-here").verified_path("m")
    assert caught.value.next_step == "Install no-such-package-here==1.0 and start again."


def test_an_unlisted_name_is_refused() -> None:
    with pytest.raises(ModelNotPinned, match="not in the list"):
        verified_path("some-other-model")


def test_every_committed_model_that_is_installed_here_has_its_reviewed_bytes() -> None:
    models = committed_models()
    assert {model.name for model in models} >= {"ppocr-det", "ppocr-rec", "ppocr-cls", "minilm-int8"}
    for model in models:
        assert models.verified_path(model.name).stat().st_size == model.bytes


def test_a_file_is_hashed_once_per_process(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models, calls = pinned(), []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *args: calls.append(1) or real(*args))
    models.verified_path("m")
    models.verified_path("m")
    assert len(calls) == 1


def test_reading_documents_costs_no_heavy_import_until_it_is_done() -> None:
    script = (
        "import sys, tools.document, tools.images, tools.onnx.model, tools.models.pinned, tools.document.reader\n"
        "heavy = {'cv2', 'rapidocr', 'onnxruntime', 'pypdfium2', 'pydantic', 'cryptography', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    root = Path(__file__).parents[4]
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'protos'}"},
    )
    assert result.stdout.strip() == "[]"


def test_a_file_that_was_trained_here_lies_in_this_source_tree(installed: Path) -> None:
    own = pinned(package=OWN_PACKAGE, file=str(installed))
    assert own.verified_bytes("m") == CONTENT
    installed.write_bytes(b"x" * len(CONTENT))
    with pytest.raises(ModelHashMismatch):
        own.verified_bytes("m")
    with pytest.raises(ModelMissing, match="podium has no file"):
        pinned(package=OWN_PACKAGE, file="conductor/policy/weights/nothing.onnx").verified_bytes("m")
