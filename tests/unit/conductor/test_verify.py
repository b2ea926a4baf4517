"""Every reason why a plan must not run is named, all at once."""

import dataclasses
from typing import Any

import pytest

from agents.invocation import Caller
from agents.registry import AgentRegistry
from conductor.plan import Candidate, Literal, Plan, PlanFormatError, Step, StepRef
from conductor.verify import PlanLimits, PlanRejected, VerifiedPlan, verified, verify
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, registry_of

CALLER = Caller(name="tester")
REQUEST = {"text": "hello", "language": "en", "entities": {"limit": 3}}
ROW = {
    "type": "object",
    "properties": {"city": TEXT, "sales": NUMBER},
    "required": ["city", "sales"],
    "additionalProperties": False,
}


def registry() -> AgentRegistry:
    return registry_of(
        agent_spec("parse", inputs={"text": {**TEXT, "minLength": 2}}, outputs={"topic": TEXT}),
        agent_spec(
            "fetch",
            inputs={"topic": TEXT, "limit": {"type": "integer", "minimum": 1}},
            required=["topic"],
            outputs={"rows": {"type": "array", "items": ROW}},
            cost=5,
        ),
        agent_spec("first", inputs={"row": ROW}, outputs={"total": NUMBER}),
        agent_spec("guarded", inputs={"topic": TEXT}, outputs={"total": NUMBER}, requires=["capability"]),
        agent_spec("guard", inputs={"topic": TEXT}, outputs={"token": TEXT}, tags=["capability"]),
        agent_spec("boss", inputs={"topic": TEXT}, outputs={"total": NUMBER}, permission="operator"),
        agent_spec("report", inputs={"total": NUMBER}, outputs=ANSWER),
    )


def good() -> list[dict[str, Any]]:
    return [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {
            "tool": "fetch",
            "arguments": {"topic": {"step": 0, "field": "topic"}, "limit": {"request": "entities.limit"}},
        },
        {"tool": "first", "arguments": {"row": {"step": 1, "field": "rows.0"}}},
        {"tool": "report", "arguments": {"total": {"step": 2, "field": "total"}}},
    ]


def problems(steps: list[dict[str, Any]], **fields: Any) -> list[str]:
    plan = Plan.from_json({"steps": steps, **fields})
    return [str(item) for item in verify(plan, registry(), REQUEST, CALLER)]


def codes(steps: list[dict[str, Any]], **fields: Any) -> set[str]:
    return {item.split(":")[0] for item in problems(steps, **fields)}


def test_a_good_plan_has_no_problem() -> None:
    assert problems(good()) == []


def test_a_cycle_names_its_steps() -> None:
    steps = good()
    steps[0]["depends_on"] = [2]
    found = problems(steps)
    cycle = next(item for item in found if item.startswith("CYCLE"))
    assert "step 0 (parse)" in cycle
    assert "step 2 (first)" in cycle
    assert any(item.startswith("FORWARD_REFERENCE: step 0") for item in found)


@pytest.mark.parametrize(
    ("place", "change", "code", "words"),
    [
        (1, {"tool": "unheard_of"}, "UNKNOWN_AGENT", "unheard_of"),
        (1, {"depends_on": [9]}, "DANGLING_REFERENCE", "step 9"),
        (1, {"depends_on": [1]}, "SELF_REFERENCE", "itself"),
        (2, {"arguments": {"row": {"step": 1, "field": "rows.0.town"}}}, "UNKNOWN_FIELD", "rows.0.town"),
        (2, {"arguments": {"row": {"step": 0, "field": "topic"}}}, "SCHEMA_MISMATCH", "string where object"),
        (2, {"arguments": {"row": {"step": 1, "field": "rows"}}}, "SCHEMA_MISMATCH", "array where object"),
        (1, {"arguments": {}}, "MISSING_ARGUMENT", "'topic'"),
        (0, {"arguments": {"text": "hello", "volume": 11}}, "UNKNOWN_ARGUMENT", "'volume'"),
        (0, {"arguments": {"text": "x"}}, "BAD_VALUE", "shorter than 2"),
        (0, {"arguments": {"text": 7}}, "BAD_VALUE", "$.text"),
        (0, {"arguments": {"text": {"request": "entities.colour"}}}, "REQUEST_PATH", "entities.colour"),
        (0, {"arguments": {"text": {"request": "entities.limit"}}}, "BAD_VALUE", "$.text"),
        (3, {"tool": "boss", "arguments": {"topic": "x"}}, "PERMISSION", "operator"),
        (3, {"tool": "guarded", "arguments": {"topic": "x"}}, "CAPABILITY_MISSING", "capability"),
        (3, {"tool": "first", "arguments": {"row": {"step": 1, "field": "rows.1"}}}, "NO_ANSWER", "markdown"),
    ],
)
def test_a_single_fault_is_named(place: int, change: dict[str, Any], code: str, words: str) -> None:
    steps = good()
    steps[place] |= change
    assert any(item.startswith(code) and words in item for item in problems(steps)), problems(steps)


