"""Checks of outputs and answers, the anchor, and rewards."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.invocation import AgentContext, Caller
from agents.registry import RegisteredAgent
from conductor.anchor import anchored_texts, find_drift
from conductor.assemble import check_answer
from conductor.checking import OutputChecker
from conductor.claims import cited, claims, is_chinese
from conductor.errors import AnswerIncomplete, AnswerWithoutSource
from conductor.progress import TaskState
from conductor.reward import WEIGHTS, compute_reward
from podium.errors import AgentCrashed, LowConfidence, OutputContractBroken, ValidatorFailed
from tests.fakes.agents import NUMBER, TEXT, agent_spec, output, registry_of
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import stage

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
CONTEXT = AgentContext(
    task_id="t",
    step=0,
    attempt=1,
    idempotency_key="t/v1s0",
    now=NOW,
    caller=Caller(name="tester"),
    request={"text": "hello", "limit": 5},
)


def agent(**fields: Any) -> RegisteredAgent:
    spec = agent_spec(
        "add", inputs={"rows": {"type": "array", "items": NUMBER}}, outputs={"total": NUMBER}, **fields
    )
    return registry_of(spec).get("add")


def too_small(inputs: Mapping[str, Any], result: Mapping[str, Any], context: AgentContext) -> list[str]:
    return [] if result["total"] >= context.request["limit"] else [f"total {result['total']} is under the limit"]


def crashes(inputs: Mapping[str, Any], result: Mapping[str, Any], context: AgentContext) -> list[str]:
    raise ZeroDivisionError("a validator with a bug")


def meddles(inputs: Mapping[str, Any], result: dict[str, Any], context: AgentContext) -> list[str]:
    result["total"] = "not a number"
    return []


def check(who: RegisteredAgent, raw: object) -> Any:
    return OutputChecker().check(who, raw, {"rows": [1.0, 2.0]}, CONTEXT)


def test_a_good_output_lists_what_it_passed() -> None:
    who = agent(
        confidence_gate=0.5,
        validators=[
            {"name": "sum", "cel": "output.total == 3.0 && input.rows.size() == 2 && request.limit == 5"},
        ],
    )
    checked = check(who, output(total=3.0))
    assert checked.checks == ("sanitised", "schema", "sum", "confidence")
    assert checked.confidence == 0.9
    assert json.loads(checked.document.data)["total"] == 3.0


def test_what_a_validator_does_to_the_output_is_not_kept() -> None:
    who = agent(validators=[{"name": "meddles", "python": f"{__name__}:meddles"}])
    assert check(who, output(total=3.0)).output["total"] == 3.0


def test_text_that_is_one_json_object_is_taken() -> None:
    assert check(agent(), json.dumps(output(total=3.0))).output["total"] == 3.0


def test_validators_refuse_with_evidence() -> None:
    who = agent(
        validators=[
            {"name": "positive", "cel": "output.total > 0.0", "message": "a total is positive"},
            {"name": "limit", "python": f"{__name__}:too_small"},
            {"name": "buggy", "python": f"{__name__}:crashes"},
            {"name": "unreadable", "cel": "output.nothing > 1.0"},
        ]
    )
    with pytest.raises(ValidatorFailed) as caught:
        check(who, output(total=-1.0))
    assert [line.split(":")[0] for line in caught.value.evidence] == ["positive", "limit", "buggy", "unreadable"]
    assert "ZeroDivisionError" in caught.value.evidence[2]


def test_what_a_checking_agent_says_is_kept_as_evidence() -> None:
    spec = agent_spec(
        "judge",
        inputs={},
        outputs={"agrees": {"type": "boolean"}, "contradictions": {"type": "array", "items": {}}},
        validators=[{"name": "agrees", "cel": "output.agrees"}],
    )
    with pytest.raises(ValidatorFailed) as caught:
        check(
            registry_of(spec).get("judge"),
            output(agrees=False, contradictions=[{"evidence": "7.5 is 6.5"}, "plain", {"a": 1}]),
        )
    assert caught.value.evidence[1:] == (
        "contradictions: 7.5 is 6.5",
        "contradictions: plain",
        'contradictions: {"a":1}',
    )


def test_the_gate_asks_for_confidence() -> None:
    with pytest.raises(LowConfidence):
        check(agent(confidence_gate=0.95), output(total=3.0))
    with pytest.raises(OutputContractBroken):
        check(agent(), output(True, total=3.0))


def test_claims_and_citations() -> None:
    text = """# Report
