"""What a planner is: it proposes plans; verification decides whether they run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agents.invocation import Caller
from agents.registry import AgentRegistry
from conductor.plan import Plan
from conductor.route import RouteEntry
from conductor.thresholds import PlanThresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStep:
    """A step of an earlier plan of the same task, and what became of it."""

    agent: str
    """Who did it or failed to."""
    verdict: str
    """ok, failed, unavailable (was not to be had) or irrelevant (brought nothing of use)."""
    result: str = ""
    """The code of the error; empty for a step that succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a planner may look at."""

    request: Mapping[str, Any]
    """The normalised request."""
    registry: AgentRegistry
    caller: Caller
    avoid: frozenset[str] = frozenset()
    """Agents that failed a step for good; a new plan must do without them."""
    tenant: str = ""
    """Whom the caller belongs to; thresholds may differ by tenant."""
    previous: tuple[PastStep, ...] = ()
    """The settled steps of the plans that the task has had; empty for its first plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStep:
    """A step whose output may change what should be done."""

    tool: str
    output: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another way that a planner saw, and how sure it was of it."""

    tools: tuple[str, ...]
    """In order; empty: nobody here can serve the request."""
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan with where it came from."""

    plan: Plan
    answer: int
    """Index of the step whose output is the answer."""
    planner: str
    """rules, policy, llm, revision, conductor or person."""
    origin: str
    """Which rule, model or person it came from."""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    """What else was considered, best first; planners that do not weigh plans have none."""
    route: tuple[RouteEntry, ...] = ()
    """Every planner that was asked, in order; empty where there was only one to ask."""
    thresholds: PlanThresholds | None = None
    """What the model that made the plan was calibrated to; None of planners without a model."""
    for_person: bool = False
    """Nobody is sure enough of the plan: a person is asked for it, and nothing runs before."""


class Planner(Protocol):
    """Proposes plans; knows nothing of running them."""

    async def propose(self, situation: Situation) -> Proposal:
        """A plan for the request.

        A request that is not understood gets a plan whose only step asks the caller; nothing is guessed.

        Raises:
            NoPlan: there is no plan without the agents to avoid, and nobody to ask the caller.
        """
        ...

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        """A complete new plan, when what a step brought asks for one.

        Args:
            situation: As for `propose`.
            finished: The step that just succeeded.
            origins_used: `planner/origin` of the plans the task has had; a revision applies once.
        """
        ...
