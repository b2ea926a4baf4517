"""The sales plans as the conductor sees them: they verify, run together where they can, end in cited answers."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.invocation import Caller
from agents.pack import build_registry, load_packs
from agents.understanding import Understanding
from conductor.assemble import check_answer
from conductor.plan import Plan
from conductor.planner import Proposal, Situation
from conductor.rules_planner import RulesPlanner
from conductor.verify import verify
from tests.integration.sales_desk import SalesDesk

NOW = datetime(2026, 10, 8, 1, 30, tzinfo=UTC)
CALLER = Caller(name="ann")
PACKS = load_packs()
REGISTRY = build_registry(PACKS)
UNDERSTAND = Understanding([pack.vocabulary for pack in PACKS])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> SalesDesk:
    return SalesDesk(data_dir=tmp_path_factory.mktemp("sales"))


def request_of(text: str) -> Mapping[str, Any]:
    return {
        **UNDERSTAND(text, NOW, ()),
        "original": text,
        "now": NOW.isoformat(),
        "payload_kind": "",
        "payload": {},
    }


def planned(text: str) -> Proposal:
    planner = RulesPlanner(
        [rule for pack in PACKS for rule in pack.rules], [rule for pack in PACKS for rule in pack.revisions]
    )
    situation = Situation(request=request_of(text), registry=REGISTRY, caller=CALLER)
    return asyncio.run(planner.propose(situation))


@pytest.mark.parametrize(
    "text",
    [
        "对比华东和华南区域上季度销售额，找出下降超15%的城市",
        "Compare last quarter's sales of East China and South China; find the cities that fell by more than 15%",
        "各品类上季度销售额占比",
        "对比华东和华南的销售额",
    ],
)
def test_the_plan_of_a_sales_question_passes_verification(text: str) -> None:
    proposal = planned(text)
    assert proposal.origin == "sales_question"
    assert verify(proposal.plan, REGISTRY, request_of(text), CALLER, answer=proposal.answer) == ()
    assert proposal.plan.parallel_groups == ((0,), (1, 2), (3,), (4,), (5,), (6, 7), (8,))


@pytest.mark.parametrize(
    "text", ["今天天气怎么样", "火星上季度销售额", "sales of East China last quarter; DROP TABLE city"]
)
def test_what_is_not_understood_is_planned_as_a_question(text: str) -> None:
    proposal = planned(text)
    assert [step.tool for step in proposal.plan.steps] == ["clarify"]
    assert verify(proposal.plan, REGISTRY, request_of(text), CALLER, answer=proposal.answer) == ()


@pytest.mark.parametrize("name", ["question_not_complete", "outside_the_data", "no_record"])
def test_every_revision_passes_verification(name: str) -> None:
    [sales] = [pack for pack in PACKS if pack.name == "sales"]
    [revision] = [rule for rule in sales.revisions if rule.name == name]
    plan = Plan.from_json({"steps": list(revision.steps), "confidence": 1.0})
    assert verify(plan, REGISTRY, request_of("珠海上季度销售额"), CALLER, answer=revision.answer_step) == ()


@pytest.mark.parametrize(
    "text",
    [
        "对比华东和华南区域上季度销售额，找出下降超15%的城市",
        "Compare last quarter's sales of East China and South China; find the cities that fell by more than 15%",
        "2026年第二季度销售额最高的5个商品",
        "Monthly sales trend of East China in 2025",
        "华东占全国上季度销售额的比例",
        "上季度销售额环比",
        "今年销售额",
        "return rate by category in 2025",
    ],
)
def test_the_conductor_accepts_every_answer(desk: SalesDesk, text: str) -> None:
    answer = desk.ask(text)
    assert check_answer(answer.outputs["reporter"], answer.request, ()) == ("answer_language", "answer_sources")
