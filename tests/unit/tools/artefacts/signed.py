"""A registry with a trusted key, and the shortest way to add and promote versions in it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.artefacts.loading import sha256_of_file
from tools.artefacts.records import ONNX, Artefact, Description, Name, Reference, Signature, Who, statement
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.signing import SigningKey, new_key, sign

ANN = Who(name="ann", why="because")
DEFECTS = Name(kind="model", name="defects")


def now() -> datetime:
    return datetime.now(UTC)


def version(number: str, name: Name = DEFECTS) -> Reference:
    return Reference(name=name, version=number)


def signature(key: SigningKey, description: Description, file: Path) -> Signature:
    sha256, size_bytes = sha256_of_file(file)
    return sign(key, statement(description, sha256=sha256, size_bytes=size_bytes))


class Desk:
    """Somebody with a key who adds versions to a registry."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime] = now, **options: Any) -> None:
        self.folder = folder
        self.registry = ArtefactRegistry(folder / "artefacts", clock=clock, **options)
        self.key = new_key()
        self.registry.keys.trust(self.key.public_key, label="ann's key", who=ANN)

    def file(self, data: bytes) -> Path:
        path = self.folder / "incoming"
        path.write_bytes(data)
        return path

    def add(
        self, number: str, data: bytes, *, name: Name = DEFECTS, key: SigningKey | None = None, **told: Any
    ) -> Artefact:
        """Sign and add a version; an ONNX model unless told otherwise."""
        told = {"media_type": ONNX} | told
        description = Description(reference=version(number, name), **told)
        file = self.file(data)
        signatures = (signature(key or self.key, description, file),)
        return self.registry.add(description, file, who=ANN, signatures=signatures)

    def stored(self, artefact: Artefact) -> Path:
        return self.folder / "artefacts" / "files" / artefact.sha256[:2] / artefact.sha256
