"""The line that never bends: a model file is opened only when its SHA-256 is in the committed list.

`verified_bytes("ppocr-det")` reads the file inside its installed package, without importing it, and gives
exactly the bytes that were hashed: nobody can exchange the file between the check and the loading.
`verified_path` is for libraries that open files themselves. Nothing here can download anything.
"""

import hashlib
import importlib.metadata
import os
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from grpc import StatusCode

from podium.errors import PodiumError
from tools.models.verified import OtherBytes, VerifiedContent, answered_for

_LIST_FILE = Path(__file__).with_name("pinned.toml")
_SOURCE = Path(__file__).parents[2]
OWN_PACKAGE = "podium"
"""The package of files that were trained here; their version is that of the file, not of the package."""


class ModelError(PodiumError):
    """A model file may not be loaded."""

    code = "MODEL_ERROR"
    status = StatusCode.FAILED_PRECONDITION


class ModelNotPinned(ModelError):
    """The name is not in the committed list of models."""

    code = "MODEL_NOT_PINNED"


class ModelMissing(ModelError):
    """The package is not installed, or it has no such file."""

    code = "MODEL_MISSING"


class ModelHashMismatch(ModelError):
    """The file on disk is not, byte for byte, the one that was reviewed."""

    code = "MODEL_HASH_MISMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedModel:
    """One reviewed model file: the package that carries it and what its bytes must be.

    Those that were trained here are of the package `podium`, and lie in this source tree.
    """

    name: str
    package: str
    version: str
    file: str
    """Path inside the package's install root, with forward slashes."""
    sha256: str
    bytes: int
    licence: str


class PinnedModels:
    """A list of reviewed model files; remembers which files it has hashed in this process."""

    def __init__(self, models: Mapping[str, PinnedModel]) -> None:
        self._models = dict(models)
        self._hashes: dict[tuple[Path, int, int, int], str] = {}
        self._lock = threading.Lock()

    @classmethod
    def read(cls, path: Path) -> "PinnedModels":
        """Read a list in the form of `pinned.toml`.

        Raises:
            OSError: the list cannot be read.
            tomllib.TOMLDecodeError: it is not TOML.
            TypeError: an entry lacks a field or has an unknown one.
        """
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["models"]
        return cls({name: PinnedModel(name=name, **entry) for name, entry in entries.items()})

    def __iter__(self) -> Iterator[PinnedModel]:
        return iter(self._models.values())

    def verified_bytes(self, name: str) -> bytes:
        """The bytes of the model `name`, which are the listed ones.

        Raises:
            ModelNotPinned: no such name in the list.
            ModelMissing: the package or the file is not installed.
            ModelHashMismatch: the file's bytes are others.
        """
        return self.verified(name).data

    def verified(self, name: str) -> VerifiedContent:
        """The bytes of the model `name` with the seal that lets a runtime load them.

        Raises:
            ModelNotPinned, ModelMissing, ModelHashMismatch: see `verified_bytes`.
        """
        model, path = self._found(name)
        _require_size(path, model)
        answerer = f"the committed list, {model.package}=={model.version}"
        try:
            return answered_for(name, path.read_bytes(), sha256=model.sha256, answerer=answerer)
        except OtherBytes as error:
            raise _wrong_hash(path, model, error.sha256) from error

    def entry(self, name: str) -> PinnedModel:
        """The listed entry of a model; says nothing about the file.

        Raises:
            ModelNotPinned: no such name in the list.
        """
        model = self._models.get(name)
        if model is None:
            raise ModelNotPinned(
                f"model {name!r} is not in the list of reviewed models",
                next_step=f"Use one of {', '.join(sorted(self._models))}, or have the file reviewed and listed.",
            )
        return model

    def verified_path(self, name: str) -> Path:
        """The path of the model `name`, after its size and SHA-256 were found to be the listed ones.

        A library that opens the file itself can be given another one in between; ask again once it has loaded.

        Raises:
            ModelNotPinned, ModelMissing, ModelHashMismatch: see `verified_bytes`.
        """
        model, path = self._found(name)
        status = _require_size(path, model)
        # Not the time of the last change to the content: that can be set to anything.
        key = (path, status.st_ino, status.st_ctime_ns, status.st_size)
        with self._lock:
            if key not in self._hashes:
                with path.open("rb") as file:
                    self._hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
            if self._hashes[key] != model.sha256:
                raise _wrong_hash(path, model, self._hashes[key])
        return path

    def _found(self, name: str) -> tuple[PinnedModel, Path]:
        model = self.entry(name)
        return model, _find(model)


@lru_cache(maxsize=1)
def committed_models() -> PinnedModels:
    """The list that is committed beside this module."""
    return PinnedModels.read(_LIST_FILE)


def verified_path(name: str) -> Path:
    """The path of a model of the committed list, its bytes checked (see `PinnedModels.verified_path`)."""
    return committed_models().verified_path(name)


def _require_size(path: Path, model: PinnedModel) -> os.stat_result:
    status = path.stat()
    if status.st_size != model.bytes:
        raise _mismatch(model, f"{path} has {status.st_size} bytes, the list says {model.bytes}")
    return status


def _wrong_hash(path: Path, model: PinnedModel, sha256: str) -> ModelHashMismatch:
    return _mismatch(model, f"{path} has SHA-256 {sha256[:16]}..., the list says {model.sha256[:16]}...")


def _mismatch(model: PinnedModel, message: str) -> ModelHashMismatch:
    return ModelHashMismatch(
        message, next_step=f"Reinstall {model.package}=={model.version}; do not use this file."
    )


def _find(model: PinnedModel) -> Path:
    install = f"Install {model.package}=={model.version} and start again."
    if model.package == OWN_PACKAGE:
        own = _SOURCE / model.file
        if not own.is_file():
            raise ModelMissing(f"{model.package} has no file {model.file}", next_step=install)
        return own
    try:
        distribution = importlib.metadata.distribution(model.package)
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelMissing(
            f"package {model.package}, which carries {model.name}, is not installed", next_step=install
        ) from error
    path = Path(str(distribution.locate_file(model.file)))
    if not path.is_file():
        raise ModelMissing(f"{model.package} {distribution.version} has no file {model.file}", next_step=install)
    return path
