"""Which trained planner serves: the promoted artefact `planner/podium-planner`, or else the one that ships.

A promotion is noticed while the server runs. The new model is looked at, tried in a process of its own and made
ready, tools included, beside the one that serves; only then it takes over, and a request keeps the one it began
with. A version that is refused changes nothing but what the slot says of itself: `refused` has it until it is put
right.
"""

import logging
import threading
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from conductor.policy.model import COMMITTED, PlannerModel
from podium.errors import InternalError, PodiumError
from tools.artefacts.admission import Admission
from tools.artefacts.errors import NothingCurrent
from tools.artefacts.records import Name
from tools.artefacts.registry import ArtefactRegistry
from tools.artefacts.serving import ModelSource, PackagedModel, Refused, RegisteredModel
from tools.models.pinned import ModelError, PinnedModels, committed_models
from tools.models.verified import VerifiedContent
from tools.onnx.inspection import inspect, require
from tools.onnx.trial import Trial

_LOG = logging.getLogger(__name__)

PLANNER = Name(kind="planner", name="podium-planner")
"""The artefact whose current version takes the place of the planner that ships."""
_FOLLOW_EVERY = timedelta(seconds=1)
_CLOSES_WITHIN_S = 5.0
SHIPPED = "shipped"
"""What the version of the planner that ships is called here."""

_NOTHING = object()

D = TypeVar("D")


def planner_content(registry: ArtefactRegistry | None, models: PinnedModels | None = None) -> VerifiedContent:
    """The planner for a command that plans once: the promoted one, or else the one that ships.

    Raises:
        ModelError: nobody answers for its bytes, or it is not there.
    """
    if registry is not None and registry.current(PLANNER) is not None:
        source = RegisteredModel(registry=registry, name=PLANNER)
        return source.content(source.wanted().versions[0])
    return (models or committed_models()).verified(COMMITTED)


