"""Which planner a server or a command uses, put together out of the rules of packs and the trained planner.

A server whose trained planner is missing or refused starts all the same and plans by rules. It says so in its
log, in the health service under `podium.planner`, and in the route of every plan that it was asked for. Only a
server that was told to use the trained planner alone does not start without it. A promoted version that is refused
while an older one plans is told with the reason by `state`.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from grpc_health.v1 import health_pb2

from cloud.settings import Settings
from cloud.specialists import Specialists
from conductor.hybrid_planner import HybridPlanner
from conductor.planner import Planner
from conductor.thresholds import PlanThresholds, TenantThresholds
from podium.errors import InternalError, PodiumError

if TYPE_CHECKING:
    from conductor.policy.drafting import Drafter
    from tools.artefacts.registry import ArtefactRegistry
    from tools.artefacts.serving import Refused

_LOG = logging.getLogger(__name__)

HEALTH_NAME = "podium.planner"
"""Under which the health service says whether the planner is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerState:
    """What a server plans with."""

    planner: str
    """The setting."""
    version: str = ""
    """Of the trained planner that plans; "" for none."""
    refused: "tuple[Refused, ...]" = ()
    """Versions of it that should plan and do not."""


class Slot(Protocol):
    """Keeps the model that serves; see `conductor.policy.serving.PlannerSlot`."""

    @property
    def version(self) -> str:
        """Which version serves; "" for none."""
        ...

    @property
    def refused(self) -> "tuple[Refused, ...]":
        """Versions that should serve and do not."""
        ...

    def current(self) -> "Drafter":
        """What drafts plans now; the first call loads it."""
        ...

    def follow(self) -> None:
        """Follow promotions."""
        ...

    def close(self) -> None:
        """Stop following."""
        ...


