"""A model that is served while it is replaced: the new version is made ready beside the old one, or refused.

Every run uses the version that was serving when it began. A version that is refused (other bytes, no trusted
signature, a format or shape that does not fit, a failed trial) changes nothing but what the slot says of itself.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from numpy.typing import NDArray

from podium.errors import PodiumError
from tools.artefacts.admission import Admission
from tools.artefacts.errors import ArtefactNotServing, NothingCurrent
from tools.artefacts.records import Name, Reference
from tools.artefacts.registry import ArtefactRegistry
from tools.models.pinned import ModelError, PinnedModels
from tools.models.verified import VerifiedContent
from tools.onnx.inspection import inspect, require
from tools.onnx.interface import Interface
from tools.onnx.model import OnnxModel, RunStop
from tools.onnx.trial import Trial, TrialInput, trial_inputs

_LOG = logging.getLogger(__name__)

_CLOSES_WITHIN_S = 5.0
_FOLLOW_EVERY = timedelta(seconds=1)
_TRY_REFUSED_AGAIN_AFTER = timedelta(minutes=1)
"""A trial may have failed because the machine was busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What should be served."""

    marker: Hashable
    """Another one whenever something else became current."""
    versions: tuple[str, ...]
    """The current one, then those that were before it, newest first."""


class ModelSource(Protocol):
    """Where a slot finds out what to serve, and gets it."""

    def wanted(self) -> Wanted:
        """What should be served now.

        Raises:
            NothingCurrent: nothing was promoted yet.
        """
        ...

    def content(self, version: str) -> VerifiedContent:
        """The sealed bytes of a version; the errors of `ArtefactRegistry.load`."""
        ...

    def require_trusted(self, version: str) -> None:
        """Return only if somebody who is trusted now answers for the version.

        Raises:
            ModelError: nobody does.
        """
        ...

    def trial(self, version: str) -> Mapping[str, TrialInput]:
        """What its trial is fed besides zeros."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """The current version of a model in a registry."""

    registry: ArtefactRegistry
    name: Name

    def wanted(self) -> Wanted:
        """See `ModelSource.wanted`."""
        current = self.registry.current(self.name)
        if current is None:
            raise NothingCurrent(f"no version of {self.name} is current")
        return Wanted(marker=current.sequence, versions=self.registry.succession(self.name))

    def content(self, version: str) -> VerifiedContent:
        """See `ModelSource.content`."""
        return self.registry.load(self.registry.get(self._reference(version)))

    def require_trusted(self, version: str) -> None:
        """See `ModelSource.require_trusted`."""
        self.registry.require_trusted(self.registry.get(self._reference(version)))

    def trial(self, version: str) -> Mapping[str, TrialInput]:
        """See `ModelSource.trial`."""
        return trial_inputs(self.registry.get(self._reference(version)).description.trial)

    def _reference(self, version: str) -> Reference:
        return Reference(name=self.name, version=version)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A model of the committed list; it has one version, that of its package."""

    models: PinnedModels
    name: str
    inputs: Mapping[str, TrialInput]

    def wanted(self) -> Wanted:
        """See `ModelSource.wanted`."""
        entry = self.models.entry(self.name)
        return Wanted(marker=entry.sha256, versions=(entry.version,))

    def content(self, version: str) -> VerifiedContent:
        """See `ModelSource.content`."""
        return self.models.verified(self.name)

    def require_trusted(self, version: str) -> None:
        """See `ModelSource.require_trusted`."""
        self.models.entry(self.name)

    def trial(self, version: str) -> Mapping[str, TrialInput]:
        """See `ModelSource.trial`."""
        return self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A version that is current and not served."""

    version: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """What a slot says of itself."""

    serving: str | None
    """Version, or None."""
    sha256: str | None
    refused: tuple[Refused, ...]
    """What should be served and is not, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Serving:
    version: str
    sha256: str
    model: OnnxModel


