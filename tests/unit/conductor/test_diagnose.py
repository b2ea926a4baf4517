"""Planted faults of many kinds, run through the real runner: the first wrong step is named."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.invocation import AgentContext
from agents.spec import AgentSpec
from conductor.diagnose import Diagnosis, diagnose
from podium.errors import AgentCrashed, CapabilityDenied, DeviceOffline, InputContractBroken
from podium.v1 import event_pb2
from tests.fakes.agents import ANSWER, NUMBER, TEXT, agent_spec, answer, held, output
from tests.fakes.stage import stage

ROWS = {"type": "array", "items": NUMBER}


def recomputed(inputs: Mapping[str, Any], result: Mapping[str, Any], context: AgentContext) -> list[str]:
    """A golden validator of `check`: the total it was given must be the sum of the rows."""
    total = sum(inputs["rows"])
    given = inputs["total"]
    return (
        [] if abs(total - given) < 1e-9 else [f"total {given:g} differs from {total:g}, recomputed from the rows"]
    )


def specs() -> dict[str, AgentSpec]:
    found = [
        agent_spec("parse", inputs={"text": TEXT}, outputs={"topic": TEXT, "unit": TEXT}),
        agent_spec(
            "retrieve",
            inputs={"topic": TEXT},
            outputs={"rows": ROWS, "row_count": {"type": "integer"}},
            validators=[
                {"name": "not_negative", "cel": "output.rows.all(row, row >= 0.0)", "message": "a row is negative"}
            ],
            confidence_gate=0.3,
        ),
        agent_spec("lookup", inputs={"topic": TEXT, "unit": TEXT}, outputs={"unit": TEXT}),
        agent_spec("code", inputs={"rows": ROWS, "unit": TEXT}, outputs={"total": NUMBER}),
        agent_spec("secure", inputs={"total": NUMBER}, outputs={"token": TEXT}, tags=["capability"]),
        agent_spec(
            "check",
            inputs={"rows": ROWS, "total": NUMBER, "token": TEXT},
            outputs={"agrees": {"type": "boolean"}, "contradictions": {"type": "array", "items": TEXT}},
            requires=["capability"],
            tags=["check"],
            validators=[{"name": "recomputation", "python": "tests.unit.conductor.test_diagnose:recomputed"}],
        ),
        agent_spec("report", inputs={"total": NUMBER, "agrees": {"type": "boolean"}}, outputs=ANSWER),
    ]
    return {spec.name: spec for spec in found}


SCRIPTS: dict[str, Any] = {
    "parse": output(topic="sales", unit="EUR"),
    "retrieve": output(rows=[1.5, 2.0, 3.0], row_count=3),
    "lookup": output(unit="EUR"),
    "code": output(total=6.5),
    "secure": output(token="t1"),
    "check": output(agrees=True, contradictions=[]),
    "report": answer("Sales were 6.5 EUR [Source: S1]"),
}


def steps() -> list[dict[str, Any]]:
    return [
        {"tool": "parse", "arguments": {"text": {"request": "text"}}},
        {"tool": "retrieve", "arguments": {"topic": {"step": 0, "field": "topic"}}},
        {
            "tool": "lookup",
            "arguments": {"topic": {"step": 0, "field": "topic"}, "unit": {"step": 0, "field": "unit"}},
        },
        {
            "tool": "code",
            "arguments": {"rows": {"step": 1, "field": "rows"}, "unit": {"step": 2, "field": "unit"}},
        },
        {"tool": "secure", "arguments": {"total": {"step": 3, "field": "total"}}},
        {
            "tool": "check",
            "arguments": {
                "rows": {"step": 1, "field": "rows"},
                "total": {"step": 3, "field": "total"},
                "token": {"step": 4, "field": "token"},
            },
        },
        {
            "tool": "report",
            "arguments": {"total": {"step": 3, "field": "total"}, "agrees": {"step": 5, "field": "agrees"}},
        },
    ]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One planted fault and the step that a diagnosis must name."""

    name: str
    guilty: str
    scripts: Mapping[str, Any] = field(default_factory=dict)
    specs: Mapping[str, AgentSpec] = field(default_factory=dict)
    mend: Callable[[list[dict[str, Any]]], None] | None = None
    """Changes the plan."""
    spoil: Callable[[list[event_pb2.Event]], list[event_pb2.Event]] | None = None
    """Changes the log."""
    late: bool = False
    """A step after the guilty one reported it."""
    wiring: Mapping[str, Any] = field(default_factory=dict)
    submit: Mapping[str, Any] = field(default_factory=dict)
    expire: bool = False


