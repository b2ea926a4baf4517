"""The only way from a stored artefact to bytes that may be loaded."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from podium.errors import PodiumError
from tools.artefacts.errors import ArtefactCorrupt
from tools.artefacts.files import ArtefactFiles
from tools.artefacts.records import Artefact
from tools.artefacts.trust import TrustedKeys
from tools.models.pinned import PinnedModels
from tools.models.verified import OtherBytes, VerifiedContent, answered_for

__all__ = ["Loader", "sha256_of_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Checks the hash and who answers for it, every time, on the bytes that are handed on."""

    files: ArtefactFiles
    keys: TrustedKeys
    packaged: PinnedModels

    def load(self, artefact: Artefact) -> VerifiedContent:
        """The content of an artefact, sealed.

        Raises:
            ArtefactUnsigned, ArtefactUntrusted: nobody who is trusted answers for it.
            ArtefactCorrupt: the bytes are others.
            ModelError: it comes from a package, and the committed list does not allow it.
        """
        if artefact.package_model:
            content = self.packaged.verified(artefact.package_model)
            _require_same(artefact, content.sha256)
            return content
        key = self.keys.require(artefact)
        data = self.files.read(artefact.sha256, artefact.size_bytes)
        answerer = f"key {key.key_id} ({key.label})"
        try:
            return answered_for(str(artefact.reference), data, sha256=artefact.sha256, answerer=answerer)
        except OtherBytes as error:
            raise ArtefactCorrupt(
                f"{artefact.reference} has SHA-256 {error.sha256[:16]}...,"
                f" it was added with {artefact.sha256[:16]}..."
            ) from error

    def require_trusted(self, artefact: Artefact) -> None:
        """Return only if somebody who is trusted now answers for the artefact; the bytes are not looked at.

        Raises:
            ArtefactUnsigned, ArtefactUntrusted: nobody does.
            ModelError: it comes from a package, and the committed list has another hash now or none.
        """
        if artefact.package_model:
            _require_same(artefact, self.packaged.entry(artefact.package_model).sha256)
        else:
            self.keys.require(artefact)

    def fault(self, artefact: Artefact) -> PodiumError | None:
        """Why an artefact would not load now, or None; hashes large files piece by piece."""
        try:
            self.require_trusted(artefact)
            if artefact.package_model:
                self.packaged.verified_path(artefact.package_model)
            else:
                self._require_whole(artefact)
        except PodiumError as error:
            return error
        return None

    def _require_whole(self, artefact: Artefact) -> None:
        found = self.files.digest(artefact.sha256)
        if found is None:
            raise ArtefactCorrupt(f"the file of {artefact.reference} is not there any more")
        if found.sha256 != artefact.sha256 or found.size_bytes != artefact.size_bytes:
            raise ArtefactCorrupt(f"the file of {artefact.reference} holds other bytes than were added")


def sha256_of_file(path: Path) -> tuple[str, int]:
    """Hash, in hexadecimal, and size of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _require_same(artefact: Artefact, sha256: str) -> None:
    if sha256 != artefact.sha256:
        raise ArtefactCorrupt(
            f"{artefact.reference} was added with SHA-256 {artefact.sha256[:16]}..., and the committed list"
            f" now has {sha256[:16]}... for {artefact.package_model}",
            next_step="Add the model of the updated package as a new version.",
        )
