"""The rules planner: which rule wins, what is asked back, how agents to avoid are replaced."""

import asyncio
from typing import Any

import pytest

from agents.invocation import Caller
from agents.plan_rules import PlanRule, RevisionRule
from agents.spec import AgentSpec
from conductor.errors import NoPlan
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.rules_planner import RulesPlanner
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, registry_of

SPECS: tuple[AgentSpec, ...] = (
    agent_spec("fetch", inputs={"topic": TEXT, "limit": NUMBER}, required=["topic"], outputs={"total": NUMBER}),
    agent_spec("browse", inputs={"topic": TEXT, "limit": NUMBER}, required=["topic"], outputs={"total": NUMBER}),
    agent_spec(
        "twin",
        inputs={"topic": TEXT, "limit": NUMBER},
        required=["topic"],
        outputs={"total": NUMBER},
        tags=["fetch"],
    ),
    agent_spec("odd", inputs={"topic": NUMBER}, outputs={"total": NUMBER}, tags=["fetch"]),
    agent_spec("report", inputs={"total": NUMBER}, outputs=ANSWER),
    agent_spec(
        "clarify",
        inputs={"language": {"enum": ["en", "zh"]}, "text": TEXT, "reason": TEXT},
        required=["language"],
        outputs={"question": TEXT},
    ),
)


def rule(name: str, when: str = "true", *, tool: str = "fetch", **fields: Any) -> PlanRule:
    return PlanRule.model_validate(
        {
            "name": name,
            "when": when,
            "confidence": 0.9,
            "steps": [
                {
                    "tool": tool,
                    "candidates": ["browse"],
                    "arguments": {"topic": {"request": "text"}, "limit": {"request": "entities.limit"}},
                },
                {"tool": "report", "arguments": {"total": {"step": 0, "field": "total"}}},
            ],
            **fields,
        }
    )


def situation(*, avoid: tuple[str, ...] = (), without: tuple[str, ...] = (), **request: Any) -> Situation:
    specs = [spec for spec in SPECS if spec.name not in without]
    return Situation(
        request={"text": "sales", "language": "en", "entities": {}, "unresolved": [], **request},
        registry=registry_of(*specs),
        caller=Caller(name="tester"),
        avoid=frozenset(avoid),
    )


def propose(planner: RulesPlanner, where: Situation) -> Proposal:
    return asyncio.run(planner.propose(where))


def tools(proposal: Proposal) -> list[str]:
    return [step.tool for step in proposal.plan.steps]


def test_priority_wins_then_confidence_then_name() -> None:
    planner = RulesPlanner(
        [
            rule("b"),
            rule("a"),
            rule("sure", confidence=0.95),
            rule("first", confidence=0.1, priority=5),
            rule("never", "false", priority=9),
        ]
    )
    assert propose(planner, situation()).origin == "first"
    assert (
        propose(RulesPlanner([rule("b"), rule("a"), rule("sure", confidence=0.95)]), situation()).origin == "sure"
    )
    assert propose(RulesPlanner([rule("b"), rule("a")]), situation()).origin == "a"


def test_a_rule_about_fields_that_are_not_there_does_not_hold() -> None:
    planner = RulesPlanner([rule("far", "request.entities.region == 'east'", priority=1), rule("near")])
    proposal = propose(planner, situation())
    assert proposal.origin == "near"
    assert proposal.warnings == ()


def test_a_rule_that_fails_otherwise_is_on_record() -> None:
    planner = RulesPlanner([rule("broken", "request.text + 1 == 2", priority=1), rule("near")])
    proposal = propose(planner, situation())
    assert proposal.origin == "near"
    assert "broken" in proposal.warnings[0]


def test_nothing_is_guessed() -> None:
    for planner, where in (
        (RulesPlanner([rule("never", "false")]), situation()),
        (RulesPlanner([rule("a")]), situation(unresolved=[{"text": "Atlantis", "kind": "place"}])),
    ):
        proposal = propose(planner, where)
        assert tools(proposal) == ["clarify"]
        assert proposal.answer == 0
    unimportant = situation(unresolved=[{"text": "please", "matters": False}])
    assert tools(propose(RulesPlanner([rule("a")]), unimportant)) == ["fetch", "report"]


