"""What must be true of an artefact before it becomes current, and before it is served."""

from dataclasses import dataclass, field

from tools.artefacts.records import ONNX, Artefact
from tools.models.verified import VerifiedContent
from tools.onnx.inspection import Inspection, InspectionLimits, inspect, require
from tools.onnx.interface import Interface
from tools.onnx.trial import Trial, TrialLimits, trial_inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Looks at ONNX files and tries them; other kinds of content are opaque here."""

    inspection: InspectionLimits = field(default_factory=InspectionLimits)
    trial: TrialLimits = field(default_factory=TrialLimits)

    def look(
        self, media_type: str, data: bytes, *, name: str, expected: Interface | None = None
    ) -> Inspection | None:
        """What an ONNX file is, or None for content of another type.

        Raises:
            ModelRefused: it must not be loaded; every reason is listed.
        """
        if media_type != ONNX:
            return None
        found = inspect(data, name=name, limits=self.inspection)
        require(found, name=name, expected=expected, limits=self.inspection)
        return found

    def admit(
        self, artefact: Artefact, content: VerifiedContent, *, expected: Interface | None = None
    ) -> Inspection | None:
        """Look at sealed content and try it in a process of its own.

        Args:
            artefact: what it was added as.
            content: its bytes.
            expected: what an ONNX model is asked to take and give; anything when None.

        Raises:
            ModelRefused, TrialFailed: it must not be loaded; every reason is listed.
        """
        media_type = artefact.description.media_type
        found = self.look(media_type, content.data, name=content.name, expected=expected)
        if found is not None:
            trial = Trial(limits=self.trial, inputs=trial_inputs(artefact.description.trial))
            trial.run(content, expected=expected)
        return found