class _OneModel:
    """The model of a command: loaded when it is asked for, and then kept."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._drafter: Drafter | None = None

    @property
    def version(self) -> str:
        return "" if self._drafter is None else self._drafter.model.version or "unnamed"

    @property
    def refused(self) -> "tuple[Refused, ...]":
        return ()  # a command ends with the error instead

    def current(self) -> "Drafter":
        if self._drafter is None:
            from cloud.planning import command_model
            from conductor.policy.drafting import Drafter
            from conductor.policy.tokens import Tokens

            self._drafter = Drafter(command_model(self._data), Tokens())
        return self._drafter

    def follow(self) -> None:
        """A command ends before anything is promoted."""

    def close(self) -> None:
        """There is nothing to stop."""


class TrainedPart:
    """The trained planner of this process, loaded once when it is first needed, or why there is none."""

    def __init__(self, slot: Slot) -> None:
        """Serve what a slot serves."""
        self._slot = slot
        self._lock = threading.Lock()
        self._tried = False
        self._endings: list[Callable[[], None]] = []
        self.failure: PodiumError | None = None
        """Why it cannot plan; None while nobody tried, and when it can."""

    def load(self) -> None:
        """Load the model unless that was tried; a failure is logged and kept."""
        with self._lock:
            if self._tried:
                return
            self._tried = True
            try:
                self._slot.current()
            except PodiumError as error:
                self.failure = error
                _LOG.error("the trained planner cannot be used, rules alone plan: %s", error.code)
            except Exception as error:  # noqa: BLE001 - what cannot be loaded leaves the rules, whatever the reason
                self.failure = InternalError(f"the trained planner failed with {type(error).__name__}")
                _LOG.exception("the trained planner cannot be used, rules alone plan")

    def require(self) -> None:
        """Load the model.

        Raises:
            PodiumError: it cannot be used.
        """
        self.load()
        if self.failure is not None:
            raise self.failure

    def drafter(self) -> "Drafter":
        """What drafts plans now. Waits while the model is being loaded, so not for an event loop.

        Raises:
            PodiumError: there is no model that could.
        """
        self.load()
        if self.failure is not None and not self._slot.version:
            raise self.failure
        return self._slot.current()

    def thresholds(self) -> PlanThresholds:
        """What the model that serves was calibrated to; safe values while none does."""
        return self._slot.current().thresholds if self._slot.version else PlanThresholds()

    @property
    def version(self) -> str:
        """Which version of the model serves; "" for none."""
        return self._slot.version

    @property
    def refused(self) -> "tuple[Refused, ...]":
        """Versions of the model that should serve and do not, or else why none could be loaded."""
        from tools.artefacts.serving import Refused

        refused, failure = self._slot.refused, self.failure
        if refused or failure is None or self._slot.version:
            return refused
        return (Refused(version="", code=failure.code, reason=failure.message),)

    def follow(self) -> None:
        """Follow promotions from now on."""
        self._slot.follow()

    def on_close(self, done: Callable[[], None]) -> None:
        """Have something called when this ends."""
        self._endings.append(done)

    def close(self) -> None:
        """Stop following; a model that is being loaded is waited for, and nothing is loaded after that."""
        with self._lock:
            self._tried = True
        self._slot.close()
        for done in self._endings:
            done()


class ServedPlanner:
    """The planner of a server; made by `open`."""

    def __init__(self, planner: Planner, trained: TrainedPart | None, setting: str) -> None:
        """Use `open`."""
        self.planner = planner
        self._trained = trained
        self._setting = setting

    @classmethod
    def open(cls, settings: Settings, specialists: Specialists, artefacts: "ArtefactRegistry") -> "ServedPlanner":
        """Put a server's planner together; nothing is loaded yet, see `warm` and `require`."""
        if settings.planner == "rules":
            return cls(specialists.planner, None, settings.planner)
        from cloud.planning import policy_slot

        trained = TrainedPart(policy_slot(specialists, artefacts))
        return cls(planner_of(settings, specialists, trained), trained, settings.planner)

    @property
    def needs_model(self) -> bool:
        """Whether it plans with more than rules."""
        return self._trained is not None

    @property
    def state(self) -> PlannerState:
        """What plans now, and what should and does not; asks nothing but memory."""
        if self._trained is None:
            return PlannerState(planner=self._setting)
        return PlannerState(planner=self._setting, version=self._trained.version, refused=self._trained.refused)

    async def require(self, settings: Settings) -> None:
        """Load the trained planner now if nothing else plans.

        Raises:
            PodiumError: it cannot be used, and the setting `planner` leaves nothing else.
        """
        if settings.planner == "policy" and self._trained is not None:
            await asyncio.to_thread(self._trained.require)

    async def warm(self) -> bool:
        """Load the trained planner, if one is wanted, and follow promotions; whether the planner is whole."""
        if self._trained is None:
            return True
        await asyncio.to_thread(self._trained.load)
        self._trained.follow()
        return bool(self._trained.version)

    def close(self) -> None:
        """Stop following promotions."""
        if self._trained is not None:
            self._trained.close()


def planner_of(settings: Settings, specialists: Specialists, trained: TrainedPart) -> Planner:
    """The planner that the settings name, with a trained part."""
    from cloud.planning import templates_of
    from conductor.policy.planner import PolicyPlanner

    templates = templates_of(specialists)
    if settings.planner == "policy":
        alone = PolicyPlanner(trained.drafter, templates=templates, revisions=specialists.planner)
        trained.on_close(alone.close)
        return alone
    given = {tenant: table.given for tenant, table in settings.plan_thresholds.items()}
    policy = PolicyPlanner(trained.drafter, templates=templates)
    trained.on_close(policy.close)
    return HybridPlanner(specialists.planner, policy, TenantThresholds(given, trained.thresholds))


def command_planner(settings: Settings, specialists: Specialists) -> Planner:
    """The planner for a command that plans once, as a server on the data directory would have it.

    Raises:
        PodiumError: the setting `planner` is policy, and the model cannot be used.
    """
    if settings.planner == "rules":
        return specialists.planner
    trained = TrainedPart(_OneModel(settings.data))
    if settings.planner == "policy":
        trained.require()
    return planner_of(settings, specialists, trained)


async def planner_serving(health_service: Any, planners: ServedPlanner, *, load: bool) -> None:
    """Load what plans, and let health checks know whether the planner is whole.

    Args:
        health_service: of the server.
        planners: what plans.
        load: now; a server that one command runs for itself leaves it until a request needs it.
    """
    states = health_pb2.HealthCheckResponse
    if not load and planners.needs_model:
        await health_service.set(HEALTH_NAME, states.UNKNOWN)
        return
    whole = await planners.warm()
    await health_service.set(HEALTH_NAME, states.SERVING if whole else states.NOT_SERVING)