def test_a_language_that_the_asking_agent_does_not_speak_is_asked_in_english() -> None:
    proposal = propose(RulesPlanner([]), situation(language="de"))
    assert proposal.plan.to_json()["steps"][0]["arguments"]["language"] == "en"


def test_without_an_asking_agent_there_is_no_plan() -> None:
    with pytest.raises(NoPlan):
        propose(RulesPlanner([]), situation(without=("clarify",)))


def test_agents_to_avoid_are_replaced_by_candidates_then_by_look_alikes() -> None:
    planner = RulesPlanner([rule("a")])
    assert tools(propose(planner, situation())) == ["fetch", "report"]
    assert tools(propose(planner, situation(avoid=("fetch",)))) == ["browse", "report"]
    assert tools(propose(planner, situation(avoid=("fetch", "browse")))) == ["twin", "report"]
    with pytest.raises(NoPlan) as caught:
        propose(planner, situation(avoid=("fetch", "browse", "twin")))
    assert "browse" in caught.value.message


def test_the_next_rule_serves_when_the_first_has_no_agent_left() -> None:
    first = PlanRule.model_validate(
        {
            "name": "first",
            "when": "true",
            "confidence": 1,
            "priority": 1,
            "steps": [{"tool": "odd", "arguments": {"topic": 1}}],
        }
    )
    planner = RulesPlanner([first, rule("second")])
    assert propose(planner, situation()).origin == "first"
    assert propose(planner, situation(avoid=("odd", "fetch", "twin"))).origin == "second"


def test_candidates_are_ranked_with_the_chosen_one_first() -> None:
    step = propose(RulesPlanner([rule("a")]), situation()).plan.steps[0]
    assert [candidate.tool for candidate in step.candidates] == ["fetch", "browse", "twin"]
    assert step.candidates[0].score > step.candidates[1].score > step.candidates[2].score


def test_optional_arguments_that_the_request_does_not_hold_are_left_out() -> None:
    planner = RulesPlanner([rule("a")])
    assert set(propose(planner, situation()).plan.steps[0].arguments) == {"topic"}
    with_limit = propose(planner, situation(entities={"limit": 3}))
    assert set(with_limit.plan.steps[0].arguments) == {"topic", "limit"}


def revision(**fields: Any) -> RevisionRule:
    return RevisionRule.model_validate(
        {
            "name": "look_again",
            "after": "fetch",
            "when": "output.total < 0.0 && !device.online",
            "reason": "a negative total is looked at again",
            "steps": [
                {"tool": "browse", "arguments": {"topic": {"request": "text"}}},
                {"tool": "report", "arguments": {"total": {"step": 0, "field": "total"}}},
            ],
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("tool", "total", "used", "expected"),
    [
        ("fetch", -1.0, (), True),
        ("fetch", 1.0, (), False),
        ("browse", -1.0, (), False),
        ("fetch", -1.0, ("revision/look_again",), False),
    ],
)
def test_a_revision_applies_once_after_its_tool(
    tool: str, total: float, used: tuple[str, ...], expected: bool
) -> None:
    planner = RulesPlanner([], [revision()])
    proposal = asyncio.run(
        planner.revise(situation(), FinishedStep(tool=tool, output={"total": total}), origins_used=frozenset(used))
    )
    assert (proposal is not None) == expected
    if proposal is not None:
        assert (proposal.planner, proposal.origin) == ("revision", "look_again")
        assert tools(proposal) == ["browse", "report"]


def test_a_large_payload_does_not_keep_rules_from_being_read() -> None:
    pages = [{"text": "x" * 3000, "crop": "y" * 200_000} for _ in range(40)]
    planner = RulesPlanner([rule("document", "request.payload_kind == 'document_reading'")])
    proposal = propose(planner, situation(payload_kind="document_reading", payload={"pages": pages}))
    assert proposal.origin == "document"