Sales fell by 20 % [Source: S1]

Cities:
- Hefei fell [Source: S1, S2]
- Xiamen fell

| city | change |
| --- | --- |
| Hefei | -20 % |

[Source: S3]

> computed on 2026-11-29

1. one more
"""
    found = list(claims(text))
    assert len(found) == 5
    assert [bool(cited(claim)) for claim in found] == [True, True, False, True, False]
    assert cited("a [Source: S1, S2] b [来源：S3]") == ("S1", "S2", "S3")
    assert is_chinese("销售额下降 20% [Source: S1]")
    assert not is_chinese("Sales in 上海 fell by a fifth compared with the quarter before")


def answer_of(text: str, sources: Sequence[str] = ("S1",)) -> dict[str, Any]:
    return {"markdown": text, "sources": [{"id": name} for name in sources]}


def test_answers_are_held_against_the_request() -> None:
    check_answer(answer_of("Sales fell [Source: S1]"), {"language": "en"}, ())
    check_answer(answer_of("销售额下降 [Source: S7]", ()), {"language": "zh"}, ("S7",))
    with pytest.raises(AnswerIncomplete, match="language"):
        check_answer(answer_of("Sales fell [Source: S1]"), {"language": "zh"}, ())
    with pytest.raises(AnswerIncomplete, match="no text"):
        check_answer({"sources": []}, {}, ())
    with pytest.raises(AnswerWithoutSource, match="no source at all"):
        check_answer(answer_of("Sales fell", ()), {}, ())
    with pytest.raises(AnswerWithoutSource, match="1 claims"):
        check_answer(answer_of("Sales fell [Source: S1]\n\nand prices rose"), {}, ())
    with pytest.raises(AnswerWithoutSource, match="S9"):
        check_answer(answer_of("Sales fell [Source: S9]"), {}, ())


class Embedder:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def similarities(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        self.seen.extend([*texts, *others])
        return [[float(("sales" in text) == ("sales" in other)) for other in others] for text in texts]


def test_the_anchor_finds_what_has_drifted() -> None:
    spec = agent_spec("anchored", inputs={"topic": TEXT, "note": TEXT}, anchor_fields=("topic", "absent"))
    assert anchored_texts(spec, {"topic": "x", "note": "y"}) == {"topic": "x"}
    embedder = Embedder()
    assert find_drift("how were sales", {"a": "sales figures"}, embedder, 0.3) is None
    drift = find_drift("how were sales", {"a": "sales figures", "b": "sunshine"}, embedder, 0.3)
    assert drift is not None
    assert (drift.field, drift.similarity) == ("b", 0.0)
    embedder.seen.clear()
    assert find_drift("how were sales", {"a": "How were sales in May"}, embedder, 0.3) is None
    assert not embedder.seen, "a text that holds the request needs no embedding"


def performed(scripts: Mapping[str, Any]) -> TaskState:
    return asyncio.run(stage(SPECS, scripts, PLAN).perform())


def test_rewards_are_sums_of_terms_with_origins() -> None:
    state = performed(SCRIPTS)
    reward = state.reward
    assert reward is not None
    parts = [getattr(reward, name) * weight for name, weight in WEIGHTS.items()]
    assert reward.final == pytest.approx(sum(parts))
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert all(0 <= term.value <= 1 and term.origin for term in reward.terms)
    assert reward.task_completion == 1
    assert {term.step for term in reward.terms if term.HasField("step")} == {0, 1, 2, 3, 4}


def test_rewards_fall_with_what_went_wrong() -> None:
    good = performed(SCRIPTS).reward
    wrong = performed({**SCRIPTS, "code": [{"total": "x"}, output(total=6.5)]}).reward
    unsure = performed({**SCRIPTS, "lookup": output(0.2, unit="EUR")}).reward
    crashed = performed({**SCRIPTS, "lookup": [AgentCrashed("x"), output(unit="EUR")]}).reward
    assert good is not None
    assert wrong is not None
    assert unsure is not None
    assert crashed is not None
    assert wrong.data_accuracy < good.data_accuracy
    assert unsure.data_accuracy < good.data_accuracy
    assert crashed.data_accuracy == pytest.approx(good.data_accuracy)
    assert crashed.resource_efficiency < good.resource_efficiency
    assert compute_reward(TaskState(), answered=False, now=NOW).final == pytest.approx(
        0.2 * (1 + 1 + 0 + 1) / 4, abs=0.001
    )