def test_all_reasons_come_at_once() -> None:
    steps = good()
    steps[0] = {"tool": "unheard_of", "arguments": {}}
    steps[1]["arguments"] = {"limit": 0, "colour": "red"}
    assert codes(steps) >= {"UNKNOWN_AGENT", "MISSING_ARGUMENT", "UNKNOWN_ARGUMENT", "BAD_VALUE"}


def test_a_disabled_agent_is_not_planned_with() -> None:
    agents = registry()
    agents.set_enabled("fetch", False)
    found = verify(Plan.from_json({"steps": good()}), agents, REQUEST, CALLER)
    assert [item.code for item in found] == ["DISABLED_AGENT"]


def test_a_capability_may_come_from_any_step_before() -> None:
    steps = [
        {"tool": "guard", "arguments": {"topic": "x"}},
        {"tool": "parse", "arguments": {"text": "hello"}, "depends_on": [0]},
        {"tool": "guarded", "arguments": {"topic": {"step": 1, "field": "topic"}}},
        {"tool": "report", "arguments": {"total": {"step": 2, "field": "total"}}},
    ]
    assert problems(steps) == []
    del steps[1]["depends_on"]
    assert codes(steps) == {"CAPABILITY_MISSING"}


@pytest.mark.parametrize(
    "groups", [[[0], [1], [2]], [[0, 1], [2], [3]], [[0], [1], [2], [3, 3]], [[0], [1], [2], [3, 7]]]
)
def test_groups_must_agree_with_the_dependencies(groups: list[list[int]]) -> None:
    assert codes(good(), parallel_groups=groups) == {"PARALLEL_GROUPS"}


def test_limits_of_size_and_budget() -> None:
    plan = Plan.from_json({"steps": good()})
    found = verify(plan, registry(), REQUEST, CALLER, PlanLimits(max_steps=3, budget=7.0))
    assert {item.code for item in found} == {"TOO_MANY_STEPS", "BUDGET"}


def test_confidence_must_be_a_share() -> None:
    plan = dataclasses.replace(Plan.from_json({"steps": good()}), confidence=float("nan"))
    assert [item.code for item in verify(plan, registry(), REQUEST, CALLER)] == ["CONFIDENCE"]
    with pytest.raises(PlanFormatError):
        Plan.from_json({"steps": good(), "confidence": float("inf")})


def test_an_empty_plan_is_refused() -> None:
    assert codes([]) == {"EMPTY_PLAN"}


def test_only_verification_makes_verified_plans() -> None:
    plan = Plan.from_json({"steps": good()})
    sealed = verified(plan, registry(), REQUEST, CALLER)
    assert sealed.plan is plan
    assert sealed.answer == 3
    with pytest.raises(TypeError):
        VerifiedPlan(plan=plan, answer=0, warnings=(), seal=object())  # type: ignore[arg-type]


def test_a_rejected_plan_carries_every_reason() -> None:
    steps = good()
    steps[1]["arguments"] = {}
    steps[0]["tool"] = "unheard_of"
    with pytest.raises(PlanRejected) as caught:
        verified(Plan.from_json({"steps": steps}), registry(), REQUEST, CALLER)
    assert len(caught.value.evidence) == len(caught.value.problems) == 2


def test_a_doubt_is_a_warning_and_not_a_reason() -> None:
    agents = registry_of(
        agent_spec("maybe", inputs={}, outputs={"total": {"type": ["number", "null"]}}),
        agent_spec("report", inputs={"total": NUMBER}, outputs=ANSWER),
    )
    plan = Plan.of(
        [Step(tool="maybe"), Step(tool="report", arguments={"total": StepRef(step=0, field="total")})], 1.0
    )
    sealed = verified(plan, agents, REQUEST, CALLER)
    assert len(sealed.warnings) == 1
    assert "null" in sealed.warnings[0]


def test_plans_survive_the_wire_and_json() -> None:
    plan = Plan.of(
        [
            Step(
                tool="a",
                candidates=(Candidate(tool="b", score=0.5),),
                arguments={"x": Literal(value=[1, {"y": None}])},
            ),
            Step(tool="c", arguments={"z": StepRef(step=0, field="q.0")}),
        ],
        0.75,
    )
    assert Plan.from_proto(plan.to_proto()).to_json() == plan.to_json()
    assert Plan.from_json(plan.to_json()).to_json() == plan.to_json()


@pytest.mark.parametrize(
    "bad", [{"depends_on": [-1]}, {"arguments": {"x": {"step": -2, "field": ""}}}, {"depends_on": ["x"]}]
)
def test_a_plan_with_impossible_indices_has_no_form(bad: dict[str, Any]) -> None:
    with pytest.raises(PlanFormatError):
        Plan.from_json({"steps": [{"tool": "a", **bad}]})
