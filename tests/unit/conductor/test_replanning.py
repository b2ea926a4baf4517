"""New plans: they avoid what failed and keep what is finished."""

import asyncio
from dataclasses import replace
from typing import Any

from conductor.verify import PlanLimits
from podium.errors import AgentCrashed, LowConfidence
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, held, output
from tests.fakes.stage import FAST, stage
from tests.unit.conductor.test_recovery import play

FOUR = (
    agent_spec("read", inputs={"text": TEXT}, outputs={"topic": TEXT}),
    agent_spec("fetch", inputs={"topic": TEXT}, outputs={"rows": {"type": "array", "items": NUMBER}}),
    agent_spec("browse", inputs={"topic": TEXT}, outputs={"found": {"type": "array", "items": NUMBER}}),
    agent_spec("add", inputs={"rows": {"type": "array", "items": NUMBER}}, outputs={"total": NUMBER}),
    agent_spec("write", inputs={"total": NUMBER}, outputs=ANSWER),
)


FOUR_SCRIPTS: dict[str, Any] = {
    "read": output(topic="sales"),
    "fetch": output(rows=[1.0, 2.0]),
    "browse": output(found=[1.0, 2.0]),
    "add": output(total=3.0),
    "write": answer("It is 3 [Source: S1]"),
}


def four(tool: str, field: str) -> dict[str, Any]:
    return {
        "steps": [
            {"tool": "read", "arguments": {"text": {"request": "text"}}},
            {"tool": tool, "arguments": {"topic": {"step": 0, "field": "topic"}}},
            {"tool": "add", "arguments": {"rows": {"step": 1, "field": field}}},
            {"tool": "write", "arguments": {"total": {"step": 2, "field": "total"}}},
        ]
    }


def test_replans_around_an_agent_that_fails_for_good() -> None:
    async def scenario() -> None:
        scripts = {**FOUR_SCRIPTS, "fetch": AgentCrashed("the shelf fell down")}
        show = stage(FOUR, scripts, four("fetch", "rows"), four("browse", "found"))
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.plan_version == 2
        assert [step.agent for step in state.steps] == ["read", "browse", "add", "write"]
        assert show.engine.count("read") == 1, "step 1 is kept, not run again"
        assert show.engine.count("fetch") == 2, "one retry, then never again"
        assert [step.uid for step in state.steps] == ["v1s0", "v2s1", "v2s2", "v2s3"]
        adopted = [
            event.plan_adopted for event in await show.events(state.task_id) if event.HasField("plan_adopted")
        ]
        assert [(pair.old_index, pair.new_index) for pair in adopted[1].kept] == [(0, 0)]
        assert "AGENT_CRASHED" in adopted[1].reason

    play(scenario())


def test_replans_at_most_three_times() -> None:
    async def scenario() -> None:
        names = [f"try{letter}" for letter in "abcdef"]
        specs = [
            FOUR[0],
            *(agent_spec(name, inputs={"topic": TEXT}, outputs={name: TEXT}) for name in names),
            agent_spec("write", inputs={"text": TEXT}, outputs=ANSWER),
        ]
        plans = [
            {
                "steps": [
                    {"tool": "read", "arguments": {"text": {"request": "text"}}},
                    {"tool": name, "arguments": {"topic": {"step": 0, "field": "topic"}}},
                    {"tool": "write", "arguments": {"text": {"step": 1, "field": name}}},
                ]
            }
            for name in names
        ]
        scripts: dict[str, Any] = {name: AgentCrashed("no") for name in names}
        show = stage(specs, {**scripts, "read": output(topic="x"), "write": answer()}, *plans)
        state = await show.perform()
        assert state.plan_version == 4
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert show.engine.count("read") == 1

    play(scenario())


def test_a_revision_keeps_finished_steps_and_applies_once() -> None:
    async def scenario() -> None:
        longer = {
            "steps": [
                {"tool": "read", "arguments": {"text": {"request": "text"}}},
                {"tool": "browse", "arguments": {"topic": {"step": 0, "field": "topic"}}},
                {"tool": "fetch", "arguments": {"topic": {"step": 0, "field": "topic"}}},
                {"tool": "add", "arguments": {"rows": {"step": 2, "field": "rows"}}, "depends_on": [1]},
                {"tool": "write", "arguments": {"total": {"step": 3, "field": "total"}}},
            ]
        }
        show = stage(FOUR, FOUR_SCRIPTS, four("fetch", "rows"), revisions={"fetch": longer})
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.plan_version == 2
        assert state.planner == "revision"
        assert show.engine.named() == ["read", "fetch", "browse", "add", "write"]

    play(scenario())


def test_a_revision_that_verification_refuses_leaves_the_plan_in_force() -> None:
    async def scenario() -> None:
        bad = {"steps": [{"tool": "unheard_of", "arguments": {}}]}
        show = stage(FOUR, FOUR_SCRIPTS, four("fetch", "rows"), revisions={"fetch": bad})
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.plan_version == 1
        assert state.plans_refused == 1

    play(scenario())


def test_a_finished_step_is_kept_though_the_new_plan_orders_it_later() -> None:
    async def scenario() -> None:
        later = four("fetch", "rows")
        later["steps"].insert(1, {"tool": "browse", "arguments": {"topic": {"step": 0, "field": "topic"}}})
        later["steps"][2]["depends_on"] = [1]
        later["steps"][3]["arguments"]["rows"]["step"] = 2
        later["steps"][4]["arguments"]["total"]["step"] = 3
        show = stage(FOUR, FOUR_SCRIPTS, four("fetch", "rows"), revisions={"fetch": later})
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert show.engine.count("fetch") == 1

    play(scenario())


def test_failed_attempts_use_up_the_budget() -> None:
    async def scenario() -> None:
        scripts = {**FOUR_SCRIPTS, "fetch": AgentCrashed("the shelf fell down")}
        settings = replace(FAST, plan_limits=PlanLimits(budget=5.0))
        show = stage(FOUR, scripts, four("fetch", "rows"), four("browse", "found"), settings=settings)
        state = await show.perform()
        assert state.plans_refused == 1, "4 units for the plan and 2 for the failed attempts are more than 5"
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW

    play(scenario())


def test_a_new_plan_waits_for_the_agents_at_work_and_keeps_what_they_bring() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        def plan(tool: str) -> dict[str, Any]:
            topic = {"step": 0, "field": "topic"}
            return {
                "steps": [
                    {"tool": "read", "arguments": {"text": {"request": "text"}}},
                    {"tool": "fetch", "arguments": {"topic": topic}},
                    {"tool": tool, "arguments": {"topic": topic}},
                    {"tool": "add", "arguments": {"rows": {"step": 1, "field": "rows"}}, "depends_on": [2]},
                    {"tool": "write", "arguments": {"total": {"step": 3, "field": "total"}}},
                ]
            }

        spare = agent_spec("ask_around", inputs={"topic": TEXT}, outputs={"heard": TEXT})
        scripts = {
            **FOUR_SCRIPTS,
            "fetch": held(gate, output(rows=[1.0, 2.0])),
            "browse": LowConfidence("not sure at all"),
            "ask_around": output(heard="something"),
        }
        show = stage([*FOUR, spare], scripts, plan("browse"), plan("ask_around"))
        task_id = await show.submit()
        running = asyncio.create_task(show.run(task_id))
        for _ in range(2000):
            await asyncio.sleep(0.001)
            if (await show.state(task_id)).replan_reason:
                break
        gate.set()
        state = await running
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert show.engine.count("fetch") == 1
        assert state.steps[1].uid == "v1s1"

    play(scenario())
