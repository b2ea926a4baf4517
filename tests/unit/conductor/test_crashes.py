"""The process dies at every write, before and after it: the task always finishes, no finished step runs twice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from agents.invocation import Invocation
from agents.spec import AgentSpec
from conductor.progress import TaskState
from podium.errors import AgentCrashed
from podium.v1 import event_pb2, status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.bus import DyingBus, Killed
from tests.fakes.clock import FakeClock
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import stage

PAY = agent_spec(
    "pay",
    inputs={"text": TEXT},
    outputs={"receipt": TEXT},
    side_effects="write",
    settings={"callable": "tests.fakes.agents:never_called", "idempotent": True},
)
REPORT = agent_spec("report", inputs={"total": {"type": "number"}, "receipt": TEXT}, outputs=ANSWER)
PAYING_PLAN: dict[str, Any] = {
    "steps": [
        *PLAN["steps"][:4],
        {"tool": "pay", "arguments": {"text": {"step": 2, "field": "unit"}}},
        {
            "tool": "report",
            "arguments": {"total": {"step": 3, "field": "total"}, "receipt": {"step": 4, "field": "receipt"}},
        },
    ]
}


def finished_twice(events: Any) -> list[str]:
    """Steps that were started after they had succeeded, or succeeded twice."""
    done: set[str] = set()
    wrong: list[str] = []
    uids: dict[int, str] = {}
    for event in events:
        kind = event.WhichOneof("payload")
        if kind == "plan_adopted":
            adopted: event_pb2.PlanAdopted = event.plan_adopted
            kept = {pair.new_index: uids[pair.old_index] for pair in adopted.kept}
            uids = {
                index: kept.get(index, f"v{adopted.version}s{index}") for index in range(len(adopted.plan.steps))
            }
        if kind in ("step_started", "step_succeeded"):
            uid = uids[event.header.step]
            if uid in done:
                wrong.append(f"{kind} {uid}")
            if kind == "step_succeeded":
                done.add(uid)
    return wrong


async def run_with_deaths(at: int, *, after_write: bool) -> tuple[TaskState, Counter[str], list[str], bool]:
    specs: list[AgentSpec] = [spec for spec in SPECS if spec.name != "report"] + [PAY, REPORT]
    payments: dict[str, str] = {}

    def pay(invocation: Invocation) -> Any:
        # Idempotent under its key, as its manifest says.
        receipt = payments.setdefault(invocation.context.idempotency_key, f"r{len(payments)}")
        return output(receipt=receipt)

    scripts = {**SCRIPTS, "pay": pay, "report": answer("Sales were 6.5, paid [Source: S1]")}
    scripts["lookup"] = [AgentCrashed("once"), output(unit="EUR")]
    bus = DyingBus(FakeClock(), at=at, after_write=after_write)
    show = stage(specs, scripts, PAYING_PLAN, bus=bus)
    task_id = await show.submit()
    died = False
    try:
        await show.run(task_id)
    except Killed:
        died = True
        await show.run(task_id)
    assert len(payments) == 1, "the write took effect once"
    calls = Counter(show.engine.named())
    return await show.state(task_id), calls, finished_twice(await show.events(task_id)), died


@pytest.mark.parametrize("after_write", [False, True])
def test_a_death_at_any_write_loses_nothing(after_write: bool) -> None:
    deaths = 0
    for at in range(1, 30):
        state, calls, twice, died = asyncio.run(run_with_deaths(at, after_write=after_write))
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, f"death at write {at}"
        assert not twice, f"death at write {at}"
        assert max(calls.values()) <= 3, calls
        if not died:
            break
        deaths += 1
    assert deaths >= 6, "the plan has at least six writes to die at"


def test_a_replanned_task_survives_a_death_at_any_write() -> None:
    async def scenario(at: int) -> bool:
        specs = [
            *SPECS,
            agent_spec("guess", inputs={"topic": TEXT}, outputs={"sum": {"type": "number"}}),
        ]
        second = {
            "steps": [
                PLAN["steps"][0],
                {"tool": "guess", "arguments": {"topic": {"step": 0, "field": "topic"}}},
                {"tool": "report", "arguments": {"total": {"step": 1, "field": "sum"}}},
            ]
        }
        scripts = {**SCRIPTS, "code": AgentCrashed("never"), "guess": output(sum=6.5)}
        show = stage(specs, scripts, PLAN, second, bus=DyingBus(FakeClock(), at=at))
        task_id = await show.submit()
        died = False
        try:
            await show.run(task_id)
        except Killed:
            died = True
            await show.run(task_id)
        state = await show.state(task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, f"death at write {at}"
        assert not finished_twice(await show.events(task_id)), f"death at write {at}"
        return died

    at = 1
    while asyncio.run(scenario(at)):
        at += 1
    assert at > 6
