"""What the runner does when a step fails: retry, fallback, degrade, replan, review, fail."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from agents.invocation import Invocation
from conductor.failure import FailurePolicy
from conductor.journal import timestamp_of
from conductor.wiring import RunnerSettings
from podium.errors import AgentCrashed, CapabilityDenied, InvalidRequest
from podium.v1 import event_pb2, status_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, held, output
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import FAST, Stage, stage


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def test_retries_with_the_diagnosis_attached() -> None:
    async def scenario() -> None:
        scripts = {**SCRIPTS, "code": [{"total": "six"}, output(total=6.5)]}
        show = stage(SPECS, scripts, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        second = [call for call in show.engine.calls if call.spec.name == "code"][1]
        assert second.context.attempt == 2
        assert any("OUTPUT_CONTRACT_BROKEN" in line for line in second.context.diagnosis)
        assert state.steps[3].attempts == 2
        retries = [
            event.header.retry_count
            for event in await show.events(state.task_id)
            if event.HasField("step_started") and event.step_started.agent == "code"
        ]
        assert retries == [0, 1]

    play(scenario())


def test_another_agent_with_the_same_capability_takes_over() -> None:
    async def scenario() -> None:
        spare = agent_spec(
            "spare",
            inputs={"topic": TEXT},
            outputs={"unit": TEXT},
            tags=["lookup"],
        )
        scripts = {**SCRIPTS, "lookup": AgentCrashed("gone"), "spare": output(unit="EUR")}
        show = stage([*SPECS, spare], scripts, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.plan_version == 1
        assert state.steps[2].agent == "spare"
        assert state.steps[2].agents_tried == ("lookup", "spare")

    play(scenario())


def test_goes_on_without_a_step_that_is_not_critical_and_says_so() -> None:
    async def scenario() -> None:
        specs = [spec for spec in SPECS if spec.name not in ("lookup", "code")]
        specs.append(agent_spec("lookup", inputs={"topic": TEXT}, outputs={"unit": TEXT}, critical=False))
        specs.append(
            agent_spec(
                "code",
                inputs={"rows": {"type": "array", "items": NUMBER}, "unit": TEXT},
                required=["rows"],
                outputs={"total": NUMBER},
            )
        )
        show = stage(specs, {**SCRIPTS, "lookup": AgentCrashed("gone")}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.steps[2].status == status_pb2.STEP_STATUS_SKIPPED
        assert state.result is not None
        assert len(state.result.degraded) == 1
        assert "lookup" in state.result.degraded[0]
        code = next(call for call in show.engine.calls if call.spec.name == "code")
        assert "unit" not in code.inputs

    play(scenario())


def test_a_step_whose_output_is_needed_is_not_left_out() -> None:
    async def scenario() -> None:
        specs = [spec for spec in SPECS if spec.name != "lookup"]
        specs.append(agent_spec("lookup", inputs={"topic": TEXT}, outputs={"unit": TEXT}, critical=False))
        show = stage(specs, {**SCRIPTS, "lookup": AgentCrashed("gone")}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW

    play(scenario())


def reviewed() -> tuple[Stage, dict[str, Any]]:
    return stage(SPECS, {**SCRIPTS, "code": AgentCrashed("no head for numbers")}, PLAN), output(total=6.5)


def test_a_person_corrects_the_step_and_the_task_goes_on() -> None:
    async def scenario() -> None:
        show, corrected = reviewed()
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert [(review.step, review.level) for review in state.reviews] == [(3, 3)], (
            "replanning was tried in vain"
        )
        assert show.bus.row(state.task_id).status == status_pb2.TASK_STATUS_WAITING_REVIEW
        verdict = event_pb2.ReviewResolved(
            verdict=status_pb2.REVIEW_VERDICT_CORRECTED,
            output_json=json.dumps(corrected).encode(),
            reviewer="ada",
        )
        state = await show.desk.resolve_review(state.task_id, verdict)
        assert state.status == status_pb2.TASK_STATUS_RUNNING
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.result is not None
        assert any(source.kind == "person" for source in state.result.sources)
        assert show.engine.count("parse") == 1

    play(scenario())


def test_a_correction_must_keep_the_agents_contract() -> None:
    async def scenario() -> None:
        show, _ = reviewed()
        state = await show.perform()
        for data in (b"", b"not json", b"[]", b'{"total": "six"}'):
            verdict = event_pb2.ReviewResolved(
                verdict=status_pb2.REVIEW_VERDICT_CORRECTED, output_json=data, reviewer="ada"
            )
            with pytest.raises(InvalidRequest):
                await show.desk.resolve_review(state.task_id, verdict)

    play(scenario())


def test_a_person_rejects_and_the_task_fails() -> None:
    async def scenario() -> None:
        show, _ = reviewed()
        state = await show.perform()
        verdict = event_pb2.ReviewResolved(
            verdict=status_pb2.REVIEW_VERDICT_REJECTED, reviewer="ada", note="the rows are wrong"
        )
        await show.desk.resolve_review(state.task_id, verdict)
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "REVIEW_REJECTED"
        assert "the rows are wrong" in state.error.message

    play(scenario())


def test_fails_where_nobody_reviews() -> None:
    async def scenario() -> None:
        policy = FailurePolicy(reviewers=False, retry_delay=FAST.failure_policy.retry_delay)
        settings = RunnerSettings(failure_policy=policy, poll_interval=FAST.poll_interval)
        show = stage(SPECS, {**SCRIPTS, "code": AgentCrashed("gone")}, PLAN, settings=settings)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "AGENT_CRASHED"
        assert state.reward is not None
        assert state.reward.task_completion < 0.3

    play(scenario())


@pytest.mark.parametrize("error", [InvalidRequest("the file is no image"), CapabilityDenied("no token")])
def test_what_no_agent_can_help_fails_at_once(error: Exception) -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": error}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert show.engine.count("code") == 1

    play(scenario())


BAD_OUTPUTS: dict[str, Any] = {
    "prose": "The total is six and a half.",
    "nan": {**output(), "total": float("nan")},
    "huge": output(total="x" * 2_000_000),
    "none": None,
    "list": [1, 2],
    "object": object(),
    "unknown field": output(total=1.0, extra=1),
    "overconfident": output(1.5, total=1.0),
    "boom": ZeroDivisionError("a plain exception"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_whatever_an_agent_returns_is_a_typed_failure(name: str) -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": BAD_OUTPUTS[name]}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert state.steps[3].error is not None
        assert state.steps[3].error.code == ("AGENT_CRASHED" if name == "boom" else "OUTPUT_CONTRACT_BROKEN")

    play(scenario())


def test_deep_output_is_a_typed_failure() -> None:
    async def scenario() -> None:
        deep: Any = {}
        for _ in range(5000):
            deep = {"inner": deep}
        show = stage(SPECS, {**SCRIPTS, "code": output(total=deep)}, PLAN)
        state = await show.perform()
        assert state.steps[3].error is not None
        assert state.steps[3].error.code == "OUTPUT_CONTRACT_BROKEN"

    play(scenario())


def test_an_agent_that_never_answers_is_timed_out() -> None:
    async def scenario() -> None:
        specs = [spec if spec.name != "code" else slow for spec in SPECS]
        show = stage(specs, {**SCRIPTS, "code": held(asyncio.Event(), None)}, PLAN)
        state = await show.perform()
        assert state.steps[3].error is not None
        assert state.steps[3].error.code == "AGENT_TIMEOUT"

    slow = agent_spec(
        "code",
        inputs={"rows": {"type": "array", "items": NUMBER}, "unit": TEXT},
        outputs={"total": NUMBER},
        sla={"timeout": 0.02, "retries": 1},
    )
    play(scenario())


def test_an_answer_without_a_source_fails_the_answering_step() -> None:
    async def scenario() -> None:
        bare = {"markdown": "Sales fell", "fields": {}, "confidence_score": 0.9, "sources": []}
        scripts = {**SCRIPTS, "report": [bare, answer("Sales fell [Source: S1]")]}
        show = stage(SPECS, scripts, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert [note.code for note in state.failures] == ["ANSWER_WITHOUT_SOURCE"]

    play(scenario())


def test_a_step_is_given_no_more_time_than_the_task_has() -> None:
    async def scenario() -> None:
        limits: list[float] = []

        def look(invocation: Invocation) -> Any:
            limits.append(invocation.time_limit.total_seconds())
            return output(topic="sales")

        show = stage(SPECS, {**SCRIPTS, "parse": look}, PLAN)
        limit = timestamp_of(show.clock.now.replace(second=2))
        await show.perform(expire_time=limit)
        assert limits == [2.0]

    play(scenario())


def test_an_agent_that_cancels_itself_is_a_typed_failure() -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": [asyncio.CancelledError(), output(total=6.5)]}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert [note.code for note in state.failures] == ["AGENT_CRASHED"]

    play(scenario())


def test_an_agent_cannot_change_what_others_are_given() -> None:
    async def scenario() -> None:
        def vandal(invocation: Invocation) -> Any:
            rows = invocation.inputs["rows"]
            rows.clear()
            return (
                AgentCrashed("and now the rows are gone") if invocation.context.attempt == 1 else output(total=6.5)
            )

        show = stage(SPECS, {**SCRIPTS, "code": vandal}, PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.steps[1].output is not None
        assert state.steps[1].output.value["rows"] == [1.0, 2.0, 3.5]

    play(scenario())


def test_who_was_to_take_over_and_could_not_be_called_is_not_named_again() -> None:
    async def scenario() -> None:
        short = {"type": "string", "maxLength": 3}
        spares = [
            agent_spec(name, inputs={"topic": short}, outputs={"unit": TEXT}, tags=["lookup"])
            for name in ("spare", "third")
        ]
        show = stage([*SPECS, *spares], {**SCRIPTS, "lookup": AgentCrashed("gone")}, PLAN)
        state = await show.perform()
        # Both are refused before they are called, and each once: they must not send the step back and forth.
        assert not {"spare", "third"} & set(show.engine.named())
        assert state.steps[2].agents_tried == ("lookup", "spare", "third")
        assert [note.code for note in state.failures][-2:] == ["INPUT_CONTRACT_BROKEN"] * 2

    play(scenario())


def test_a_plan_is_held_to_the_roles_that_the_caller_had() -> None:
    async def scenario() -> None:
        specs = [agent_spec("open", outputs=ANSWER, permission="operator")]
        plan = {"steps": [{"tool": "open"}]}
        for roles, status in (
            (["caller", "operator"], status_pb2.TASK_STATUS_SUCCEEDED),
            (["caller"], status_pb2.TASK_STATUS_FAILED),
            ([], status_pb2.TASK_STATUS_FAILED),  # of before roles were recorded
        ):
            show = stage(specs, {"open": answer("Done [Source: S1]")}, plan)
            assert (await show.perform(caller_roles=roles)).status == status

    play(scenario())