class ModelSlot:
    """Serves the current version of an ONNX model and follows it; `run` is safe from many threads."""

    def __init__(
        self,
        source: ModelSource,
        *,
        expected: Interface | None = None,
        admission: Admission | None = None,
        threads: int = 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is loaded yet: call `refresh`, or `follow`.

        Args:
            source: what to serve.
            expected: what the model is asked to take and give; anything when None.
            admission: how it is looked at and tried.
            threads: threads for one run.
            monotonic: a clock in seconds that never goes back.
        """
        self._source = source
        self._expected = expected
        self._admission = admission or Admission()
        self._threads = threads
        self._monotonic = monotonic
        self._serving: _Serving | None = None
        self._refused: tuple[Refused, ...] = ()
        self._refused_marker: Hashable = None
        self._try_again_at_s = 0.0
        self._preparing = threading.Lock()
        self._stopped = threading.Event()
        self._follower: threading.Thread | None = None

    @property
    def state(self) -> SlotState:
        """What is served, and what is refused with why."""
        serving = self._serving
        return SlotState(
            serving=None if serving is None else serving.version,
            sha256=None if serving is None else serving.sha256,
            refused=self._refused,
        )

    def run(self, inputs: Mapping[str, NDArray[Any]], *, stop: RunStop | None = None) -> dict[str, NDArray[Any]]:
        """Run the version that serves now; it stays the same until the run ends.

        Raises:
            ArtefactNotServing: no version could be loaded; `evidence` says why for each.
            NonFinite, OnnxRunError: see `OnnxModel.run`.
        """
        serving = self._serving
        if serving is None:
            evidence = [f"{item.version}: {item.code}: {item.reason}" for item in self._refused]
            raise ArtefactNotServing(f"no version is served: {'; '.join(evidence)[:1000]}", evidence=evidence)
        return serving.model.run(inputs, stop=stop)

    def refresh(self) -> SlotState:
        """Bring the slot to what is current, or keep what it serves and note why; never raises a refusal."""
        with self._preparing:
            try:
                self._refresh()
            except PodiumError as error:
                self._note((Refused(version="", code=error.code, reason=error.message),), None)
            return self.state

    def follow(self, *, every: timedelta = _FOLLOW_EVERY) -> None:
        """Refresh now and then on a thread of its own until `close`.

        Args:
            every: how soon a promotion is noticed.
        """
        self._follower = threading.Thread(
            target=self._follow, args=(every.total_seconds(),), name="model-slot", daemon=True
        )
        self._follower.start()

    def close(self) -> None:
        """Stop following; a version that is being made ready is waited for a few seconds, and given up then."""
        self.stop_following()
        if self._follower is not None:
            self._follower.join(timeout=_CLOSES_WITHIN_S)

    def stop_following(self) -> None:
        """Stop following without waiting for anything; what serves still runs for whoever has the slot."""
        self._stopped.set()

    def _follow(self, every_s: float) -> None:
        while not self._stopped.is_set():
            try:
                self.refresh()
            except Exception:  # noqa: BLE001 - whatever happens here, what serves goes on serving
                _LOG.exception("a model could not be brought up to date")
            self._stopped.wait(every_s)

    def _refresh(self) -> None:
        withdrawn = self._withdraw_untrusted()
        wanted = self._source.wanted()
        if self._serving is not None and self._serving.version == wanted.versions[0]:
            self._note((), None)
            return
        if wanted.marker == self._refused_marker and not withdrawn and self._monotonic() < self._try_again_at_s:
            return
        self._prepare_one_of(wanted)

    def _prepare_one_of(self, wanted: Wanted) -> None:
        # With nothing served, an earlier version that loads is better than none; otherwise what serves stays.
        versions: Sequence[str] = wanted.versions if self._serving is None else wanted.versions[:1]
        refused: list[Refused] = []
        for version in versions:
            try:
                ready = self._prepare(version)
            except PodiumError as error:
                _LOG.warning("model version %s is refused: %s", version, error.code)
                refused.append(Refused(version=version, code=error.code, reason=error.message))
                continue
            # One assignment: a run sees the old version or the new one, whole.
            self._serving = ready
            _LOG.info("model version %s serves", version)
            break
        self._note(tuple(refused), wanted.marker)

    def _prepare(self, version: str) -> _Serving:
        content = self._source.content(version)
        found = inspect(content.data, name=content.name, limits=self._admission.inspection)
        require(found, name=content.name, expected=self._expected, limits=self._admission.inspection)
        trial = Trial(limits=self._admission.trial, inputs=self._source.trial(version))
        trial.run(content, expected=self._expected)
        model = OnnxModel.of(content, threads=self._threads)
        return _Serving(version=version, sha256=content.sha256, model=model)

    def _withdraw_untrusted(self) -> bool:
        """Stop serving a version whose signer is not trusted any more: what it does cannot be vouched for."""
        if self._serving is None:
            return False
        try:
            self._source.require_trusted(self._serving.version)
        except ModelError as error:
            _LOG.warning("model version %s is withdrawn: %s", self._serving.version, error.code)
            self._note((Refused(version=self._serving.version, code=error.code, reason=error.message),), None)
            self._serving = None
            return True
        return False

    def _note(self, refused: tuple[Refused, ...], marker: Hashable) -> None:
        self._refused = refused
        self._refused_marker = marker if refused else None
        self._try_again_at_s = self._monotonic() + _TRY_REFUSED_AGAIN_AFTER.total_seconds()
