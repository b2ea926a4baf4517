"""The trained part of a server's planner: which model planned, and what is said of one that cannot."""

import asyncio
from collections.abc import Mapping

import pytest

from agents.invocation import Caller
from cloud.planners import PlannerState, ServedPlanner, TrainedPart
from conductor.hybrid_planner import HybridPlanner
from conductor.planner import Situation
from conductor.policy.drafting import Considered, Drafter
from conductor.policy.planner import PolicyPlanner
from conductor.policy.tokens import Tokens
from conductor.rules_planner import RulesPlanner
from conductor.thresholds import PlanThresholds, PlanThresholdsInvalid, TenantThresholds
from tests.fakes.agents import ANSWER, TEXT, agent_spec, registry_of
from tests.fakes.drafting import NoModel, ScriptedDrafter
from tools.artefacts.serving import Refused
from tools.models.pinned import ModelMissing


class Slot:
    """Serves one model after another."""

    def __init__(self, *drafters: Drafter) -> None:
        self._drafters = list(drafters)

    refused: tuple[Refused, ...] = ()

    @property
    def version(self) -> str:
        return str(len(self._drafters)) if self._drafters else ""

    def current(self) -> Drafter:
        if not self._drafters:
            raise ModelMissing("no.onnx is not there")
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


def test_a_server_says_what_plans_and_what_should_and_does_not() -> None:
    rules = RulesPlanner([])
    assert ServedPlanner(rules, None, "rules").state == PlannerState(planner="rules")
    slot = Slot(ScriptedDrafter(lambda *_: [[]]))
    slot.refused = (Refused(version="2", code="ONNX_TRIAL_FAILED", reason="it crashed"),)
    served = ServedPlanner(rules, TrainedPart(slot), "hybrid")
    assert served.state == PlannerState(planner="hybrid", version="1", refused=slot.refused)


def test_where_no_model_could_be_loaded_the_state_says_why() -> None:
    trained = TrainedPart(Slot())
    served = ServedPlanner(RulesPlanner([]), trained, "hybrid")
    assert served.state == PlannerState(planner="hybrid"), "nothing was tried yet"
    trained.load()
    [refused] = served.state.refused
    assert (refused.version, refused.code, refused.reason) == ("", "MODEL_MISSING", "no.onnx is not there")


def test_a_model_with_damaged_thresholds_is_refused_when_it_is_loaded() -> None:
    class Damaged(NoModel):
        properties: Mapping[str, str] = {"thresholds": '{"run": 2}'}

    with pytest.raises(PlanThresholdsInvalid, match="run is 2"):
        Drafter(Damaged(), Tokens())
