"""Write effects happen once: never blindly redone, always under one key."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from conductor.failure import FailurePolicy
from podium.errors import AgentCrashed, LowConfidence
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.stage import FAST, stage
from tests.unit.conductor.test_recovery import play


def write_specs(**settings: Any) -> list[Any]:
    return [
        agent_spec("parse", inputs={"text": TEXT}, outputs={"topic": TEXT}),
        agent_spec(
            "pay",
            inputs={"topic": TEXT},
            outputs={"receipt": TEXT},
            side_effects="write",
            settings={"callable": "tests.fakes.agents:never_called", **settings},
        ),
        agent_spec("report", inputs={"receipt": TEXT}, outputs=ANSWER),
    ]


WRITE_PLAN = {
    "steps": [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {"tool": "pay", "arguments": {"topic": {"step": 0, "field": "topic"}}},
        {"tool": "report", "arguments": {"receipt": {"step": 1, "field": "receipt"}}},
    ]
}


def test_a_write_that_may_have_happened_is_not_redone() -> None:
    async def scenario() -> None:
        scripts = {
            "parse": output(topic="rent"),
            "pay": AgentCrashed("the line went dead"),
            "report": answer(),
        }
        show = stage(write_specs(), scripts, WRITE_PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert show.engine.count("pay") == 1

    play(scenario())


def test_an_idempotent_write_is_asked_again_under_the_same_key() -> None:
    async def scenario() -> None:
        scripts = {
            "parse": output(topic="rent"),
            "pay": [AgentCrashed("the line went dead"), output(receipt="r1")],
            "report": answer("Paid [Source: S1]"),
        }
        show = stage(write_specs(idempotent=True), scripts, WRITE_PLAN)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        keys = {call.context.idempotency_key for call in show.engine.calls if call.spec.name == "pay"}
        assert keys == {f"{state.task_id}/v1s1"}
        assert set(show.bus.effects) == keys

    play(scenario())


def test_a_recorded_write_is_taken_from_the_record() -> None:
    async def scenario() -> None:
        scripts = {
            "parse": output(topic="rent"),
            "pay": output(receipt="r2"),
            "report": answer("Paid [Source: S1]"),
        }
        show = stage(write_specs(), scripts, WRITE_PLAN)
        task_id = await show.submit()
        recorded = json.dumps(output(receipt="r1")).encode()
        await show.bus.record_effect(f"{task_id}/v1s1", recorded)
        state = await show.run(task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.steps[1].output is not None
        assert state.steps[1].output.value["receipt"] == "r1"
        assert show.engine.count("pay") == 0

    play(scenario())


def test_a_write_that_waits_for_its_retry_keeps_its_key_under_a_new_plan() -> None:
    async def scenario() -> None:
        def plan(tool: str) -> dict[str, Any]:
            topic = {"step": 0, "field": "topic"}
            return {
                "steps": [
                    {"tool": "parse", "arguments": {"text": {"request": "text"}}},
                    {"tool": "pay", "arguments": {"topic": topic}},
                    {"tool": tool, "arguments": {"topic": topic}},
                    {
                        "tool": "report",
                        "arguments": {"receipt": {"step": 1, "field": "receipt"}},
                        "depends_on": [2],
                    },
                ]
            }

        others = [agent_spec(name, inputs={"topic": TEXT}, outputs={name: TEXT}) for name in ("fetch", "browse")]
        scripts = {
            "parse": output(topic="rent"),
            "pay": [AgentCrashed("the line went dead"), output(receipt="r1")],
            "fetch": LowConfidence("not sure at all"),
            "browse": output(browse="x"),
            "report": answer("Paid [Source: S1]"),
        }
        slowly = replace(FAST, failure_policy=FailurePolicy(retry_delay=timedelta(seconds=5)))
        specs = [*write_specs(idempotent=True), *others]
        show = stage(specs, scripts, plan("fetch"), plan("browse"), settings=slowly)
        task_id = await show.submit()
        running = asyncio.create_task(show.run(task_id))
        for _ in range(2000):
            await asyncio.sleep(0.001)
            if show.engine.count("browse"):
                break
        assert show.engine.count("pay") == 1
        show.clock.advance(seconds=6)
        state = await running
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        keys = {call.context.idempotency_key for call in show.engine.calls if call.spec.name == "pay"}
        assert keys == {f"{task_id}/v1s1"}

    play(scenario())
