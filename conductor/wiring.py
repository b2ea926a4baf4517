"""What a runner is wired to: registry, engines, planner, clock and the limits it keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agents.invocation import Caller, Engine
from agents.registry import AgentRegistry
from conductor.anchor import Embedder
from conductor.bus import EventBus
from conductor.checked_plan import caller_of
from conductor.checking import OutputChecker
from conductor.failure import FailurePolicy
from conductor.planner import Planner
from conductor.progress import TaskState
from conductor.request import TextNormaliser, plain_text
from conductor.verify import PlanLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Limits of running one task."""

    plan_limits: PlanLimits = field(default_factory=PlanLimits)
    failure_policy: FailurePolicy = field(default_factory=FailurePolicy)
    max_parallel_steps: int = 8
    """Steps of one task that run at once."""
    poll_interval: timedelta = timedelta(milliseconds=250)
    """How soon a long step notices that its task was cancelled or answered by another process."""
    timeout_grace: timedelta = timedelta(seconds=1)
    """How much longer than its time limit an engine may take before the runner gives it up."""
    anchor_threshold: float = 0.3
    """Cosine below which an agent's text input has drifted from the request."""
    max_questions: int = 5
    """Questions to the caller before a task is given up."""
    max_interruptions: int = 3
    """How often a step is started again after the process died while it ran."""


def _never_online(device_id: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Everything a runner uses; made once a process and shared by all its tasks."""

    bus: EventBus
    registry: AgentRegistry
    engines: Mapping[str, Engine]
    """By the name that manifests give: python, device."""
    planner: Planner
    clock: Callable[[], datetime]
    """The present moment in UTC; never the moment a request refers to."""
    normalise: TextNormaliser = plain_text
    embedder: Embedder | None = None
    """None: inputs are not anchored."""
    device_online: Callable[[str], bool] = _never_online
    settings: RunnerSettings = field(default_factory=RunnerSettings)
    checker: OutputChecker = field(default_factory=OutputChecker)

    def caller(self, state: TaskState) -> Caller:
        """Whoever handed the task in, with the roles they had then."""
        return caller_of(state)
