"""A whole conductor on fakes: bus, clock, scripted agents, a planner with fixed plans."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from agents.registry import AgentRegistry
from agents.spec import AgentSpec
from conductor.desk import TaskDesk
from conductor.errors import NoPlan
from conductor.failure import FailurePolicy
from conductor.journal import timestamp_of
from conductor.plan import Plan
from conductor.planner import FinishedStep, Proposal, Situation
from conductor.progress import TaskState
from conductor.runner import TaskRunner
from conductor.state import fold
from conductor.wiring import RunnerSettings, Wiring
from podium.v1 import event_pb2
from tests.fakes.agents import ScriptedEngine, registry_of
from tests.fakes.bus import MemoryBus
from tests.fakes.clock import FakeClock

FAST = RunnerSettings(
    failure_policy=FailurePolicy(retry_delay=timedelta(0), device_wait=timedelta(minutes=5)),
    poll_interval=timedelta(milliseconds=5),
    timeout_grace=timedelta(0),
)


@dataclass
class FixedPlanner:
    """Proposes the first of its plans that does without the agents to avoid."""

    plans: Sequence[Mapping[str, Any]]
    revisions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By tool: the plan that its output asks for."""
    asked: int = 0

    async def propose(self, situation: Situation) -> Proposal:
        self.asked += 1
        for number, template in enumerate(self.plans):
            plan = Plan.from_json(template)
            if not situation.avoid & {step.tool for step in plan.steps}:
                answer = template.get("answer", len(plan.steps) - 1)
                return Proposal(plan=plan, answer=answer, planner="rules", origin=f"plan{number}")
        raise NoPlan("no plan is left")

    async def revise(
        self, situation: Situation, finished: FinishedStep, *, origins_used: frozenset[str]
    ) -> Proposal | None:
        template = self.revisions.get(finished.tool)
        if template is None or f"revision/{finished.tool}" in origins_used:
            return None
        plan = Plan.from_json(template)
        return Proposal(
            plan=plan,
            answer=len(plan.steps) - 1,
            planner="revision",
            origin=finished.tool,
            reason=f"{finished.tool} changed the plan",
        )


@dataclass
class Stage:
    """Everything one test needs; build it with `stage`."""

    wiring: Wiring
    bus: MemoryBus
    clock: FakeClock
    engine: ScriptedEngine
    planner: FixedPlanner
    desk: TaskDesk

    @property
    def registry(self) -> AgentRegistry:
        return self.wiring.registry

    async def submit(self, text: str = "How did sales change?", **fields: Any) -> str:
        """Hand in a task with an hour to run."""
        task_id = f"task-{uuid.uuid4().hex[:12]}"
        fields.setdefault("request_id", str(uuid.uuid4()))
        fields.setdefault("caller", "tester")
        payload = event_pb2.TaskAccepted(text=text, **fields)
        if not payload.HasField("expire_time"):
            payload.expire_time.CopyFrom(timestamp_of(self.clock() + timedelta(hours=1)))
        await self.desk.accept(task_id, payload, trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
        return task_id

    async def run(self, task_id: str) -> TaskState:
        """Run the task with a fresh runner, as after a restart."""
        await TaskRunner(self.wiring).run(task_id)
        return await self.state(task_id)

    async def perform(self, text: str = "How did sales change?", **fields: Any) -> TaskState:
        """Hand in a task and run it."""
        return await self.run(await self.submit(text, **fields))

    async def state(self, task_id: str) -> TaskState:
        return fold(await self.bus.read(task_id))

    async def events(self, task_id: str) -> Sequence[event_pb2.Event]:
        return await self.bus.read(task_id)

    async def kinds(self, task_id: str) -> list[str]:
        """Payload kinds of the task's log, in order."""
        return [event.WhichOneof("payload") or "" for event in await self.bus.read(task_id)]

    def rewired(self, **changes: Any) -> "Stage":
        """The same stage with other parts in its wiring."""
        return replace(self, wiring=replace(self.wiring, **changes))


def stage(
    specs: Sequence[AgentSpec],
    scripts: Mapping[str, Any],
    *plans: Mapping[str, Any],
    revisions: Mapping[str, Mapping[str, Any]] | None = None,
    bus: MemoryBus | None = None,
    **wiring: Any,
) -> Stage:
    """A conductor over scripted agents and fixed plans (JSON form, `answer` beside `steps` if not the last)."""
    clock = FakeClock()
    if bus is not None:
        clock = bus._clock  # type: ignore[assignment]  # the stage and its bus share one clock
    bus = bus or MemoryBus(clock)
    engine = ScriptedEngine(dict(scripts))
    planner = FixedPlanner(plans, revisions or {})
    registry = registry_of(*specs)
    wiring.setdefault("settings", FAST)
    wired = Wiring(
        bus=bus,
        registry=registry,
        engines={"python": engine, "device": engine},
        clock=clock,
        **{"planner": planner, **wiring},
    )
    return Stage(
        wiring=wired,
        bus=bus,
        clock=clock,
        engine=engine,
        planner=planner,
        desk=TaskDesk(bus, registry, clock),
    )
