"""Between the registry and content: what does not load does not become current; huge files are not read whole."""

from dataclasses import dataclass
from pathlib import Path

from podium.errors import PodiumError
from tools.artefacts.admission import Admission
from tools.artefacts.errors import ArtefactInvalid
from tools.artefacts.loading import Loader
from tools.artefacts.records import ONNX, Artefact, Description
from tools.onnx.inspection import Inspection, ModelRefused
from tools.onnx.interface import Interface


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Checks artefacts with their content."""

    loader: Loader
    admission: Admission

    def look_at_file(self, description: Description, source: Path) -> None:
        """Look at an ONNX file before it is stored; other content is opaque.

        Raises:
            ModelRefused: it must never be loaded; every reason is listed.
            ArtefactInvalid: it cannot be read.
        """
        if description.media_type != ONNX:
            return
        try:
            with source.open("rb") as file:
                data = file.read(self.admission.inspection.max_bytes + 1)
        except OSError as error:
            raise ArtefactInvalid(f"{source} cannot be read: {error.strerror}", field="file") from error
        self.admission.look(ONNX, data, name=str(description.reference))

    def look(self, artefact: Artefact) -> Inspection | None:
        """What a stored ONNX file is, or None for content of another type.

        Raises:
            ModelRefused and the errors of `Loader.load`.
        """
        if artefact.description.media_type != ONNX:
            return None
        self._require_size(artefact)
        content = self.loader.load(artefact)
        return self.admission.look(ONNX, content.data, name=content.name)

    def admit(self, artefact: Artefact, *, expected: Interface | None = None) -> None:
        """Return only if the artefact may become current.

        Args:
            artefact: the version.
            expected: what an ONNX model is asked to take and give; anything when None.

        Raises:
            ArtefactUnsigned, ArtefactUntrusted, ArtefactCorrupt, ModelError, ModelRefused, TrialFailed: not.
        """
        if artefact.description.media_type != ONNX:
            # Hashed piece by piece: a bundle may be larger than memory.
            if (fault := self.loader.fault(artefact)) is not None:
                raise fault
            return
        self._require_size(artefact)
        self.admission.admit(artefact, self.loader.load(artefact), expected=expected)

    def interface(self, artefact: Artefact) -> Interface | None:
        """What an ONNX model takes and gives; None for other content, and for what does not load any more."""
        try:
            found = self.look(artefact)
        except PodiumError:
            # A current version that is broken is no reason to keep a good one out.
            return None
        return None if found is None else found.interface

    def _require_size(self, artefact: Artefact) -> None:
        most = self.admission.inspection.max_bytes
        if artefact.size_bytes > most:
            raise ModelRefused(f"{artefact.reference} has {artefact.size_bytes} bytes; at most {most} are loaded")
