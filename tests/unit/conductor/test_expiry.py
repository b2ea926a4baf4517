"""A permission that expired while the task stood still is asked for anew; everything else is kept."""

from datetime import timedelta
from typing import Any

from agents.invocation import Invocation
from podium.errors import CapabilityDenied, CapabilityExpired
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.stage import Stage, stage
from tests.unit.conductor.test_recovery import play

SPECS = [
    agent_spec("parse", inputs={"text": TEXT}, outputs={"topic": TEXT}),
    agent_spec("permit", inputs={"topic": TEXT}, outputs={"token": TEXT, "expires": TEXT}),
    agent_spec("execute", inputs={"token": TEXT}, outputs={"found": TEXT}),
    agent_spec("report", inputs={"found": TEXT}, outputs=ANSWER),
]
PLAN = {
    "steps": [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {"tool": "permit", "arguments": {"topic": {"step": 0, "field": "topic"}}},
        {"tool": "execute", "arguments": {"token": {"step": 1, "field": "token"}}},
        {"tool": "report", "arguments": {"found": {"step": 2, "field": "found"}}},
    ]
}


def expiring(*, good: int) -> Stage:
    """A stage on which the first tokens have expired when they are used; the one after `good` of them is fresh."""

    def permit(invocation: Invocation) -> Any:
        count = show.engine.count("permit")
        lasts = timedelta(minutes=15) if count > good else timedelta(seconds=-1)
        return output(token=f"t{count}", expires=(show.clock() + lasts).isoformat())

    def execute(invocation: Invocation) -> Any:
        if invocation.inputs["token"] != f"t{good + 1}":
            return CapabilityExpired("the capability token has expired")
        return output(found="ten")

    scripts = {
        "parse": output(topic="sales"),
        "permit": permit,
        "execute": execute,
        "report": answer("Ten [Source: S1]"),
    }
    show = stage(SPECS, scripts, PLAN)
    return show


def test_only_the_step_that_permits_is_done_again() -> None:
    async def scenario() -> None:
        show = expiring(good=1)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert (state.plan_version, state.avoid) == (2, frozenset())
        assert [step.uid for step in state.steps] == ["v1s0", "v2s1", "v2s2", "v2s3"]
        assert [show.engine.count(name) for name in ("parse", "permit", "execute")] == [1, 2, 2]

    play(scenario())


def test_it_is_asked_for_three_times_and_not_for_ever() -> None:
    async def scenario() -> None:
        show = expiring(good=99)
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert state.error is not None
        assert state.error.code == "CAPABILITY_EXPIRED"
        assert show.engine.count("permit") == 4

    play(scenario())


def test_a_token_that_never_was_good_is_not_worked_around() -> None:
    async def scenario() -> None:
        show = expiring(good=0)
        show.engine.scripts["execute"] = CapabilityDenied("the capability token is for another statement")
        state = await show.perform()
        assert state.status == status_pb2.TASK_STATUS_FAILED
        assert show.engine.count("permit") == 1

    play(scenario())
