"""Record a task's log for the golden tests: `python -m tests.golden.recording NAME` writes logs/NAME.json.

A recorded log is never recorded again: it stands for the tasks that are on users' disks. A new kind of event gets
a new log beside the old ones.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from agents.invocation import Invocation
from conductor.hybrid_planner import HybridPlanner
from conductor.plan import Plan
from conductor.rules_planner import RulesPlanner
from conductor.thresholds import PlanThresholds
from conductor.waiting import Sweeper
from podium.errors import AgentCrashed, DeviceOffline
from podium.v1 import event_pb2, status_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, output
from tests.fakes.planners import SurePlanner
from tests.fakes.stage import stage
from tests.unit.conductor.test_waiting import ASKING, CLARIFY, AskingPlanner, normalise

LOGS = Path(__file__).parent / "logs"
SPECS = (
    CLARIFY,
    agent_spec("parse", inputs={"text": TEXT}, outputs={"topic": TEXT}),
    agent_spec("scan", inputs={"topic": TEXT}, outputs={"page": TEXT}, engine="device", settings={}),
    agent_spec("fetch", inputs={"topic": TEXT}, outputs={"rows": {"type": "array", "items": NUMBER}}),
    agent_spec("browse", inputs={"topic": TEXT}, outputs={"found": {"type": "array", "items": NUMBER}}),
    agent_spec("decorate", inputs={"topic": TEXT}, outputs={"colour": TEXT}, critical=False),
    agent_spec("add", inputs={"rows": {"type": "array", "items": NUMBER}}, outputs={"total": NUMBER}),
    agent_spec("report", inputs={"total": NUMBER, "page": TEXT}, outputs=ANSWER),
)


def load(name: str) -> list[event_pb2.Event]:
    """A recorded log."""
    entries = json.loads((LOGS / f"{name}.json").read_text(encoding="utf-8"))
    return [ParseDict(entry, event_pb2.Event()) for entry in entries]


def plan(tool: str, field: str) -> dict[str, Any]:
    """Six steps, two of them side by side with the scan."""
    topic = {"step": 0, "field": "topic"}
    return {
        "steps": [
            {"tool": "parse", "arguments": {"text": {"request": "text"}}},
            {"tool": "scan", "arguments": {"topic": topic}},
            {"tool": tool, "arguments": {"topic": topic}},
            {"tool": "decorate", "arguments": {"topic": topic}},
            {"tool": "add", "arguments": {"rows": {"step": 2, "field": field}}},
            {
                "tool": "report",
                "arguments": {"total": {"step": 4, "field": "total"}, "page": {"step": 1, "field": "page"}},
                "depends_on": [3],
            },
        ],
        "confidence": 0.8,
    }


async def record() -> Sequence[event_pb2.Event]:
    """A task that asks, waits for its device, replans, is corrected by a person and does without one step."""
    online: set[str] = set()

    def scan(invocation: Invocation) -> Any:
        return output(page="p1") if online else DeviceOffline("device pi-1 is not connected")

    scripts = {
        "clarify": ASKING,
        "parse": output(topic="sales"),
        "scan": scan,
        "fetch": AgentCrashed("the shelf fell down"),
        "browse": output(found=[1.0, 2.0]),
        "decorate": AgentCrashed("out of paint"),
        "add": AgentCrashed("no head for numbers"),
        "report": answer("It is 3 [Source: S1]"),
    }
    planner = AskingPlanner([plan("fetch", "rows"), plan("browse", "found")])
    show = stage(SPECS, scripts, planner=planner, normalise=normalise, device_online=online.__contains__)
    state = await show.perform("Sales in the region?", device_id="pi-1", labels={"desk": "7"})
    await show.desk.provide_input(state.task_id, "q1", "east", caller="tester")
    show.clock.advance(seconds=40)
    state = await show.run(state.task_id)
    online.add("pi-1")
    show.clock.advance(seconds=20)
    await Sweeper(show.wiring).sweep()
    state = await show.run(state.task_id)
    verdict = event_pb2.ReviewResolved(
        verdict=status_pb2.REVIEW_VERDICT_CORRECTED,
        output_json=json.dumps(output(total=3.0)).encode(),
        reviewer="ada",
        note="added by hand",
    )
    show.clock.advance(minutes=3)
    await show.desk.resolve_review(state.task_id, verdict)
    state = await show.run(state.task_id)
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
    return await show.events(state.task_id)


async def record_a_persons_plan() -> Sequence[event_pb2.Event]:
    """A tenant's task that rules and the trained planner were asked about, and that a person then planned."""
    scripts = {
        "clarify": ASKING,
        "parse": output(topic="sales"),
        "add": output(total=3.0),
        "report": answer("It is 3 [Source: S1]"),
    }
    parsed: dict[str, Any] = {"tool": "parse", "arguments": {"text": {"request": "text"}}}
    told = {
        "tool": "report",
        "arguments": {"total": 3.0, "page": {"step": 0, "field": "topic"}},
        "depends_on": [0],
    }
    policy = SurePlanner(
        {"steps": [parsed, {**told, "arguments": {"total": 2.0, "page": "p"}}], "confidence": 0.55}
    )
    planner = HybridPlanner(RulesPlanner([]), policy, lambda tenant, model: PlanThresholds())
    show = stage(SPECS, scripts, planner=planner)
    state = await show.perform("How much is it?", tenant="acme")
    show.clock.advance(minutes=2)
    resolved = event_pb2.ReviewResolved(
        verdict=status_pb2.REVIEW_VERDICT_CORRECTED,
        reviewer="ada",
        note="it is three",
        plan=Plan.from_json({"steps": [parsed, told]}).to_proto(),
        answer_step=1,
    )
    await show.desk.resolve_review(state.task_id, resolved)
    state = await show.run(state.task_id)
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
    return await show.events(state.task_id)


RECORDED = {"2026-11-all-kinds": record, "2026-11-a-persons-plan": record_a_persons_plan}
"""By the log's name."""


def main(name: str) -> None:
    """Write a new log, one of `RECORDED`.

    Raises:
        FileExistsError: there is one of that name; recorded logs are kept as they are.
    """
    events = asyncio.run(RECORDED[name]())
    text = json.dumps([MessageToDict(event) for event in events], ensure_ascii=False, indent=1)
    with (LOGS / f"{name}.json").open("x", encoding="utf-8") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
