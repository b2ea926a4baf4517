"""A trained planner that says what it is told to, and one that is not there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conductor.clarifying import clarify_plan
from conductor.errors import NoPlan
from conductor.plan import Plan
from conductor.planner import FinishedStep, Proposal, Situation
from podium.errors import PodiumError


@dataclass
class SurePlanner:
    """As `policy`: its plan with its confidence, or a question where it has none."""

    plan: Mapping[str, Any] | None = None
    """JSON form, `answer` beside `steps` if not the last; None: no agent here can serve the request."""
    fails_with: PodiumError | None = None
    revision: Mapping[str, Any] | None = None
    asked: list[Situation] = field(default_factory=list)

    async def propose(self, situation: Situation) -> Proposal:
        self.asked.append(situation)
        if self.fails_with is not None:
            raise self.fails_with
        if self.plan is not None:
            return _proposal(self.plan)
        reason = "no agent here can serve the request"
        asking = clarify_plan(situation.registry, situation.request, reason=reason, about=(), planner="policy")
        if asking is None:
            raise NoPlan(f"{reason}, and no agent is on duty that could ask the caller")
        return asking

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        if self.fails_with is not None:
            raise self.fails_with
        return _proposal(self.revision) if self.revision is not None else None


def _proposal(template: Mapping[str, Any]) -> Proposal:
    plan = Plan.from_json(template)
    answer = template.get("answer", len(plan.steps) - 1)
    return Proposal(plan=plan, answer=answer, planner="policy", origin="podium-planner 1")


def sure(steps: Sequence[Mapping[str, Any]], confidence: float, **fields: Any) -> Mapping[str, Any]:
    """A plan in its JSON form with this confidence."""
    return {"steps": list(steps), "confidence": confidence, **fields}


@dataclass
class WordedPlanner:
    """As `policy`, with a plan for each request that holds a given word; it cannot serve any other."""

    plans: Mapping[str, Mapping[str, Any]]

    async def propose(self, situation: Situation) -> Proposal:
        text = str(situation.request.get("text", ""))
        plan = next((plan for word, plan in self.plans.items() if word in text), None)
        return await SurePlanner(plan).propose(situation)

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        return None


_COUNT = {"tool": "relay_count", "arguments": {"text": {"request": "text"}, "pause_ms": 0}}
_TELL = {"tool": "relay_tell", "arguments": {"words": {"step": 0, "field": "words"}, "pause_ms": 0}}
RELAY_PLANS: Mapping[str, Mapping[str, Any]] = {
    "tally": sure([_COUNT, _TELL], 0.92),
    "reckon": sure([_COUNT, _TELL], 0.55),
    "guess": sure([_COUNT, _TELL], 0.11),
}
"""By a word of the request: over the agents of the test packs, with more and less confidence."""
