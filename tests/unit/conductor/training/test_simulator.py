"""The simulator: verdicts of steps, and the better decision that follows from what was seen."""

import random

import pytest

from conductor.policy.cards import ToolCard
from conductor.policy.selecting import VERDICTS
from conductor.training.examples import Example, GoldStep
from conductor.training.feedback import share_failing
from conductor.training.simulator import BROKEN, CHANGES, Outcome, World, better, changed, run, simulate
from conductor.training.stand_ins import stand_in

NAMES = ("search_flights", "book_flight", "send_email", "check_weather", "book_hotel", "query_balance")
TOOLS = tuple(ToolCard(name=name, description=f"A tool to {name.replace('_', ' ')}") for name in NAMES)
GOLD = (
    GoldStep(tool="search_flights"),
    GoldStep(tool="book_flight", arguments={"flight": {"step": 0, "field": "id"}}, depends_on=(0,)),
    GoldStep(tool="send_email", depends_on=(1,)),
)
EXAMPLE = Example(source="made", id="1", request="Book me a flight and mail it.", tools=TOOLS, steps=GOLD)
WORLD = World(tools=TOOLS)


def seen(outcomes: tuple[Outcome, ...]) -> list[tuple[str, str]]:
    return [(outcome.tool, outcome.verdict) for outcome in outcomes]


def tools(steps: tuple[GoldStep, ...]) -> list[str]:
    return [step.tool for step in steps]


def test_a_right_plan_is_kept() -> None:
    outcomes, complete = run(NAMES[:3], GOLD, WORLD)
    assert complete
    assert seen(outcomes) == [(name, "ok") for name in NAMES[:3]]
    assert tools(better(GOLD, WORLD, outcomes)) == list(NAMES[:3])


def test_a_step_too_many_is_irrelevant_and_left_out() -> None:
    outcomes, complete = run(("check_weather", *NAMES[:3]), GOLD, WORLD)
    assert complete
    assert outcomes[0].verdict == "irrelevant"
    assert tools(better(GOLD, WORLD, outcomes)) == list(NAMES[:3])


def test_a_call_more_than_needed_is_irrelevant() -> None:
    outcomes, _ = run(("search_flights", "search_flights"), GOLD[:1], WORLD)
    assert seen(outcomes) == [("search_flights", "ok"), ("search_flights", "irrelevant")]


def test_missing_work_is_named_only_when_asked_and_nothing_broke() -> None:
    outcomes, complete = run(NAMES[:2], GOLD, WORLD, names_missing=True)
    assert not complete
    assert seen(outcomes)[2:] == [("send_email", "missing")]
    assert len(run(NAMES[:2], GOLD, WORLD)[0]) == 2
    broken = World(tools=TOOLS, faults={"search_flights": "failed"})
    assert "missing" not in {outcome.verdict for outcome in run(NAMES[:2], GOLD, broken, names_missing=True)[0]}


def test_what_waits_for_a_failed_step_does_not_run() -> None:
    world = World(tools=TOOLS, faults={"book_flight": "unavailable"})
    outcomes, complete = run(NAMES[:3], GOLD, world, stops=True)
    assert not complete
    assert seen(outcomes) == [("search_flights", "ok"), ("book_flight", "unavailable")]


def test_the_tool_that_does_the_same_takes_the_place_of_a_broken_one() -> None:
    world = World(tools=TOOLS, faults={"book_flight": "failed"}, stands_in={"book_flight": "reserve_air_travel"})
    outcomes, _ = run(NAMES[:3], GOLD, world)
    found = better(GOLD, world, outcomes)
    assert tools(found) == ["search_flights", "reserve_air_travel", "send_email"]
    assert [step.depends_on for step in found] == [(), (0,), (1,)]


def test_a_fault_that_no_step_met_changes_nothing() -> None:
    world = World(tools=TOOLS, faults={"send_email": "failed"}, stands_in={"send_email": "deliver_mail"})
    outcomes, _ = run(NAMES[:2], GOLD, world)
    assert tools(better(GOLD, world, outcomes)) == list(NAMES[:3])


def test_the_one_of_a_pair_that_worked_is_kept() -> None:
    world = World(tools=TOOLS, stands_in={"send_email": "deliver_mail"})
    outcomes, complete = run((*NAMES[:2], "deliver_mail"), GOLD, world)
    assert complete
    assert tools(better(GOLD, world, outcomes)) == [*NAMES[:2], "deliver_mail"]


def test_what_cannot_be_done_is_left_out_with_what_takes_its_output() -> None:
    world = World(tools=TOOLS, faults={"search_flights": "unavailable"})
    outcomes, _ = run(NAMES[:3], GOLD, world)
    found = better(GOLD, world, outcomes)
    assert tools(found) == ["send_email"], "book_flight takes what search_flights returns, send_email only waits"
    assert found[0].depends_on == ()


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_plan_has_one_thing_wrong(change: str) -> None:
    plan = changed(NAMES[:3], change, NAMES[3:4], NAMES[3:], random.Random(3))
    sizes = {"right": 3, "drop": 2, "add": 4, "swap": 3, "order": 3, "mistake": 3}
    assert len(plan) == sizes[change]
    assert (plan == NAMES[:3]) == (change in ("right", "mistake"))
    assert len(set(plan) - set(NAMES[:3])) == (change in ("add", "swap"))


def test_trajectories_follow_from_the_seed_fail_often_and_never_go_back_to_what_broke() -> None:
    seed = random.randrange(10**6)
    found = [simulate(EXAMPLE, random.Random(f"{seed} {at}"), near=NAMES[3:]) for at in range(300)]
    again = [simulate(EXAMPLE, random.Random(f"{seed} {at}"), near=NAMES[3:]) for at in range(300)]
    assert found == again, f"seed {seed}"
    assert share_failing(found) >= 0.15, f"seed {seed}"
    verdicts = {outcome.verdict for item in found for outcome in item.outcomes}
    assert verdicts == set(VERDICTS), f"seed {seed}"
    for item in found:
        names = {card.name for card in item.example.tools}
        wanted = [step.tool for step in item.example.steps]
        assert set(wanted) <= names, f"seed {seed}"
        assert not item.broken & set(wanted), f"seed {seed}"
        assert all(outcome.tool in names for outcome in item.outcomes), f"seed {seed}"
        last = {outcome.tool: outcome.verdict for outcome in item.outcomes}
        assert item.broken == {tool for tool, verdict in last.items() if verdict in BROKEN}, f"seed {seed}"
        for at, step in enumerate(item.example.steps):
            assert all(need < at for need in step.depends_on), f"seed {seed}"


def test_a_models_own_mistakes_are_earlier_plans() -> None:
    wrong = ("search_flights", "book_hotel")
    found = [simulate(EXAMPLE, random.Random(at), mistakes=[wrong]) for at in range(300)]
    assert any(item.plan == wrong for item in found)


def test_a_stand_in_is_another_tool_with_the_same_schemas() -> None:
    card = ToolCard(
        name="bookFlight",
        description="Book a flight for the user.",
        input_schema={"type": "object", "properties": {"flight": {"type": "string"}}},
    )
    other = stand_in(card)
    assert other == stand_in(card)
    assert other.name != card.name
    assert other.input_schema == card.input_schema
    assert {stand_in(card, number).name for number in range(12)} - {other.name}
