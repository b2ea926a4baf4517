"""Properties of the fold, the scheduler and whole runs, on random plans and random luck."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from conductor.plan import Plan, Step
from conductor.progress import StepProgress, TaskState
from conductor.scheduler import ancestors, chain_lengths, ready
from conductor.state import fold
from conductor.verify import find_cycle
from podium.errors import AgentCrashed, DataCorrupt
from podium.v1 import event_pb2, result_pb2, status_pb2
from tests.fakes.agents import ANSWER, TEXT, agent_spec, answer, output
from tests.fakes.bus import DyingBus, Killed
from tests.fakes.clock import FakeClock
from tests.fakes.stage import stage
from tests.unit.conductor.test_crashes import finished_twice

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@st.composite
def plans(draw: st.DrawFn, max_steps: int = 9) -> Plan:
    """Acyclic plans; every step depends on some of those before it."""
    size = draw(st.integers(1, max_steps))
    steps = [
        Step(
            tool=f"tool_{index}",
            depends_on=tuple(sorted(draw(st.sets(st.integers(0, index - 1), max_size=3)))) if index else (),
        )
        for index in range(size)
    ]
    return Plan.of(steps, 1.0)


def fresh(plan: Plan) -> list[StepProgress]:
    return [StepProgress(uid=f"v1s{index}", index=index, tool=step.tool) for index, step in enumerate(plan.steps)]


def with_status(step: StepProgress, status: status_pb2.StepStatus.ValueType) -> StepProgress:
    return StepProgress(uid=step.uid, index=step.index, tool=step.tool, status=status)


@given(plans(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_schedule_respects_dependencies_and_ends(plan: Plan, limit: int, luck: random.Random) -> None:
    steps = fresh(plan)
    started: list[int] = []
    running: list[int] = []
    while True:
        able = ready(plan, steps, max_parallel=limit, now=NOW)
        for step in able:
            assert all(steps[before].finished for before in plan.steps[step.index].depends_on)
            started.append(step.index)
            running.append(step.index)
            steps[step.index] = with_status(step, status_pb2.STEP_STATUS_RUNNING)
        assert len(running) <= limit
        free = [
            index
            for index, step in enumerate(steps)
            if step.status == status_pb2.STEP_STATUS_PENDING
            and all(steps[before].finished for before in plan.steps[index].depends_on)
        ]
        assert not free or len(running) == limit, "whatever can run, runs"
        if not running:
            break
        index = running.pop(luck.randrange(len(running)))
        steps[index] = with_status(steps[index], status_pb2.STEP_STATUS_SUCCEEDED)
    assert sorted(started) == list(range(len(plan.steps))), "every step runs exactly once"


@given(plans())
def test_groups_chains_and_ancestors_agree(plan: Plan) -> None:
    place = {index: number for number, group in enumerate(plan.parallel_groups) for index in group}
    lengths = chain_lengths(plan)
    for index, step in enumerate(plan.steps):
        for before in step.depends_on:
            assert place[before] < place[index]
            assert lengths[before] > lengths[index]
            assert before in ancestors(plan, index)
    assert find_cycle(plan) == ()


@given(st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_a_cycle_is_found_exactly_when_there_is_one(edges: list[set[int]]) -> None:
    steps = [
        Step(tool="t", depends_on=tuple(sorted(item for item in before if item < len(edges) and item != index)))
        for index, before in enumerate(edges)
    ]
    plan = Plan.of(steps, 1.0)
    cycle = find_cycle(plan)
    cyclic = any(index in ancestors(plan, index) for index in range(len(steps)))
    assert bool(cycle) == cyclic
    for place, index in enumerate(cycle):
        assert cycle[(place + 1) % len(cycle)] in steps[index].depends_on


def event_strategy() -> st.SearchStrategy[event_pb2.Event]:
    index = st.integers(0, 4)
    recovery = st.sampled_from(status_pb2.Recovery.values())
    payloads = st.one_of(
        st.builds(
            lambda: {"task_accepted": event_pb2.TaskAccepted(request_id="r", text="t")},
        ),
        st.just({"request_normalized": event_pb2.RequestNormalized(request_json=b"{}")}),
        st.builds(
            lambda size, version: {
                "plan_adopted": event_pb2.PlanAdopted(
                    plan=Plan.of([Step(tool=f"t{n}") for n in range(size)], 1.0).to_proto(), version=version
                )
            },
            st.integers(1, 4),
            st.integers(1, 4),
        ),
        st.builds(
            lambda attempt: {"step_started": event_pb2.StepStarted(agent="a", attempt=attempt, input_json=b"{}")},
            st.integers(1, 3),
        ),
        st.just({"step_succeeded": event_pb2.StepSucceeded(output_json=b"{}", confidence=0.5)}),
        st.builds(
            lambda what: {
                "step_failed": event_pb2.StepFailed(error=result_pb2.ErrorDetail(code="X"), recovery=what)
            },
            recovery,
        ),
        st.just({"step_skipped": event_pb2.StepSkipped(reason="x")}),
        st.just({"device_awaited": event_pb2.DeviceAwaited(device_id="d", deadline=Timestamp(seconds=1))}),
        st.just({"device_returned": event_pb2.DeviceReturned(device_id="d")}),
        st.just({"question_asked": event_pb2.QuestionAsked(question=event_pb2.Question(question_id="q1"))}),
        st.just({"input_provided": event_pb2.InputProvided(question_id="q1", answer="a")}),
        st.just({"review_requested": event_pb2.ReviewRequested(level=2)}),
        st.builds(
            lambda verdict: {"review_resolved": event_pb2.ReviewResolved(verdict=verdict, output_json=b"{}")},
            st.sampled_from(status_pb2.ReviewVerdict.values()),
        ),
        st.just({"task_succeeded": event_pb2.TaskSucceeded()}),
        st.just({"task_failed": event_pb2.TaskFailed()}),
        st.just({"task_cancelled": event_pb2.TaskCancelled()}),
        st.just({"task_expired": event_pb2.TaskExpired()}),
        st.just({}),
    )

    def build(payload: dict[str, Any], step: int | None) -> event_pb2.Event:
        event = event_pb2.Event(header=event_pb2.EventHeader(task_id="t", time=Timestamp(seconds=1)), **payload)
        if step is not None:
            event.header.step = step
        return event

    return st.builds(build, payloads, st.one_of(st.none(), index))


@settings(max_examples=300)
@given(st.lists(event_strategy(), max_size=25))
def test_any_sequence_folds_or_is_refused_as_corrupt(events: list[event_pb2.Event]) -> None:
    first = event_pb2.Event(
        header=event_pb2.EventHeader(task_id="t", time=Timestamp(seconds=1)),
        task_accepted=event_pb2.TaskAccepted(request_id="r"),
    )
    log = [first, *events]
    for number, event in enumerate(log, start=1):
        event.header.sequence = number
    try:
        state = fold(log)
    except DataCorrupt:
        return
    assert state.last_sequence == len(log)
    assert state.status != status_pb2.TASK_STATUS_UNSPECIFIED
    for cut in range(len(log)):
        halfway = fold(log[:cut])
        assert fold(log[cut:], halfway) == state, "folding in two goes gives the same state"
    assert all(step.index == place for place, step in enumerate(state.steps))


def test_a_gap_is_refused() -> None:
    event = event_pb2.Event(header=event_pb2.EventHeader(task_id="t", sequence=2))
    try:
        fold([event], TaskState())
    except DataCorrupt:
        return
    raise AssertionError("a log that begins with event 2 was folded")


@settings(max_examples=60, deadline=timedelta(seconds=5))
@given(plans(max_steps=6), st.randoms(use_true_random=False), st.integers(0, 12))
def test_random_plans_with_random_luck_finish_with_every_step_once(
    plan: Plan, luck: random.Random, death: int
) -> None:
    async def scenario() -> None:
        last = len(plan.steps)
        names = [f"agent_{index}" for index in range(last)]
        specs = [
            agent_spec(name, inputs={}, outputs={"value": TEXT}, sla={"timeout": 5, "retries": 2})
            for name in names
        ]
        specs.append(agent_spec("report", inputs={}, outputs=ANSWER))
        steps = [
            {"tool": names[index], "arguments": {}, "depends_on": list(step.depends_on)}
            for index, step in enumerate(plan.steps)
        ]
        steps.append({"tool": "report", "arguments": {}, "depends_on": list(range(last))})
        scripts: dict[str, Any] = {
            name: [AgentCrashed("bad luck")] * luck.randrange(3) + [output(value=name)] for name in names
        }
        scripts["report"] = answer()
        show = stage(specs, scripts, {"steps": steps}, bus=DyingBus(FakeClock(), at=death))
        task_id = await show.submit()
        try:
            await show.run(task_id)
        except Killed:
            await show.run(task_id)
        state = await show.state(task_id)
        assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
        assert not finished_twice(await show.events(task_id))
        done: set[str] = set()
        for event in await show.events(task_id):
            if event.HasField("step_started"):
                assert {f"v1s{item}" for item in state.plan.steps[event.header.step].depends_on} <= done  # type: ignore[union-attr]
            elif event.HasField("step_succeeded"):
                done.add(f"v1s{event.header.step}")

    asyncio.run(scenario())
