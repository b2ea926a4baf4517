"""Hand-overs: parameters that match, an accepted response within N turns, and who is at fault when not."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.contract import HandoverBroken
from agents.invocation import Caller
from agents.spec import AgentSpec, ManifestInvalid, read_spec
from conductor.plan import Plan
from conductor.verify import PlanProblem, verify
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, output, registry_of
from tests.fakes.stage import Stage, stage

CITY = {"type": "string", "maxLength": 20, "pattern": "^[A-Z]"}
PLAN = {
    "steps": [
        {"tool": "give"},
        {"tool": "take", "arguments": {"city": {"step": 0, "field": "city"}}},
        {"tool": "report", "arguments": {"text": {"step": 1, "field": "text"}}},
    ]
}


def _terms(to: str = "take", turns: int = 2, properties: Mapping[str, Any] | None = None) -> dict[str, Any]:
    properties = {"city": CITY} if properties is None else properties
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"to": to, "within_turns": turns, "parameters": schema}


def _specs(terms: Mapping[str, Any], retries: int = 5, **take: Any) -> list[AgentSpec]:
    return [
        agent_spec("give", outputs={"city": TEXT}, handovers=[terms]),
        agent_spec(
            "take",
            inputs={"city": TEXT},
            outputs={"text": TEXT},
            tags=["taking"],
            **{"sla": {"timeout": 5, "retries": retries}, **take},
        ),
        agent_spec("report", inputs={"text": TEXT}, outputs=ANSWER),
    ]


def _stage(
    take: Any, *, city: str = "Bern", terms: Mapping[str, Any] | None = None, plans: Any = (PLAN,), more: Any = ()
) -> Stage:
    scripts = {
        "give": output(city=city),
        "take": take,
        "spare": output(text="from the spare"),
        "report": answer("Done [Source: S1]"),
    }
    return stage([*_specs(terms or _terms()), *more], scripts, *plans)


def test_an_answer_within_the_turns_is_fine() -> None:
    async def scenario() -> None:
        play = _stage([RuntimeError("bang"), output(text="at the second turn")])
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert [call.context.turns_left for call in play.engine.calls] == [None, 2, 1, None]

    asyncio.run(scenario())


def test_no_accepted_answer_within_the_turns_is_attributed_to_the_receiver() -> None:
    async def scenario() -> None:
        play = _stage([RuntimeError("bang"), output(), output(text="too late")])
        state = await play.perform()
        # Its manifest allows five retries; the giver waits for two turns only.
        assert play.engine.named().count("take") == 2
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        error = state.steps[1].error
        assert error is not None
        assert (error.code, error.agent) == ("HANDOVER_BROKEN", "take")
        assert "take gave no accepted response to give (step 0) within 2 turns; turn 2 ended" in error.message
        assert error.evidence[0].startswith("OUTPUT_CONTRACT_BROKEN")

    asyncio.run(scenario())


def test_an_agent_outside_the_agreement_may_take_over() -> None:
    async def scenario() -> None:
        spare = agent_spec("spare", inputs={"city": TEXT}, outputs={"text": TEXT}, tags=["taking", "more"])
        play = _stage(RuntimeError("bang"), more=[spare])
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert play.engine.named() == ["give", "take", "take", "spare", "report"]
        assert [note.code for note in state.failures] == ["AGENT_CRASHED", "HANDOVER_BROKEN"]

    asyncio.run(scenario())


def test_an_agreement_with_a_capability_binds_whoever_takes_over() -> None:
    async def scenario() -> None:
        spare = agent_spec("spare", inputs={"city": TEXT}, outputs={"text": TEXT}, tags=["taking", "more"])
        play = _stage(RuntimeError("bang"), more=[spare], terms=_terms("taking"))
        state = await play.perform()
        assert "spare" not in play.engine.named()
        assert state.steps[1].error is not None
        assert state.steps[1].error.code == "HANDOVER_BROKEN"

    asyncio.run(scenario())


def test_other_parameters_than_agreed_are_the_givers_fault() -> None:
    async def scenario() -> None:
        around = {"steps": [{"tool": "report", "arguments": {"text": "without"}}]}
        play = _stage(output(text="never"), city="bern", plans=(PLAN, around))
        state = await play.perform()
        assert "take" not in play.engine.named()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        (note,) = state.failures
        assert (note.code, note.agent) == ("HANDOVER_BROKEN", "give")
        assert state.avoid == {"give"}
        assert "hands take other parameters than agreed, turn 1: $.city" in state.plan_reason

    asyncio.run(scenario())


def test_a_write_that_was_not_called_is_planned_around_like_others() -> None:
    async def scenario() -> None:
        around = {"steps": [{"tool": "report", "arguments": {"text": "without"}}]}
        specs = _specs(_terms(), side_effects="write", settings={"callable": "a:b"})
        scripts = {"give": output(city="bern"), "report": answer("Done [Source: S1]")}
        state = await stage(specs, scripts, PLAN, around).perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED

    asyncio.run(scenario())


def _problems(terms: Mapping[str, Any], plan: Mapping[str, Any] = PLAN) -> list[PlanProblem]:
    found = verify(Plan.from_json(plan), registry_of(*_specs(terms)), {}, Caller(name="ann"))
    return [problem for problem in found if problem.code == "HANDOVER_MISMATCH"]


def test_what_schemas_tell_is_found_before_anything_runs() -> None:
    assert not [problem for problem in _problems(_terms()) if problem.fatal]
    (wrong_type,) = _problems(_terms(properties={"city": NUMBER}))
    assert wrong_type.fatal
    assert "from step 0 (give): argument 'city': string where number is asked for" in wrong_type.message
    missing = _problems(_terms(properties={"city": CITY, "country": TEXT}))
    assert any("'country' is agreed on" in problem.message for problem in missing if problem.fatal)
    (stranger,) = _problems(_terms(properties={}))
    assert "'city' is not agreed on" in stranger.message


def test_an_agreement_with_somebody_else_does_not_concern_a_step() -> None:
    assert not _problems(_terms("somebody", properties={"city": NUMBER}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"within_turns": 0}, "greater than or equal to 1"),
        ({"parameters": {"type": "object", "properties": {}}}, "unknown fields"),
        ({"parameters": {"type": "string"}}, "schema of an object"),
        ({"to": "Nobody!"}, "pattern"),
        ({"when": "always"}, "there is no such field"),
    ],
)
def test_terms_that_say_nothing_are_refused(change: Mapping[str, Any], said: str) -> None:
    manifest = {**agent_spec("give", outputs={"city": TEXT}).manifest(), "handovers": [{**_terms(), **change}]}
    with pytest.raises(ManifestInvalid) as refused:
        read_spec(manifest, named="it")
    assert said in " ".join(refused.value.evidence)


def test_the_error_names_giver_receiver_and_turn() -> None:
    error = HandoverBroken("x", giver="a", receiver="b", turn=3)
    assert (error.giver, error.receiver, error.turn, error.agent, error.before_call) == ("a", "b", 3, "b", False)
    assert HandoverBroken("x", giver="a", receiver="b", turn=1, at_fault="a").before_call
