"""Versions side by side: who does a step, and what happens when a version goes out of service in the middle."""

import asyncio
from typing import Any

from agents.registry import AgentRegistry
from conductor.versions import agent_of_task
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.stage import Stage, stage

PLAN = {
    "steps": [
        {"tool": "fetch"},
        {"tool": "clean", "arguments": {"text": {"step": 0, "field": "text"}}},
        {"tool": "fetch", "depends_on": [1]},
        {"tool": "report", "arguments": {"text": {"step": 2, "field": "text"}}},
    ]
}


def _specs(version: str = "1.0.0", **fields: Any) -> list[Any]:
    return [
        agent_spec("fetch", outputs={"text": TEXT}, version=version, **fields),
        agent_spec("clean", inputs={"text": TEXT}, outputs={"text": TEXT}),
        agent_spec("report", inputs={"text": TEXT}, outputs=ANSWER),
    ]


def _stage(fetch: Any, clean: Any = None) -> Stage:
    play = stage(
        _specs(),
        {"fetch": fetch, "clean": clean or output(text="clean"), "report": answer("Done [Source: S1]")},
        PLAN,
    )
    play.registry.register(agent_spec("fetch", outputs={"text": TEXT}, version="2.0.0"))
    play.registry.set_weights("fetch", {"1.0.0": 500, "2.0.0": 500})
    return play


def _fetchers(play: Stage) -> list[str]:
    return [call.spec.version for call in play.engine.calls if call.spec.name == "fetch"]


def test_a_task_keeps_the_version_it_began_with() -> None:
    async def scenario() -> None:
        seen = set()
        for _ in range(30):
            play = _stage(output(text="t"))
            state = await play.perform()
            assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
            first, second = _fetchers(play)
            assert first == second
            assert state.steps[0].agent_version == first
            seen.add(first)
        assert seen == {"1.0.0", "2.0.0"}

    asyncio.run(scenario())


def test_weights_that_change_in_the_middle_do_not_move_a_task() -> None:
    async def scenario() -> None:
        play = _stage(output(text="t"))

        def shift(_: Any) -> Any:
            other = {"1.0.0": "2.0.0", "2.0.0": "1.0.0"}[_fetchers(play)[0]]
            play.registry.set_weights("fetch", {other: 1000})
            return output(text="clean")

        play.engine.scripts["clean"] = shift
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert len(set(_fetchers(play))) == 1

    asyncio.run(scenario())


def test_a_version_disabled_while_it_runs_finishes_its_step_and_is_not_asked_again() -> None:
    async def scenario() -> None:
        play = _stage(None)

        def disabled_at_work(invocation: Any) -> Any:
            if len(_fetchers(play)) == 1:
                play.registry.set_enabled("fetch", False, version=invocation.spec.version)
            return output(text=invocation.spec.version)

        play.engine.scripts["fetch"] = disabled_at_work
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        first, second = _fetchers(play)
        assert first != second
        assert state.steps[0].output is not None
        assert state.steps[0].output.value["text"] == first
        assert not state.failures

    asyncio.run(scenario())


def test_a_name_disabled_in_the_middle_is_replanned_around() -> None:
    async def scenario() -> None:
        around = {
            "steps": [
                {"tool": "clean", "arguments": {"text": "by hand"}},
                {"tool": "report", "arguments": {"text": {"step": 0, "field": "text"}}},
            ]
        }
        play = stage(
            _specs(),
            {"fetch": output(text="t"), "clean": output(text="c"), "report": answer("Done [Source: S1]")},
            PLAN,
            around,
        )

        def disable(_: Any) -> Any:
            play.registry.set_enabled("fetch", False)
            return output(text="clean")

        play.engine.scripts["clean"] = [disable, output(text="again")]
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert len(_fetchers(play)) == 1
        assert state.plan_version == 2
        assert "fetch is out of service" in state.failures[0].code + state.plan_reason

    asyncio.run(scenario())


def test_a_failed_attempt_goes_on_with_the_other_version() -> None:
    async def scenario() -> None:
        play = _stage([RuntimeError("bang"), output(text="t")])
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        first, second, third = _fetchers(play)
        assert first != second == third

    asyncio.run(scenario())


def test_a_write_never_changes_its_version() -> None:
    async def scenario() -> None:
        writes = {"side_effects": "write", "settings": {"callable": "a:b", "idempotent": True}}
        play = stage(
            _specs(**writes),
            {
                "fetch": [RuntimeError("bang"), output(text="t")],
                "clean": output(text="c"),
                "report": answer("Done [Source: S1]"),
            },
            PLAN,
        )
        play.registry.register(agent_spec("fetch", outputs={"text": TEXT}, version="2.0.0", **writes))
        play.registry.set_weights("fetch", {"1.0.0": 500, "2.0.0": 500})
        state = await play.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert len(set(_fetchers(play))) == 1

    asyncio.run(scenario())


def test_nobody_is_nobody() -> None:
    play = _stage(output(text="t"))
    state = asyncio.run(play.perform())
    assert agent_of_task(state, AgentRegistry(), "fetch") is None


def test_a_plan_is_verified_with_the_version_that_will_do_the_work() -> None:
    async def scenario() -> None:
        outcomes = set()
        for _ in range(20):
            play = _stage(output(text="t"))
            play.registry.register(agent_spec("fetch", outputs={"words": TEXT}, version="3.0.0"))
            play.registry.set_weights("fetch", {"1.0.0": 600, "3.0.0": 400})
            state = await play.perform()
            version = play.registry.choose("fetch", state.task_id)
            assert version is not None
            outcomes.add((version.spec.version, state.status, "plan_refused" in await play.kinds(state.task_id)))
        assert outcomes == {
            ("1.0.0", status_pb2.TASK_STATUS_SUCCEEDED, False),
            ("3.0.0", status_pb2.TASK_STATUS_FAILED, True),
        }

    asyncio.run(scenario())