class PlannerSlot(Generic[D]):
    """Keeps what plans with the current model, and follows promotions."""

    def __init__(
        self,
        make: Callable[[PlannerModel], D],
        *,
        registry: ArtefactRegistry | None = None,
        models: PinnedModels | None = None,
        admission: Admission | None = None,
        threads: int = 1,
        keep_ready: Callable[[D], None] | None = None,
    ) -> None:
        """Nothing is loaded yet: call `refresh`, or `follow`.

        Args:
            make: Gives what plans with a model, ready to be used.
            registry: Whose current `planner/podium-planner` is served; None serves the one that ships.
            models: Where the one that ships is listed; the committed list unless given.
            admission: How a promoted model is looked at and tried.
            threads: Threads for one run of a part.
            keep_ready: Called now and then with what serves, while promotions are followed.
        """
        self._make = make
        self._keep_ready = keep_ready
        self._promoted = None if registry is None else RegisteredModel(registry=registry, name=PLANNER)
        self._shipped = PackagedModel(models=models or committed_models(), name=COMMITTED, inputs={})
        self._admission = admission or Admission()
        self._threads = threads
        self._serving: tuple[Hashable, str, D] | None = None
        self._refused_marker: Hashable = _NOTHING
        self._refused: tuple[Refused, ...] = ()
        self._trouble: tuple[Refused, ...] = ()
        self._preparing = threading.Lock()
        self._stopped = threading.Event()
        self._follower: threading.Thread | None = None

    @property
    def version(self) -> str:
        """Which version serves; `SHIPPED` for the one that ships, "" for none."""
        return "" if self._serving is None else self._serving[1]

    @property
    def refused(self) -> tuple[Refused, ...]:
        """What should be served and is not, the one that ships last; no version: nobody knows which should."""
        return (*self._refused, *self._trouble)

    def current(self) -> D:
        """What plans now; the first call loads it.

        Raises:
            PodiumError: neither a promoted model nor the one that ships can be loaded.
        """
        serving = self._serving
        if serving is None:
            self.refresh()
            serving = self._serving
        if serving is None:
            with self._preparing:
                serving = self._serving or (None, SHIPPED, self._ready(self._shipped, SHIPPED))
                self._serving = serving
        return serving[2]

    def refresh(self) -> None:
        """Bring the slot to what is current, or keep what it serves and note why; never raises a refusal."""
        with self._preparing:
            try:
                self._refresh()
            except PodiumError as error:
                self._trouble = (Refused(version="", code=error.code, reason=error.message),)
            else:
                self._trouble = ()

    def follow(self, *, every: timedelta = _FOLLOW_EVERY) -> None:
        """Refresh now and then on a thread of its own until `close`."""
        self._follower = threading.Thread(
            target=self._follow, args=(every.total_seconds(),), name="planner-slot", daemon=True
        )
        self._follower.start()

    def close(self) -> None:
        """Stop following; a version that is being made ready is waited for a few seconds."""
        self._stopped.set()
        if self._follower is not None:
            self._follower.join(timeout=_CLOSES_WITHIN_S)

    def _follow(self, every_s: float) -> None:
        while not self._stopped.is_set():
            try:
                self.refresh()
                if self._keep_ready is not None and self._serving is not None:
                    self._keep_ready(self._serving[2])
            except Exception:  # noqa: BLE001 - whatever happens here, what serves goes on serving
                _LOG.exception("the planner could not be brought up to date")
            self._stopped.wait(every_s)

    def _refresh(self) -> None:
        self._withdraw_untrusted()
        source, marker, version = self._wanted()
        if self._serving is not None and self._serving[0] == marker:
            return
        if marker == self._refused_marker:
            return
        try:
            ready = self._ready(source, version)
        except PodiumError as error:
            _LOG.warning("planner version %s is refused: %s", version, error.code)
            self._refuse(error, source, marker, version)
            return
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, what serves goes on
            _LOG.exception("planner version %s is refused", version)
            unforeseen = InternalError(f"making it ready failed with {type(error).__name__}")
            self._refuse(unforeseen, source, marker, version)
            return
        self._serving = (marker, version, ready)
        self._refused, self._refused_marker = (), _NOTHING
        _LOG.info("planner version %s serves", version)

    def _wanted(self) -> tuple[ModelSource, Hashable, str]:
        if self._promoted is not None:
            try:
                wanted = self._promoted.wanted()
            except NothingCurrent:
                pass
            else:
                return self._promoted, wanted.marker, wanted.versions[0]
        return self._shipped, None, SHIPPED

    def _withdraw_untrusted(self) -> None:
        """Serve the one that ships instead of a version whose signer is not trusted any more."""
        if self._serving is None or self._serving[0] is None or self._promoted is None:
            return
        marker, version, _ = self._serving
        try:
            self._promoted.require_trusted(version)
        except ModelError as error:
            _LOG.warning("planner version %s is withdrawn: %s", version, error.code)
            self._serving = None  # also when the one that ships cannot be loaded
            self._refuse(error, self._promoted, marker, version)

    def _refuse(self, error: PodiumError, source: ModelSource, marker: Hashable, version: str) -> None:
        """Keep why a version does not serve, and serve the one that ships where nothing else does."""
        self._refused = (Refused(version=version, code=error.code, reason=error.message),)
        self._refused_marker = marker
        if self._serving is None and source is not self._shipped:
            try:
                self._serving = (None, SHIPPED, self._ready(self._shipped, SHIPPED))
            except PodiumError as missing:
                self._refused += (Refused(version=SHIPPED, code=missing.code, reason=missing.message),)

    def _ready(self, source: ModelSource, version: str) -> D:
        content = source.content(version)
        if source is not self._shipped:
            # What ships was looked at when it was committed; anything else may crash its loader.
            found = inspect(content.data, name=content.name, limits=self._admission.inspection)
            require(found, name=content.name, limits=self._admission.inspection)
            Trial(limits=self._admission.trial, inputs=source.trial(version)).run(content)
        model = PlannerModel(content, threads=self._threads)
        model.load()
        return self._make(model)