def swapped(events: list[event_pb2.Event]) -> list[event_pb2.Event]:
    place = next(n for n, event in enumerate(events) if event.HasField("step_started") and event.header.step == 3)
    events[place], events[place + 1] = events[place + 1], events[place]
    return events


def repeated(events: list[event_pb2.Event]) -> list[event_pb2.Event]:
    place = next(
        n for n, event in enumerate(events) if event.HasField("step_succeeded") and event.header.step == 3
    )
    again = event_pb2.Event()
    again.CopyFrom(events[place])
    events.insert(place + 1, again)
    for number, event in enumerate(events, start=1):
        event.header.sequence = number
    return events


def cyclic(plan: list[dict[str, Any]]) -> None:
    plan[1]["depends_on"] = [3]


def without_secure(plan: list[dict[str, Any]]) -> None:
    plan[5]["arguments"]["token"] = "made up"


def wrong_field(plan: list[dict[str, Any]]) -> None:
    plan[3]["arguments"]["unit"] = {"step": 2, "field": "currency"}


def wrong_type(plan: list[dict[str, Any]]) -> None:
    plan[3]["arguments"]["rows"] = {"step": 2, "field": "unit"}


class Weather:
    """Two meanings: sales and everything else."""

    def similarities(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        return [
            [float(("sales" in text.lower()) == ("sales" in other.lower())) for other in others] for text in texts
        ]


def changed(name: str, **fields: Any) -> dict[str, AgentSpec]:
    spec = specs()[name]
    return {name: AgentSpec.model_validate({**spec.model_dump(), **fields})}


def denied(invocation: Any) -> Any:
    if invocation.inputs["token"] == "expired":
        return CapabilityDenied("the capability token has expired")
    return output(agrees=True, contradictions=[])


def refuses(message: str, when: Callable[[Mapping[str, Any]], bool]) -> Any:
    def behave(invocation: Any) -> Any:
        return AgentCrashed(message) if when(invocation.inputs) else output(total=6.5)

    return behave


FAULTS = [
    Fault(name="wrong value, passed on", guilty="code", scripts={"code": output(total=999.0)}, late=True),
    Fault(name="wrong type", guilty="retrieve", scripts={"retrieve": output(rows="many", row_count=3)}),
    Fault(name="prose instead of JSON", guilty="code", scripts={"code": "The total is six and a half."}),
    Fault(
        name="timeout",
        guilty="code",
        scripts={"code": held(asyncio.Event(), None)},
        specs=changed("code", sla={"timeout": 0.02, "retries": 0}),
    ),
    Fault(name="crash", guilty="lookup", scripts={"lookup": AgentCrashed("out of memory")}),
    Fault(
        name="low confidence",
        guilty="retrieve",
        scripts={"retrieve": output(0.1, rows=[1.5, 2.0, 3.0], row_count=3)},
    ),
    Fault(
        name="missing source",
        guilty="report",
        scripts={"report": {**answer("Sales were 6.5 EUR"), "sources": []}},
    ),
    Fault(
        name="golden validator",
        guilty="retrieve",
        scripts={"retrieve": output(rows=[1.5, -2.0, 3.0], row_count=3)},
    ),
    Fault(
        name="query contradicted by recomputation",
        guilty="code",
        scripts={
            "code": output(total=7.5),
            "check": output(agrees=False, contradictions=["reported 7.5, recomputed 6.5"]),
            "report": InputContractBroken("the results are contradicted", evidence=["agrees is false"]),
        },
        specs=changed("check", validators=()),
        late=True,
    ),
    Fault(
        name="device offline",
        guilty="lookup",
        scripts={"lookup": DeviceOffline("device pi-1 is not connected")},
        submit={"device_id": "pi-1"},
    ),
    Fault(name="cycle in the plan", guilty="retrieve", mend=cyclic),
    Fault(name="missing capability", guilty="check", mend=without_secure),
    Fault(
        name="expired token",
        guilty="secure",
        scripts={"secure": output(token="expired"), "check": denied},
        late=True,
    ),
    Fault(
        name="drift from the request",
        guilty="parse",
        scripts={"parse": output(topic="sunshine", unit="EUR")},
        specs=changed("retrieve", anchor_fields=("topic",)),
        wiring={"embedder": Weather()},
        late=True,
    ),
    Fault(name="events out of order", guilty="code", spoil=swapped),
    Fault(name="NaN", guilty="code", scripts={"code": {**output(), "total": float("nan")}}),
    Fault(
        name="wrong unit",
        guilty="lookup",
        scripts={"lookup": output(unit="kEUR"), "code": AgentCrashed("cannot add 'kEUR' to 'EUR'")},
        late=True,
    ),
    Fault(
        name="wrong value, handed on twice",
        guilty="parse",
        scripts={
            "parse": output(topic="sales", unit="kEUR"),
            "lookup": output(unit="kEUR"),
            "code": AgentCrashed("cannot add 'kEUR' to 'EUR'"),
        },
        late=True,
    ),
    Fault(name="truncated JSON", guilty="code", scripts={"code": '{"total": 6.5, "confidence_sc'}),
    Fault(
        name="truncated rows",
        guilty="retrieve",
        scripts={
            "retrieve": output(rows=[1.5], row_count=3),
            "code": output(total=6.5),
        },
        late=True,
    ),
    Fault(name="step finished twice", guilty="code", spoil=repeated),
    Fault(
        name="permission",
        guilty="secure",
        specs=changed("secure", permission="operator"),
    ),
    Fault(
        name="nothing found",
        guilty="retrieve",
        scripts={
            "retrieve": output(rows=[], row_count=0),
            "code": AgentCrashed("there is nothing to add up"),
        },
        late=True,
    ),
    Fault(name="plan names a field that there is not", guilty="code", mend=wrong_field),
    Fault(name="plan joins fields of other types", guilty="code", mend=wrong_type),
    Fault(
        name="one slow step",
        guilty="lookup",
        scripts={"lookup": held(asyncio.Event(), None)},
        specs=changed("lookup", sla={"timeout": 7200, "retries": 0}),
        expire=True,
    ),
]


async def perform(fault: Fault) -> tuple[Diagnosis, list[event_pb2.Event]]:
    plan = steps()
    if fault.mend is not None:
        fault.mend(plan)
    agents = {**specs(), **fault.specs}
    show = stage(list(agents.values()), {**SCRIPTS, **fault.scripts}, {"steps": plan}, **fault.wiring)
    task_id = await show.submit("How did sales change?", **fault.submit)
    running = asyncio.create_task(show.run(task_id))
    if fault.expire:
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if show.engine.count("lookup"):
                break
        show.clock.advance(hours=2)
    await running
    events = list(await show.events(task_id))
    if fault.spoil is not None:
        events = fault.spoil(events)
    return diagnose(events, show.registry), events


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(scenario, 20))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_first_wrong_step_is_named(fault: Fault) -> None:
    found, _ = run(perform(fault))
    assert found.found
    assert found.agent == fault.guilty, found.explanation
    assert found.evidence
    assert found.time is not None
    assert found.code
    if fault.late:
        assert found.reported_by, "another step reported it"


def test_at_least_18_of_20_kinds_are_named() -> None:
    named = sum(run(perform(fault))[0].agent == fault.guilty for fault in FAULTS)
    assert len(FAULTS) >= 20
    assert named / len(FAULTS) >= 18 / 20


def test_a_task_that_went_well_has_no_wrong_step() -> None:
    found, _ = run(perform(Fault(name="none", guilty="")))
    assert not found.found
    assert found.explanation == "nothing went wrong"
