"""A person is asked for the plan: what waits, what they may give, and that nothing is lost meanwhile."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from conductor.diagnose import diagnose
from conductor.failure import FailurePolicy
from conductor.hybrid_planner import HybridPlanner
from conductor.plan import Plan
from conductor.progress import TaskState
from conductor.rules_planner import RulesPlanner
from conductor.state import fold
from conductor.thresholds import PlanThresholds
from conductor.timeline import render, timeline
from conductor.verify import PlanRejected
from conductor.view import task_view
from podium.errors import AgentCrashed, Conflict, InvalidRequest
from podium.v1 import event_pb2, status_pb2
from tests.fakes.agents import answer
from tests.fakes.bus import DyingBus, Killed
from tests.fakes.clock import FakeClock
from tests.fakes.planners import SurePlanner, sure
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import FAST, Stage, stage
from tests.unit.conductor.test_waiting import ASKING, CLARIFY

SHORT: dict[str, Any] = {
    "steps": [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {"tool": "lookup", "arguments": {"topic": {"step": 0, "field": "topic"}}, "depends_on": [0]},
        {"tool": "report", "arguments": {"total": 7.0}, "depends_on": [1]},
    ]
}


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def unsure(
    *,
    confidence: float = 0.6,
    scripts: Any = SCRIPTS,
    bus: Any = None,
    specs: Any = (*SPECS, CLARIFY),
    **wiring: Any,
) -> Stage:
    policy = SurePlanner(sure(PLAN["steps"], confidence))
    planner = HybridPlanner(RulesPlanner([]), policy, lambda tenant, model: PlanThresholds())
    return stage(specs, {**scripts, "clarify": ASKING}, planner=planner, bus=bus, **wiring)


def given(plan: Any = None, **fields: Any) -> event_pb2.ReviewResolved:
    verdict = status_pb2.REVIEW_VERDICT_ACCEPTED if plan is None else status_pb2.REVIEW_VERDICT_CORRECTED
    payload = event_pb2.ReviewResolved(verdict=verdict, reviewer="ada", **fields)
    if plan is not None:
        payload.plan.CopyFrom(Plan.from_json(plan).to_proto())
    return payload


async def asked(show: Stage) -> TaskState:
    state = await show.perform()
    assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
    return state


def test_nothing_runs_until_a_person_has_accepted_the_plan() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        assert show.engine.calls == []
        assert state.plan is None
        [review] = state.reviews
        assert (review.step, review.level, review.reason.code) == (None, 3, "PLAN_UNSURE")
        assert review.proposed is not None
        assert [step.tool for step in review.proposed.plan.steps] == [step["tool"] for step in PLAN["steps"]]
        assert "0.60 sure of its plan; 0.80 is needed" in review.reason.message
        view = task_view(state)
        assert [entry.planner for entry in view.route] == ["rules", "policy"]
        assert (view.planner, view.error.code) == ("", "PLAN_UNSURE")

        state = await show.desk.resolve_review(state.task_id, given(note="looks right"))
        assert state.status == status_pb2.TASK_STATUS_RUNNING
        assert show.bus.row(state.task_id).status == status_pb2.TASK_STATUS_RUNNING
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
        assert (state.planner, state.origin, state.person_plan) == ("person", "ada", None)
        assert state.result is not None
        assert state.result.planner == "person"
        assert [(entry.planner, entry.taken) for entry in state.result.route] == [
            ("rules", False), ("policy", False), ("person", True),
        ]  # fmt: skip
        assert state.result.route[2].reason == "looks right"
        adopted = next(
            event.plan_adopted for event in await show.events(state.task_id) if event.HasField("plan_adopted")
        )
        assert list(adopted.route) == list(state.result.route)
        terms = {term.name: term.value for term in state.reward.terms} if state.reward else {}
        assert terms["unaided"] == 0.5

    play(scenario())


def test_a_plan_of_the_persons_own_runs_instead() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        await show.desk.resolve_review(state.task_id, given(SHORT))
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
        assert show.engine.named() == ["parse", "lookup", "report"]
        assert state.plan_version == 1

    play(scenario())


def test_which_step_answers_is_kept_through_the_persons_hands() -> None:
    async def scenario() -> None:
        first = {
            "steps": [{"tool": "report", "arguments": {"total": 7.0}}, *SHORT["steps"][:1]],
            "confidence": 0.5,
        }
        policy = SurePlanner({**first, "answer": 0})
        planner = HybridPlanner(RulesPlanner([]), policy, lambda tenant, model: PlanThresholds())
        show = stage((*SPECS, CLARIFY), {**SCRIPTS, "clarify": ASKING}, planner=planner)
        state = await asked(show)
        await show.desk.resolve_review(state.task_id, given())
        state = await show.run(state.task_id)
        assert (state.status, state.answer_step) == (status_pb2.TASK_STATUS_SUCCEEDED, 0)

    play(scenario())


def test_a_plan_that_must_not_run_is_refused_with_every_reason_and_the_case_stays_open() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        wrong = {
            "steps": [
                {"tool": "nobody", "arguments": {}},
                {"tool": "parse", "arguments": {"words": {"request": "text"}}, "depends_on": [5]},
            ]
        }
        with pytest.raises(PlanRejected) as caught:
            await show.desk.resolve_review(state.task_id, given(wrong))
        codes = {problem.code for problem in caught.value.problems}
        assert {
            "UNKNOWN_AGENT",
            "DANGLING_REFERENCE",
            "UNKNOWN_ARGUMENT",
            "MISSING_ARGUMENT",
            "NO_ANSWER",
        } <= codes
        assert len(caught.value.evidence) == len(caught.value.problems)
        assert (await show.state(state.task_id)).last_sequence == state.last_sequence
        with pytest.raises(InvalidRequest, match="waits for a plan"):
            await show.desk.resolve_review(
                state.task_id, event_pb2.ReviewResolved(verdict=status_pb2.REVIEW_VERDICT_CORRECTED)
            )
        await show.desk.resolve_review(state.task_id, given(SHORT))
        assert (await show.run(state.task_id)).status == status_pb2.TASK_STATUS_SUCCEEDED

    play(scenario())


def test_a_case_about_a_step_takes_no_plan() -> None:
    async def scenario() -> None:
        crash = {**SCRIPTS, "lookup": AgentCrashed("fell over")}
        policy = FailurePolicy(max_replans=0, retry_delay=FAST.failure_policy.retry_delay)
        show = unsure(confidence=0.9, scripts=crash, settings=replace(FAST, failure_policy=policy))
        state = await asked(show)
        assert state.reviews[0].step is not None
        for payload in (given(), given(SHORT)):
            with pytest.raises(InvalidRequest, match="does not ask for a plan"):
                await show.desk.resolve_review(state.task_id, payload)

    play(scenario())


def test_a_rejected_plan_ends_the_task() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        rejected = event_pb2.ReviewResolved(
            verdict=status_pb2.REVIEW_VERDICT_REJECTED, reviewer="ada", note="not ours"
        )
        await show.desk.resolve_review(state.task_id, rejected)
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "REVIEW_REJECTED"
        assert show.engine.calls == []
        with pytest.raises(Conflict):
            await show.desk.resolve_review(state.task_id, given())

    play(scenario())


def test_a_plan_that_ceased_to_hold_is_the_persons_again() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        await show.desk.resolve_review(state.task_id, given())
        show.registry.set_enabled("lookup", enabled=False)
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert state.reviews[0].reason.code == "PLAN_REJECTED"
        assert state.plans_refused == 1
        show.registry.set_enabled("lookup", enabled=True)
        await show.desk.resolve_review(state.task_id, given())
        assert (await show.run(state.task_id)).status == status_pb2.TASK_STATUS_SUCCEEDED

    play(scenario())


def test_where_nobody_settles_reviews_the_caller_is_asked_or_there_is_no_plan() -> None:
    async def scenario() -> None:
        settings = replace(FAST, failure_policy=FailurePolicy(reviewers=False))
        state = await unsure(settings=settings).perform()
        assert state.status == status_pb2.TASK_STATUS_WAITING_INPUT
        assert [entry.planner for entry in state.route] == ["rules", "policy"]
        state = await unsure(settings=settings, specs=SPECS).perform()
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "PLAN_UNSURE"

    play(scenario())


def test_a_new_plan_after_a_failure_waits_for_a_person_and_keeps_what_is_finished() -> None:
    class Doubtful(SurePlanner):
        async def propose(self, situation: Any) -> Any:
            self.plan = sure(PLAN["steps"], 0.9) if not situation.avoid else sure(SHORT["steps"], 0.5)
            return await super().propose(situation)

    async def scenario() -> None:
        planner = HybridPlanner(RulesPlanner([]), Doubtful(), lambda tenant, model: PlanThresholds())
        scripts = {**SCRIPTS, "code": AgentCrashed("fell over"), "clarify": ASKING}
        show = stage((*SPECS, CLARIFY), scripts, planner=planner)
        state = await asked(show)
        assert state.reviews[0].step is None
        before = len(show.engine.calls)
        assert (await show.run(state.task_id)).status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert len(show.engine.calls) == before, "nothing runs while a person is asked for the plan"
        await show.desk.resolve_review(state.task_id, given())
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
        assert show.engine.count("parse") == show.engine.count("lookup") == 1
        assert [step.uid for step in state.steps] == ["v1s0", "v1s2", "v2s2"]

    play(scenario())


@pytest.mark.parametrize("after_write", [False, True])
@pytest.mark.parametrize("at", range(1, 10))
def test_a_process_that_dies_at_any_write_loses_neither_the_case_nor_the_plan(at: int, after_write: bool) -> None:
    async def scenario() -> None:
        bus = DyingBus(FakeClock(), at=at, after_write=after_write)
        show = unsure(bus=bus)
        task_id = await show.submit()
        settled = False
        for _ in range(12):
            try:
                state = await show.run(task_id)
                if state.status == status_pb2.TASK_STATUS_WAITING_REVIEW:
                    assert not settled
                    assert state.reviews[0].proposed is not None
                    await show.desk.resolve_review(task_id, given(SHORT))
                    settled = True
            except Killed:
                # The log is what is left; whoever comes next reads it.
                settled = (
                    not (await show.state(task_id)).reviews and (await show.state(task_id)).reviews_settled > 0
                )
                continue
            if state.ended:
                break
        state = await show.state(task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
        assert (state.planner, state.reviews_settled) == ("person", 1)
        kinds = await show.kinds(task_id)
        assert kinds.count("review_requested") == kinds.count("review_resolved") == 1

    play(scenario())


def test_the_wait_is_in_the_timeline_and_no_fault_is_found_in_it() -> None:
    async def scenario() -> None:
        show = unsure()
        state = await asked(show)
        show.clock.advance(minutes=3)
        await show.desk.resolve_review(state.task_id, given())
        await show.run(state.task_id)
        events = await show.events(state.task_id)
        waits = [span for span in timeline(events) if span.kind == "review"]
        assert [(span.end - span.start).total_seconds() for span in waits] == [180.0]
        assert "waits for a person" in render(timeline(events))
        assert not diagnose(events, show.registry).found
        assert fold(events) == await show.state(state.task_id)

    play(scenario())


def test_answers_tell_that_rules_planned_them_where_only_rules_were_asked() -> None:
    async def scenario() -> None:
        state = await stage(SPECS, SCRIPTS, PLAN).perform()
        assert state.result is not None
        assert state.result.planner == "rules"
        [entry] = state.result.route
        assert (entry.planner, entry.taken, entry.confidence) == ("rules", True, 0.9)
        revised = stage(
            SPECS,
            {**SCRIPTS, "report": answer()},
            PLAN,
            revisions={"parse": {"steps": SHORT["steps"], "confidence": 0.9}},
        )
        state = await revised.perform()
        assert state.result is not None
        assert (state.planner, state.result.planner) == ("revision", "rules")

    play(scenario())
