"""What a planner is told of the steps so far when it plans anew."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from conductor.past import past_steps, verdict_of
from conductor.planner import PastStep, Proposal, Situation
from conductor.policy.selecting import VERDICTS
from conductor.progress import TaskState
from podium.errors import AgentCrashed, AgentTimeout, LowConfidence, PodiumError, catalogue
from tests.fakes.stage import FixedPlanner, stage
from tests.unit.conductor.test_recovery import play
from tests.unit.conductor.test_replanning import FOUR, FOUR_SCRIPTS, four


@dataclass
class Listening(FixedPlanner):
    """Keeps what it was told."""

    told: list[Sequence[PastStep]] = field(default_factory=list)

    async def propose(self, situation: Situation) -> Proposal:
        self.told.append(situation.previous)
        return await super().propose(situation)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (AgentCrashed("the shelf fell down"), "failed"),
        (AgentTimeout("nobody came"), "unavailable"),
        (LowConfidence("not sure"), "irrelevant"),
    ],
)
def test_the_second_plan_is_told_of_the_steps_of_the_first(error: PodiumError, verdict: str) -> None:
    async def scenario() -> None:
        scripts: dict[str, Any] = {**FOUR_SCRIPTS, "fetch": error}
        planner = Listening([four("fetch", "rows"), four("browse", "found")])
        show = stage(FOUR, scripts, planner=planner)
        state = await show.perform()
        assert state.plan_version == 2
        assert planner.told[0] == ()
        assert planner.told[1] == (
            PastStep(agent="fetch", verdict=verdict, result=error.code),
            PastStep(agent="read", verdict="ok"),
        )
        assert "fetch" in {step.agent for step in past_steps(state)}, "later plans are told of it, too"

    play(scenario())


def test_verdicts_are_those_that_the_model_knows() -> None:
    assert {verdict_of(code) for code in catalogue()} <= set(VERDICTS)
    assert verdict_of("SOMETHING_NEW") == "failed"


def test_a_task_without_a_plan_has_no_past() -> None:
    assert past_steps(TaskState()) == ()
