"""The trained planner as a file: one ONNX graph that holds every part, loaded only when somebody answers for it.

Each part is cut out of it and loaded the first time it is run.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grpc import StatusCode

from conductor.policy.parts import Array
from tools.models.pinned import PinnedModels, committed_models
from tools.models.verified import VerifiedContent
from tools.onnx.errors import OnnxError
from tools.onnx.header import OnnxHeaderError, read_properties
from tools.onnx.memory import give_back
from tools.onnx.model import OnnxModel
from tools.onnx.subgraph import subgraph

COMMITTED = "podium-planner"
"""Name of the shipped planner in the committed list of models."""
METADATA = "podium.planner"
"""Key of the file's metadata: JSON with version, date, seeds, data and the parameters of the confidence."""
PARTS = "podium.parts"
"""Key of the file's metadata: JSON with the inputs and outputs of each part."""


class PlannerModelInvalid(OnnxError):
    """An ONNX file that is no planner, or lacks a part."""

    code = "PLANNER_MODEL_INVALID"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Export the planner again with python -m conductor.training.export; what served before goes on."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    feeds: Mapping[str, str]
    """Name of each input to its name in the file."""
    outputs: Mapping[str, str]
    """Likewise."""


class PlannerModel:
    """Runs parts out of the file; see `conductor.policy.parts.PartRunner`. Safe from several threads."""

    def __init__(self, content: VerifiedContent, *, threads: int = 1) -> None:
        """Read what the file says of itself; parts are loaded when they are first run.

        Args:
            content: The file, sealed by whoever answers for it.
            threads: Threads for one run.

        Raises:
            PlannerModelInvalid: it is no planner.
        """
        self._content: VerifiedContent | None = content
        self._threads = threads
        self._loaded: dict[str, OnnxModel] = {}
        self._loading = threading.Lock()
        self.sha256 = content.sha256
        properties: Mapping[str, str] = _properties(content)
        self.properties = properties
        """The file's metadata as it stands."""
        self.metadata: Mapping[str, Any] = _json(properties, content.name, METADATA)
        """What the export said of it: version, date, seeds, data, confidence."""
        described = _json(properties, content.name, PARTS)
        self._parts = {name: _part(name, item) for name, item in described.items()}

    @classmethod
    def committed(cls, *, models: PinnedModels | None = None, threads: int = 1) -> "PlannerModel":
        """The planner that ships with Podium.

        Raises:
            ModelError: its bytes are not the reviewed ones, or it is not there.
            PlannerModelInvalid: it is no planner.
        """
        return cls((models or committed_models()).verified(COMMITTED), threads=threads)

    @property
    def version(self) -> str:
        """As the export named it."""
        return str(self.metadata.get("version", ""))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its parts."""
        return tuple(self._parts)

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """See `PartRunner.run`.

        Raises:
            PlannerModelInvalid: the file has no such part.
            OnnxLoadError: the part does not load.
            NonFinite, OnnxRunError: the runtime failed.
        """
        known = self._parts.get(part)
        if known is None:
            raise PlannerModelInvalid(f"the planner has no part {part!r}; it has {', '.join(self._parts)}")
        model = self._loaded.get(part) or self._load(part, known)
        found = model.run({known.feeds[name]: value for name, value in inputs.items()})
        return {name: found[output] for name, output in known.outputs.items()}

    def load(self) -> None:
        """Load every part now, so that no request waits for it, and let go of the file.

        Raises:
            OnnxLoadError: one does not load.
        """
        # The largest first: loading takes several times a part's size, and least is in memory then.
        for name in sorted(self._parts, key=self._size, reverse=True):
            self._load(name, self._parts[name])
            give_back()
        self._content = None
        give_back()

    def _size(self, name: str) -> int:
        content = self._content
        outputs = tuple(self._parts[name].outputs.values())
        return 0 if content is None else len(subgraph(content.data, outputs, name=content.name))

    def _load(self, name: str, part: _Part) -> OnnxModel:
        with self._loading:
            if name not in self._loaded:
                if self._content is None:
                    raise PlannerModelInvalid(f"part {name!r} was not there when the planner was loaded")
                outputs = tuple(part.outputs.values())
                self._loaded[name] = OnnxModel.part_of(self._content, outputs, threads=self._threads)
            return self._loaded[name]


def _properties(content: VerifiedContent) -> dict[str, str]:
    try:
        return read_properties(content.data, name=content.name)
    except OnnxHeaderError as error:
        raise PlannerModelInvalid(str(error)) from error


def _json(properties: Mapping[str, str], name: str, key: str) -> dict[str, Any]:
    try:
        found = json.loads(properties[key])
    except (KeyError, ValueError) as error:
        raise PlannerModelInvalid(f"{name} is no planner: its metadata has no {key}") from error
    if not isinstance(found, dict):
        raise PlannerModelInvalid(f"{name} is no planner: {key} is no object")
    return found


def _part(name: str, item: Any) -> _Part:
    try:
        return _Part(
            feeds={key: f"{name}.{key}" for key in item["inputs"]},
            outputs={key: f"{name}.{key}" for key in item["outputs"]},
        )
    except (KeyError, TypeError) as error:
        raise PlannerModelInvalid(f"part {name} is not described by inputs and outputs") from error
