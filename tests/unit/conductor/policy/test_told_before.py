"""A planner that plans anew tells its model what became of the steps before, if the model learned to heed it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.invocation import Caller
from conductor.planner import PastStep, Situation
from conductor.policy.planner import PolicyPlanner
from conductor.policy.selecting import Verdict
from tests.fakes.agents import ANSWER, TEXT, agent_spec, registry_of
from tests.fakes.drafting import NoModel, ScriptedDrafter

SPECS = (
    agent_spec("ask_oracle", inputs={"text": TEXT}, outputs=ANSWER),
    agent_spec("ask_librarian", inputs={"text": TEXT}, outputs=ANSWER),
)
PAST = (
    PastStep(agent="ask_oracle", verdict="unavailable", result="AGENT_TIMEOUT"),
    PastStep(agent="somebody_gone", verdict="ok"),
)


class Heeding(NoModel):
    """A model of stage 2."""

    metadata: Mapping[str, Any] = {"feedback": True}


@pytest.mark.parametrize("heeds", [True, False])
def test_the_model_is_told_of_agents_that_are_there(heeds: bool) -> None:
    drafter = ScriptedDrafter(lambda text, cards: [["ask_oracle"], ["ask_librarian"]])
    drafter.model = Heeding() if heeds else NoModel()
    planner = PolicyPlanner(lambda: drafter)
    situation = Situation(
        request={"text": "What is the answer?", "language": "en"},
        registry=registry_of(*SPECS),
        caller=Caller(name="tester"),
        avoid=frozenset({"ask_oracle"}),
        previous=PAST,
    )
    try:
        proposal = asyncio.run(planner.propose(situation))
    finally:
        planner.close()
    assert [step.tool for step in proposal.plan.steps] == ["ask_librarian"]
    place = sorted(spec.name for spec in SPECS).index("ask_oracle")
    told = (Verdict(tool=place, verdict="unavailable"),) if heeds else ()
    assert drafter.extras[0].feedback == told
