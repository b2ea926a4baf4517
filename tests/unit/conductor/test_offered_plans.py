"""Plans that agents bring along in their manifests: after those of packs, and only while the agent serves."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from agents.invocation import Caller
from agents.plan_rules import PlanRule
from agents.registry import AgentRegistry
from agents.spec import AgentSpec, ManifestInvalid, read_spec
from cloud.registering import plan_findings
from conductor.planner import Proposal, Situation
from conductor.rules_planner import RulesPlanner
from podium.errors import PodiumError
from tests.fakes.agents import ANSWER, TEXT, agent_spec, registry_of


def offering(name: str = "counter", *, version: str = "1.0.0", **plan: Any) -> AgentSpec:
    rule = {
        "name": "count",
        "when": 'request.text.contains("how many")',
        "steps": [{"tool": name, "arguments": {"text": {"request": "text"}}}],
        **plan,
    }
    return agent_spec(name, inputs={"text": TEXT}, outputs=ANSWER, version=version, plans=[rule])


def propose(registry: AgentRegistry, *rules: PlanRule, text: str = "how many words", **more: Any) -> Proposal:
    request = {"text": text, "language": "en", "entities": {}, "unresolved": ["words"]}
    situation = Situation(request=request, registry=registry, caller=Caller(name="tester"), **more)
    return asyncio.run(RulesPlanner(rules).propose(situation))


def pack_rule(**fields: Any) -> PlanRule:
    steps = [{"tool": "packed", "arguments": {"text": {"request": "text"}}}]
    fields = {"name": "of_a_pack", "when": "true", "confidence": 0.1, "needs_words": False, **fields}
    return PlanRule.model_validate({**fields, "steps": steps})


PACKED = agent_spec("packed", inputs={"text": TEXT}, outputs=ANSWER)


def test_an_agent_that_serves_is_planned_with_by_what_it_offers() -> None:
    registry = registry_of(offering())
    assert propose(registry).origin == "counter.count"
    with pytest.raises(PodiumError, match="no agent is on duty"):
        propose(registry, text="something else")
    registry.set_enabled("counter", False)
    with pytest.raises(PodiumError):
        propose(registry)


def test_a_pack_comes_first_whatever_priority_an_agent_gives_itself() -> None:
    registry = registry_of(offering(priority=1000, confidence=1.0), PACKED)
    assert propose(registry, pack_rule()).origin == "of_a_pack"
    assert propose(registry, pack_rule(when="false")).origin == "counter.count"


def test_the_plan_of_the_version_that_serves_counts() -> None:
    registry = registry_of(offering())
    registry.register(offering(version="2.0.0", when='request.text.contains("count")'))
    with pytest.raises(PodiumError):
        propose(registry)
    assert propose(registry, text="count the words").origin == "counter.count"


def test_an_offer_that_is_no_plan_is_left_out_and_told() -> None:
    broken = offering("broken", steps=[{"tool": "broken", "arguments": "none"}])
    proposal = propose(registry_of(offering(), broken))
    assert proposal.origin == "counter.count"
    assert any("what broken offers is left out" in warning for warning in proposal.warnings)
    registry = registry_of(broken)
    with pytest.raises(ManifestInvalid, match="plan count of broken"):
        plan_findings(registry.get("broken"), registry)


def test_what_verification_would_refuse_is_told_at_registration() -> None:
    steps = [
        {"tool": "packed", "arguments": {"text": {"request": "text"}}},
        {"tool": "counter", "arguments": {"text": {"step": 0, "field": "nothing"}}},
    ]
    registry = registry_of(offering(steps=steps))
    agent = registry.get("counter")
    assert [finding.code for finding in plan_findings(agent, registry)] == ["PLAN_REFUSED"]
    assert "UNKNOWN_AGENT" in plan_findings(agent, registry)[0].message
    registry.register(PACKED)
    (finding,) = plan_findings(agent, registry)
    assert "UNKNOWN_FIELD" in finding.message
    assert not finding.fatal
    whole = registry_of(offering())
    assert plan_findings(whole.get("counter"), whole) == ()


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"when": "request.("}, "when"),
        ({"steps": [{"tool": "other"}]}, "offers plans for itself"),
        ({"steps": []}, "steps"),
        ({"name": "Not a name"}, "name"),
        ({"answer": 3}, "not one of 1 steps"),
    ],
)
def test_a_manifest_with_another_kind_of_plan_is_refused(plan: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        offering(**plan)


def test_plans_survive_being_written_and_read() -> None:
    spec = offering()
    assert read_spec(spec.manifest(), named="x") == spec
