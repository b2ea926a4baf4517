"""Decisions: the states, actions and log-probabilities of a plan."""

import numpy as np

from conductor.policy.cards import ToolCard
from conductor.policy.decisions import STOP, decisions_of, decisions_row
from conductor.policy.parts import WIDTH
from conductor.policy.selecting import NOTHING, Extra, Hypothesis, Verdict
from conductor.policy.selecting_flows import FieldWords
from conductor.policy.selecting_index import KEPT_TOKENS, TOKEN, ToolIndex

CARDS = tuple(ToolCard(name=name) for name in ("find", "book", "send"))
INDEX = ToolIndex(
    cards=CARDS,
    vectors=np.zeros((3, WIDTH), dtype=np.float32),
    tokens=np.zeros((3, KEPT_TOKENS, TOKEN), dtype=np.float32),
    mask=np.zeros((3, KEPT_TOKENS), dtype=np.float32),
    fields=tuple(FieldWords.of(card) for card in CARDS),
)
KEYS = tuple(card.key for card in CARDS)


def hypothesis(tools: tuple[int, ...], steps: tuple[float, ...]) -> Hypothesis:
    return Hypothesis(
        tools=tools,
        log_probability=sum(steps),
        candidates=((),) * len(tools),
        step_log_probabilities=steps,
        stop_probabilities=(0.5,) * len(steps),
        relevance=(0.0,) * len(tools),
    )


def test_each_choice_is_a_decision_and_stop_the_last() -> None:
    extra = Extra(feedback=(Verdict(tool=1, verdict="failed"),))
    found = decisions_of("Find it and send it.", INDEX, hypothesis((0, 2), (-0.1, -0.2, -0.3)), extra)
    assert [decision.action for decision in found] == [KEYS[0], KEYS[2], STOP]
    assert [decision.chosen for decision in found] == [(), (KEYS[0],), (KEYS[0], KEYS[2])]
    assert [decision.log_probability for decision in found] == [-0.1, -0.2, -0.3]
    assert {decision.feedback for decision in found} == {((KEYS[1], "failed"),)}
    assert {decision.tools for decision in found} == {KEYS}


def test_a_refusal_is_one_decision() -> None:
    (found,) = decisions_of("Sing.", INDEX, hypothesis((), (-0.4,)), NOTHING)
    assert (found.action, found.chosen, found.log_probability) == (STOP, (), -0.4)


def test_decisions_of_a_plan_are_one_row() -> None:
    extra = Extra(feedback=(Verdict(tool=1, verdict="failed"),))
    found = decisions_of("Find it.", INDEX, hypothesis((0,), (-0.1, -0.2)), extra)
    assert decisions_row(found, plan=7) == {
        "id": 7,
        "request": "Find it.",
        "feedback": [{"tool": KEYS[1], "verdict": "failed"}],
        "decisions": [
            {"chosen": [], "action": KEYS[0], "log_probability": -0.1},
            {"chosen": [KEYS[0]], "action": None, "log_probability": -0.2},
        ],
    }
