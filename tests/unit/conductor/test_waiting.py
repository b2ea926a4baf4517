"""Waiting for the caller, for a device, for time to run out; cancelling; crashes in between."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from conductor.progress import Clarification
from conductor.waiting import Sweeper
from podium.errors import Conflict, InvalidRequest, NotFound
from podium.v1 import event_pb2, status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, held, output
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import FixedPlanner, Stage, stage
from tests.unit.conductor.test_crashes import finished_twice

CLARIFY = agent_spec(
    "clarify",
    inputs={"text": TEXT, "language": TEXT, "reason": TEXT},
    required=["language"],
    outputs={"question": TEXT, "suggestions": {"type": "array", "items": TEXT}},
)
ASKING = output(question="Which region do you mean?", suggestions=["east", "west"])


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


def normalise(text: str, as_of: datetime, clarifications: Sequence[Clarification]) -> Mapping[str, Any]:
    """Understands a region only once the caller has named it."""
    regions = [item.answer for item in clarifications]
    return {
        "text": text,
        "language": "en",
        "entities": {"region": regions},
        "unresolved": [] if regions else [{"text": "the region", "kind": "place"}],
        "corrections": [],
    }


class AskingPlanner(FixedPlanner):
    """Asks while something is unresolved."""

    async def propose(self, situation: Any) -> Any:
        from conductor.clarifying import clarify_plan, mentions

        if about := mentions(situation.request):
            return clarify_plan(
                situation.registry, situation.request, reason="not understood", about=about, planner="rules"
            )
        return await super().propose(situation)


def asking_stage(scripts: Mapping[str, Any] = SCRIPTS) -> Stage:
    planner = AskingPlanner([PLAN])
    return stage([*SPECS, CLARIFY], {**scripts, "clarify": ASKING}, planner=planner, normalise=normalise)


def test_asks_waits_and_goes_on_with_the_answer() -> None:
    async def scenario() -> None:
        show = asking_stage()
        state = await show.perform("How were sales in the region?")
        assert state.status == status_pb2.TASK_STATUS_WAITING_INPUT
        assert state.question is not None
        assert state.question.text == "Which region do you mean?"
        assert list(state.question.suggestions) == ["east", "west"]
        assert list(state.question.about) == ["the region"]
        assert show.engine.named() == ["clarify"]
        state = await show.desk.provide_input(state.task_id, "q1", "east", caller="tester")
        assert state.status == status_pb2.TASK_STATUS_RUNNING
        assert show.bus.row(state.task_id).status == status_pb2.TASK_STATUS_RUNNING
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.request is not None
        assert state.request.value["entities"]["region"] == ["east"]
        assert state.request.value["clarifications"] == [
            {"question": "Which region do you mean?", "answer": "east"}
        ]
        assert state.replans == 0, "an answer does not count as a replan"

    play(scenario())


def test_answers_are_taken_once_and_only_for_open_questions() -> None:
    async def scenario() -> None:
        show = asking_stage()
        state = await show.perform()
        with pytest.raises(NotFound):
            await show.desk.provide_input(state.task_id, "q9", "east", caller="tester")
        with pytest.raises(InvalidRequest):
            await show.desk.provide_input(state.task_id, "q1", "  ", caller="tester")
        first = await show.desk.provide_input(state.task_id, "q1", "east", caller="tester")
        again = await show.desk.provide_input(state.task_id, "q1", "east", caller="tester")
        assert again.last_sequence == first.last_sequence
        with pytest.raises(Conflict):
            await show.desk.provide_input(state.task_id, "q1", "west", caller="tester")

    play(scenario())


def test_gives_up_after_several_questions() -> None:
    async def scenario() -> None:
        show = asking_stage()
        show = show.rewired(normalise=lambda text, as_of, answers: {**normalise(text, as_of, ())})
        state = await show.perform()
        for number in range(1, 6):
            await show.desk.provide_input(state.task_id, f"q{number}", "east", caller="tester")
            state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "TOO_MANY_QUESTIONS"

    play(scenario())


class Embedder:
    """Two meanings: sales and weather."""

    def similarities(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        return [
            [float(("sales" in text.lower()) == ("sales" in other.lower())) for other in others] for text in texts
        ]


def test_an_input_that_drifts_from_the_request_is_asked_about() -> None:
    async def scenario() -> None:
        retrieve = agent_spec(
            "retrieve",
            inputs={"topic": TEXT},
            outputs={"rows": {"type": "array", "items": {"type": "number"}}},
            anchor_fields=["topic"],
        )
        specs = [spec for spec in SPECS if spec.name != "retrieve"] + [retrieve, CLARIFY]
        scripts = {**SCRIPTS, "parse": output(topic="sunshine"), "clarify": ASKING}
        show = stage(specs, scripts, PLAN, embedder=Embedder())
        state = await show.perform("How did sales change?")
        assert state.status == status_pb2.TASK_STATUS_WAITING_INPUT
        assert [note.code for note in state.failures] == ["ANCHOR_DRIFT"]
        assert show.engine.count("retrieve") == 0
        await show.desk.provide_input(state.task_id, "q1", "sunshine hours", caller="tester")
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, "the answer is part of what was asked"
        assert show.engine.count("parse") == 2, "the text changed with the answer, so parse ran on it"

    play(scenario())


def test_what_was_finished_before_a_question_is_kept_after_the_answer() -> None:
    async def scenario() -> None:
        retrieve = agent_spec(
            "retrieve",
            inputs={"topic": TEXT},
            outputs={"rows": {"type": "array", "items": {"type": "number"}}},
            anchor_fields=["topic"],
        )
        specs = [spec for spec in SPECS if spec.name != "retrieve"] + [retrieve, CLARIFY]
        scripts = {**SCRIPTS, "parse": output(topic="sunshine"), "clarify": ASKING}

        def same_words(text: str, as_of: datetime, answers: Sequence[Clarification]) -> Mapping[str, Any]:
            return {"text": text, "language": "en", "entities": {}, "unresolved": [], "corrections": []}

        show = stage(specs, scripts, PLAN, embedder=Embedder(), normalise=same_words)
        state = await show.perform("How did sales change?")
        assert state.status == status_pb2.TASK_STATUS_WAITING_INPUT
        await show.desk.provide_input(state.task_id, "q1", "sunshine hours", caller="tester")
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert show.engine.count("parse") == 1
        assert show.engine.count("lookup") == 1
        assert state.steps[0].uid == "v1s0"

    play(scenario())


def test_a_waiting_task_expires() -> None:
    async def scenario() -> None:
        show = asking_stage()
        state = await show.perform()
        show.clock.advance(hours=2)
        assert await Sweeper(show.wiring).sweep() == 1
        state = await show.state(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_EXPIRED
        assert await Sweeper(show.wiring).sweep() == 0

    play(scenario())


async def until(condition: Any) -> None:
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to pass")


def test_a_running_task_expires_and_its_agents_are_stopped() -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": held(asyncio.Event(), None)}, PLAN)
        task_id = await show.submit()
        running = asyncio.create_task(show.run(task_id))
        await until(lambda: show.engine.count("code") == 1)
        show.clock.advance(hours=2)
        state = await running
        assert state.status == status_pb2.TASK_STATUS_EXPIRED
        assert "code" in state.error.message  # type: ignore[union-attr]
        assert show.engine.active == 0

    play(scenario())


def test_cancelling_stops_the_agents() -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": held(asyncio.Event(), None)}, PLAN)
        task_id = await show.submit()
        running = asyncio.create_task(show.run(task_id))
        await until(lambda: show.engine.count("code") == 1)
        await show.desk.cancel(task_id, reason="changed my mind", caller="tester")
        state = await running
        assert state.status == status_pb2.TASK_STATUS_CANCELLED
        assert show.engine.active == 0
        before = state.last_sequence
        assert (await show.desk.cancel(task_id, reason="again", caller="tester")).last_sequence == before

    play(scenario())


def test_a_cancel_that_comes_with_the_last_result_wins_once() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        task_id = await show.submit()

        async def cancel_meanwhile() -> Any:
            await show.desk.cancel(task_id, reason="too late?", caller="tester")
            return answer("Sales were 6.5 [Source: S1]")

        show.engine.scripts["report"] = lambda invocation: cancel_meanwhile()
        state = await show.run(task_id)
        assert state.status == status_pb2.TASK_STATUS_CANCELLED
        assert state.result is None

    play(scenario())


def test_an_orphaned_write_is_settled_from_the_record_or_by_a_person() -> None:
    async def scenario(recorded: bool) -> None:
        specs = [
            agent_spec("pay", inputs={"text": TEXT}, outputs={"receipt": TEXT}, side_effects="write"),
            agent_spec("report", inputs={"receipt": TEXT}, outputs=ANSWER),
        ]
        plan = {
            "steps": [
                {"tool": "pay", "arguments": {"text": {"request": "text"}}},
                {"tool": "report", "arguments": {"receipt": {"step": 0, "field": "receipt"}}},
            ]
        }
        stuck = held(asyncio.Event(), None)
        show = stage(specs, {"pay": stuck, "report": answer("Paid [Source: S1]")}, plan)
        task_id = await show.submit()
        running = asyncio.create_task(show.run(task_id))
        await until(lambda: show.engine.count("pay") == 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        if recorded:
            data = b'{"confidence_score":0.9,"receipt":"r1","sources":[]}'
            await show.bus.record_effect(f"{task_id}/v1s0", data)
        state = await show.run(task_id)
        assert show.engine.count("pay") == 1
        expected = status_pb2.TASK_STATUS_SUCCEEDED if recorded else status_pb2.TASK_STATUS_WAITING_REVIEW
        assert state.status == expected

    play(scenario(recorded=True))
    play(scenario(recorded=False))


def test_a_step_that_keeps_killing_the_process_is_given_up() -> None:
    async def scenario() -> None:
        show = stage(SPECS, {**SCRIPTS, "code": held(asyncio.Event(), None)}, PLAN)
        task_id = await show.submit()
        for number in range(1, 5):
            running = asyncio.create_task(show.run(task_id))
            await until(lambda number=number: show.engine.count("code") == number)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        running = asyncio.create_task(show.run(task_id))
        # The interruptions count as one failed attempt; the retry after it hangs again.
        await until(lambda: show.engine.count("code") == 5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        state = await show.state(task_id)
        assert "AGENT_CRASHED" in [note.code for note in state.failures]

    play(scenario())


def test_what_others_write_meanwhile_does_not_stop_the_task() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        task_id = await show.submit()

        async def noted_meanwhile(result: Any) -> Any:
            events = await show.bus.read(task_id)
            newer = event_pb2.Event(header=events[-1].header)
            await show.bus.append(
                task_id, [newer], expected_sequence=len(events), status=status_pb2.TASK_STATUS_RUNNING
            )
            return result

        for name in ("parse", "retrieve", "report"):
            script = SCRIPTS[name]
            show.engine.scripts[name] = lambda invocation, script=script: noted_meanwhile(
                script(invocation) if callable(script) else script
            )
        state = await show.run(task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert show.engine.named().count("parse") == 1
        assert not finished_twice(await show.events(task_id))

    play(scenario())


def test_two_runners_of_one_task_do_not_finish_a_step_twice() -> None:
    async def scenario() -> None:
        # A lease that lapsed while its holder was stuck: both go on, the log decides.
        for delay in range(6):
            show = stage(SPECS, SCRIPTS, PLAN)
            task_id = await show.submit()

            async def later(show: Stage = show, task_id: str = task_id, delay: int = delay) -> None:
                for _ in range(delay):
                    await asyncio.sleep(0)
                await show.run(task_id)

            await asyncio.gather(show.run(task_id), later())
            state = await show.state(task_id)
            assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
            kinds = await show.kinds(task_id)
            assert kinds.count("step_succeeded") == 5
            assert kinds.count("task_succeeded") == 1

    play(scenario())
