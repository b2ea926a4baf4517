"""The trained part of a server's planner: which model planned, and what is said of one that cannot."""

import asyncio

import pytest

from agents.invocation import Caller
from cloud.planners import TrainedPart
from conductor.hybrid_planner import HybridPlanner
from conductor.planner import Situation
from conductor.policy.drafting import Considered, Drafter
from conductor.policy.planner import PolicyPlanner
from conductor.rules_planner import RulesPlanner
from conductor.thresholds import PlanThresholds, TenantThresholds
from tests.fakes.agents import ANSWER, TEXT, agent_spec, registry_of
from tests.fakes.drafting import ScriptedDrafter


class Slot:
    """Serves one model after another."""

    def __init__(self, *drafters: Drafter) -> None:
        self._drafters = list(drafters)

    @property
    def version(self) -> str:
        return str(len(self._drafters))

    def current(self) -> Drafter:
        return self._drafters[0]

    def promote(self) -> None:
        """Let the next one serve."""
        del self._drafters[0]

    def follow(self) -> None: ...

    def close(self) -> None: ...


class Promoting(ScriptedDrafter):
    """Another model takes over while this one is still at it."""

    slot: Slot

    def sure_of(self, considered: Considered, chosen: int) -> float:
        if self.slot.current() is self:
            self.slot.promote()
        return 0.7


@pytest.mark.parametrize(("run", "for_person"), [(0.6, False), (0.9, True)])
def test_a_model_that_is_replaced_while_it_plans_is_held_against_its_own_thresholds(
    run: float, for_person: bool
) -> None:
    tell = agent_spec("tell", inputs={"text": TEXT}, outputs=ANSWER)
    first = Promoting(lambda *_: [["tell"]], thresholds=PlanThresholds(run=run, ask_person=0.5))
    second = ScriptedDrafter(lambda *_: [["tell"]], thresholds=PlanThresholds(run=1.5 - run, ask_person=0.0))
    first.slot = Slot(first, second)
    trained = TrainedPart(first.slot)
    policy = PolicyPlanner(trained.drafter)
    planner = HybridPlanner(RulesPlanner([]), policy, TenantThresholds({}, trained.thresholds))
    request = {"text": "sing", "language": "en", "entities": {}, "unresolved": []}
    situation = Situation(request=request, registry=registry_of(tell), caller=Caller(name="tester"))

    proposal = asyncio.run(planner.propose(situation))

    policy.close()
    assert trained.drafter() is second
    assert (proposal.route[-1].threshold, proposal.for_person) == (run, for_person)
