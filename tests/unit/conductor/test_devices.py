"""Steps that run on the device a request came from."""

from typing import Any

from agents.invocation import Invocation
from conductor.waiting import Sweeper
from podium.errors import DeviceOffline
from podium.v1 import status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.stage import Stage, stage
from tests.unit.conductor.test_waiting import play

DEVICE_SPECS = (
    agent_spec(
        "rescan",
        inputs={"text": TEXT},
        outputs={"value": TEXT},
        engine="device",
        settings={},
    ),
    agent_spec("report", inputs={"value": TEXT}, outputs=ANSWER),
)


DEVICE_PLAN = {
    "steps": [
        {"tool": "rescan", "arguments": {"text": {"request": "text"}}},
        {"tool": "report", "arguments": {"value": {"step": 0, "field": "value"}}},
    ]
}


def device_stage() -> tuple[Stage, set[str]]:
    online: set[str] = set()

    def rescan(invocation: Invocation) -> Any:
        if invocation.context.device_id not in online:
            return DeviceOffline("device pi-1 is not connected")
        return output(value="42")

    scripts = {"rescan": rescan, "report": answer("It is 42 [Source: S1]")}
    return stage(DEVICE_SPECS, scripts, DEVICE_PLAN, device_online=online.__contains__), online


def test_waits_for_the_device_and_goes_on_when_it_is_back() -> None:
    async def scenario() -> None:
        show, online = device_stage()
        state = await show.perform(device_id="pi-1")
        assert state.status == status_pb2.TASK_STATUS_WAITING_DEVICE
        sweeper = Sweeper(show.wiring)
        assert await sweeper.sweep() == 0
        online.add("pi-1")
        assert await sweeper.sweep() == 1
        assert show.bus.row(state.task_id).status == status_pb2.TASK_STATUS_RUNNING
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED

    play(scenario())


def test_a_device_that_stays_away_goes_to_a_person() -> None:
    async def scenario() -> None:
        show, _ = device_stage()
        state = await show.perform(device_id="pi-1")
        show.clock.advance(minutes=6)
        assert await Sweeper(show.wiring).sweep() == 1
        state = await show.state(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
        assert state.reviews[0].reason.code == "DEVICE_OFFLINE"

    play(scenario())


def test_a_device_that_comes_and_goes_is_left_alone_ever_longer() -> None:
    async def scenario() -> None:
        show, online = device_stage()
        state = await show.perform(device_id="pi-1")
        task_id = state.task_id
        show.engine.scripts["rescan"] = DeviceOffline("the connection ended before the answer")
        online.add("pi-1")
        state = await show.run(task_id)
        for _ in range(20):
            await Sweeper(show.wiring).sweep()
            if show.bus.row(task_id).status == status_pb2.TASK_STATUS_RUNNING:
                state = await show.run(task_id)
        assert state.status == status_pb2.TASK_STATUS_WAITING_DEVICE
        assert show.engine.count("rescan") == 2, "without time passing it is tried once more, not for ever"
        show.clock.advance(seconds=3)
        await Sweeper(show.wiring).sweep()
        await show.run(task_id)
        assert show.engine.count("rescan") == 3

    play(scenario())


def test_a_step_that_is_not_critical_is_left_out_when_its_device_stays_away() -> None:
    async def scenario() -> None:
        specs = [
            agent_spec(
                "rescan",
                inputs={"text": TEXT},
                outputs={"value": TEXT},
                engine="device",
                settings={},
                critical=False,
            ),
            agent_spec("report", inputs={"value": TEXT}, required=[], outputs=ANSWER),
        ]
        scripts = {"rescan": DeviceOffline("gone"), "report": answer("Unknown [Source: S1]")}
        show = stage(specs, scripts, DEVICE_PLAN)
        state = await show.perform(device_id="pi-1")
        show.clock.advance(minutes=6)
        await Sweeper(show.wiring).sweep()
        state = await show.run(state.task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.result is not None
        assert "stayed away" in state.result.degraded[0]

    play(scenario())


def test_a_device_step_without_a_device_uses_its_stand_in() -> None:
    async def scenario() -> None:
        specs = [
            agent_spec(
                "rescan",
                inputs={"text": TEXT},
                outputs={"value": TEXT},
                engine="device",
                settings={"fallback": "reread"},
            ),
            agent_spec("reread", inputs={"text": TEXT}, outputs={"value": TEXT}),
            DEVICE_SPECS[1],
        ]
        scripts = {"reread": output(value="41"), "report": answer("It is 41 [Source: S1]")}
        state = await stage(specs, scripts, DEVICE_PLAN).perform()
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert state.steps[0].agent == "reread"

    play(scenario())
