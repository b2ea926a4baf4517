"""Second decisions with and without feedback: counted rightly, and made by the model itself."""

import pytest

from conductor.evaluation.replanning import Decided, decide, measure, trajectories
from conductor.policy.cards import ToolCard
from conductor.policy.tokens import Tokens
from conductor.training.encoder import Bottom
from conductor.training.examples import Example, GoldStep
from conductor.training.parts import TorchParts
from conductor.training.selector import SelectorModel
from conductor.training.selector_parts import bottom_part, parts_of
from conductor.training.simulator import Outcome, Trajectory

TOOLS = tuple(ToolCard(name=name, description=f"{name} something") for name in ("find", "book", "send"))
EXAMPLE = Example(
    source="made",
    id="1",
    request="Find it and book it.",
    tools=TOOLS,
    steps=(GoldStep(tool="find"), GoldStep(tool="book")),
)


def decided(kind: str, told: tuple[str, ...], hidden: tuple[str, ...], *, verdict: str = "ok") -> Decided:
    outcomes = (Outcome(tool="send", verdict=verdict),)
    trajectory = Trajectory(example=EXAMPLE, plan=("send",), outcomes=outcomes, kind=kind)
    return Decided(trajectory=trajectory, told=told, hidden=hidden)


def test_right_decisions_are_counted_by_what_went_wrong() -> None:
    right, wrong = ("book", "find"), ("find",)
    found = measure(
        [
            decided("add", right, wrong, verdict="irrelevant"),
            decided("add", right, right, verdict="irrelevant"),
            decided("right", wrong, wrong),
            decided("right", (*right, "book"), right),
        ]
    )
    assert found.failing == 50.0
    assert (found.every.told, found.every.hidden) == (50.0, 50.0)
    assert (found.failed.told, found.failed.hidden, found.failed.count) == (100.0, 50.0, 2)
    assert (found.kinds["right"].told, found.kinds["right"].hidden) == (0.0, 50.0)
    low, high = found.failed.hidden_interval
    assert low <= 50.0 <= high


def test_nothing_decided_is_no_fault() -> None:
    assert measure([]).every.count == 0


@pytest.mark.slow
def test_the_model_plans_each_trajectory_twice_and_leaves_out_what_failed() -> None:
    parts = TorchParts([bottom_part(Bottom()), *parts_of(SelectorModel())])
    found = trajectories([EXAMPLE], seed=1, each=6)
    assert trajectories([EXAMPLE], seed=1, each=6) == found
    made = decide(parts, Tokens(), found)
    assert [item.trajectory for item in made] == list(found)
    for item in made:
        assert not item.trajectory.broken & set(item.hidden)
        assert not item.trajectory.broken & set(item.told), "six hypotheses of an untrained model suffice"
