"""The policy planner around its model: wiring, verification, questions, failed agents; the model is scripted."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agents.invocation import Caller
from agents.plan_rules import PlanRule, RevisionRule
from agents.registry import AgentRegistry
from agents.spec import AgentSpec
from conductor.errors import NoPlan
from conductor.plan import Literal, RequestRef, StepRef
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.policy.planner import PolicyPlanner
from conductor.policy.templates import template_of
from conductor.rules_planner import RulesPlanner
from conductor.verify import verified
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, registry_of
from tests.fakes.drafting import ScriptedDrafter

READ = agent_spec("read", inputs={"text": TEXT}, outputs={"words": {"type": "array", "items": TEXT}})
COUNT = agent_spec("count", inputs={"words": {"type": "array", "items": TEXT}}, outputs={"total": NUMBER})
TELL = agent_spec("tell", inputs={"total": NUMBER, "tone": {"enum": ["short"]}}, outputs=ANSWER)
ASK = agent_spec(
    "ask",
    inputs={"language": {"enum": ["zh", "en"]}, "reason": TEXT},
    required=["language"],
    outputs={"question": TEXT},
    tags=["clarify"],
)
ALL = (READ, COUNT, TELL, ASK)
REQUEST: Mapping[str, Any] = {"text": "how many words", "language": "en", "entities": {}, "unresolved": []}


def propose(
    *plans: Sequence[str],
    specs: Sequence[AgentSpec] = ALL,
    fills: Mapping[str, Mapping[str, Any]] | None = None,
    rules: Sequence[PlanRule] = (),
    registry: AgentRegistry | None = None,
    request: Mapping[str, Any] = REQUEST,
    **more: Any,
) -> Proposal:
    drafter = ScriptedDrafter(lambda text, cards: plans, fills)
    planner = PolicyPlanner(lambda: drafter, templates=[template_of(rule) for rule in rules])
    registry = registry or registry_of(*specs)
    situation = Situation(request=request, registry=registry, caller=Caller(name="tester"), **more)
    try:
        proposal = asyncio.run(planner.propose(situation))
    finally:
        planner.close()
    verified(proposal.plan, registry, request, situation.caller, answer=proposal.answer)
    return proposal


def tools(proposal: Proposal) -> list[str]:
    return [step.tool for step in proposal.plan.steps]


def test_schemas_and_the_request_wire_the_chosen_agents() -> None:
    proposal = propose(["read", "count", "tell"])

    read, count, tell = proposal.plan.steps
    assert read.arguments == {"text": RequestRef(path="text")}
    assert count.arguments == {"words": StepRef(step=0, field="words")}
    assert tell.arguments == {"total": StepRef(step=1, field="total"), "tone": Literal(value="short")}
    assert (proposal.planner, proposal.answer, proposal.plan.confidence) == ("policy", 2, 0.9)


def test_agents_that_are_needed_besides_are_brought_in_before() -> None:
    assert tools(propose(["tell"])) == ["read", "count", "tell"]


def test_what_the_model_read_comes_before_a_field_of_that_name_when_it_is_sure() -> None:
    translate = agent_spec("translate", inputs={"language": TEXT}, outputs=ANSWER)

    sure = propose(["translate"], specs=[translate], fills={"translate": {"language": "French"}})
    nothing_read = propose(["translate"], specs=[translate])

    assert sure.plan.steps[0].arguments == {"language": Literal(value="French")}
    assert nothing_read.plan.steps[0].arguments == {"language": RequestRef(path="language")}


def test_a_literal_that_the_schema_refuses_is_not_used() -> None:
    bounded = agent_spec(
        "bounded", inputs={"size": {"type": "integer", "maximum": 9, "default": 3}}, outputs=ANSWER
    )

    proposal = propose(["bounded"], specs=[bounded], fills={"bounded": {"size": 10}})

    assert proposal.plan.steps[0].arguments == {"size": Literal(value=3)}


def test_a_plan_that_was_written_down_for_the_agents_wires_them() -> None:
    other = agent_spec("other", inputs={"text": TEXT}, outputs={"total": NUMBER, "words": READ.output_schema})
    steps: tuple[dict[str, Any], ...] = (
        {"tool": "other", "arguments": {"text": "written down"}},
        {"tool": "read", "arguments": {"text": {"request": "text"}}, "depends_on": [0]},
        {"tool": "tell", "arguments": {"total": {"step": 0, "field": "total"}, "tone": "short"}},
    )
    rule = PlanRule(name="rule", when="false", confidence=0.5, steps=steps)

    proposal = propose(["read", "tell", "other"], specs=[*ALL, other], rules=[rule])

    assert tools(proposal) == ["other", "read", "tell"]
    assert proposal.plan.steps[0].arguments == {"text": Literal(value="written down")}
    assert proposal.plan.steps[1].depends_on == (0,)


def test_the_next_hypothesis_is_taken_when_verification_refuses_the_first() -> None:
    needs = agent_spec("needs", inputs={"text": TEXT}, outputs=ANSWER, requires=["a_tag_nobody_has"])

    proposal = propose(["needs"], ["read", "count", "tell"], specs=[*ALL, needs])

    assert tools(proposal) == ["read", "count", "tell"]
    assert [item.tools for item in proposal.alternatives] == [("needs",)]


def test_without_a_plan_that_holds_the_request_is_refused_with_every_reason() -> None:
    needs = agent_spec("needs", inputs={"text": TEXT}, outputs=ANSWER, requires=["a_tag_nobody_has"])

    with pytest.raises(NoPlan) as refused:
        propose(["needs"], ["read"], specs=[READ, needs])

    assert any("a_tag_nobody_has" in reason for reason in refused.value.evidence)
    assert any("markdown" in reason for reason in refused.value.evidence)


def test_a_required_input_that_nothing_fills_is_asked_for() -> None:
    strict = agent_spec("strict", inputs={"amount": NUMBER}, outputs=ANSWER)

    proposal = propose(["strict"], specs=[*ALL, strict])

    assert tools(proposal) == ["ask"]
    assert "strict.amount" in proposal.reason
    with pytest.raises(NoPlan, match=r"strict\.amount"):
        propose(["strict"], specs=[READ, strict])


def test_what_no_agent_can_serve_is_asked_back_or_refused() -> None:
    assert tools(propose([])) == ["ask"]
    with pytest.raises(NoPlan, match="no agent here can serve"):
        propose([], specs=[READ, COUNT, TELL])


def test_a_request_without_words_and_document_is_asked_back() -> None:
    proposal = propose(["tell"], request={**REQUEST, "text": "  "})
    assert tools(proposal) == ["ask"]


def test_words_that_nobody_understood_are_asked_about_when_an_agent_rests_on_them() -> None:
    entities: dict[str, Any] = {"type": "object", "additionalProperties": {}}
    parse = agent_spec("parse", inputs={"entities": entities}, outputs=ANSWER)
    request = {**REQUEST, "unresolved": [{"text": "Atlantis"}]}

    assert tools(propose(["parse"], specs=[*ALL, parse], request=request)) == ["ask"]
    assert tools(propose(["tell"], request=request))[-1] == "tell"


def test_an_agent_that_failed_is_replaced_by_one_that_does_the_same_or_left_out() -> None:
    twin = agent_spec(
        "count_too", inputs=COUNT.input_schema["properties"], outputs={"total": NUMBER}, tags=["count"]
    )
    avoid = frozenset({"count"})

    assert "count_too" in tools(propose(["read", "count", "tell"], specs=[*ALL, twin], avoid=avoid))
    with pytest.raises(NoPlan):
        propose(["read", "count", "tell"], specs=[READ, COUNT, TELL], avoid=avoid)


def test_agents_that_the_caller_may_not_use_are_not_seen() -> None:
    secret = agent_spec("secret", inputs={"text": TEXT}, outputs=ANSWER, permission="boss")

    assert tools(propose(["secret"], ["tell"], specs=[*ALL, secret])) == ["read", "count", "tell"]


def test_revisions_come_from_the_packs() -> None:
    rule = RevisionRule(
        name="again",
        after="read",
        when="true",
        reason="more",
        steps=({"tool": "tell", "arguments": {"total": 1}},),
    )
    registry = registry_of(*ALL)
    situation = Situation(request=REQUEST, registry=registry, caller=Caller(name="tester"))
    drafter = ScriptedDrafter(lambda text, cards: [["tell"]])
    planner = PolicyPlanner(lambda: drafter, revisions=RulesPlanner([], [rule]))
    finished = FinishedStep(tool="read", output={"words": []})

    revised = asyncio.run(planner.revise(situation, finished, origins_used=frozenset()))

    assert revised is not None
    assert (revised.planner, tools(revised)) == ("revision", ["tell"])
    assert (
        asyncio.run(PolicyPlanner(lambda: drafter).revise(situation, finished, origins_used=frozenset())) is None
    )
    planner.close()


def test_a_step_that_writes_waits_for_what_was_named_before_it() -> None:
    store = agent_spec("store", inputs={"text": TEXT}, outputs=ANSWER, side_effects="write")

    proposal = propose(["read", "store"], specs=[READ, store])

    assert proposal.plan.steps[1].depends_on == (0,)
