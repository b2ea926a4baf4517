"""Runs plans without agents: which steps fail, what each step comes to, and which decision would be better then.

A world is an example's registry in which some tools fail, some of them with another tool beside them that does the
same. A plan that runs in it gets a verdict for each step; what should be decided next follows from the gold plan
and from what was seen, never from faults that no step has met. Everything depends on the seed alone.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from conductor.policy.cards import ToolCard
from conductor.policy.selecting import VERDICTS
from conductor.training.examples import Example, GoldStep
from conductor.training.stand_ins import stand_in

OK, FAILED, UNAVAILABLE, IRRELEVANT, MISSING = VERDICTS
BROKEN = frozenset({FAILED, UNAVAILABLE, IRRELEVANT})
"""Verdicts after which the same tool is not asked again for this request."""

CHANGES = ("right", "drop", "add", "swap", "order", "mistake")
"""How an earlier plan differs from the gold one; "mistake" is one that a model made."""

_RESULTS: Mapping[str, str] = {
    OK: "done",
    FAILED: "the tool reported an error",
    UNAVAILABLE: "the tool could not be reached",
    IRRELEVANT: "what came back does not serve the request",
    MISSING: "no step did this part of the request",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A step of an earlier plan and what became of it."""

    tool: str
    verdict: str
    """One of `conductor.policy.selecting.VERDICTS`."""
    result: str = ""
    """What it returned, in a few words; the selector reads the verdict alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A registry in which some tools fail."""

    tools: tuple[ToolCard, ...]
    faults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Tool to the verdict that each of its steps gets."""
    stands_in: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Tool of the gold plan to another that does the same."""

    def doers(self, tool: str) -> tuple[str, ...]:
        """The tools that do the work of a tool of the gold plan."""
        other = self.stands_in.get(tool)
        return (tool,) if other is None else (tool, other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """An earlier plan, what became of it and what should be decided next."""

    example: Example
    """The request over the world's tools; its steps are the better decision."""
    plan: tuple[str, ...]
    """Tools of the plan that ran last, in order."""
    outcomes: tuple[Outcome, ...]
    """Of all plans so far; a tool that was asked again has its last verdict."""
    kind: str
    """What went wrong, for figures by kind: one of `CHANGES`, or the verdict of the fault and what there is."""
    faults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Tools that fail in this world, whether or not they were met."""
    complete: bool = True
    """Whether the plan did all the work of the gold plan."""

    @property
    def fails(self) -> bool:
        """Whether a step did not do what it should, or a part of the request was left undone."""
        return not self.complete or any(outcome.verdict != OK for outcome in self.outcomes)

    @property
    def broken(self) -> frozenset[str]:
        """Tools that a new plan does without."""
        return frozenset(outcome.tool for outcome in self.outcomes if outcome.verdict in BROKEN)


def run(
    plan: Sequence[str],
    gold: Sequence[GoldStep],
    world: World,
    *,
    stops: bool = False,
    names_missing: bool = False,
    result: Mapping[str, str] = _RESULTS,
) -> tuple[tuple[Outcome, ...], bool]:
    """The verdicts of a plan's steps, and whether all the work was done.

    Args:
        plan: Tools in order.
        gold: The steps that the request needs.
        world: Where it runs.
        stops: Whether the steps after a failed one wait for it and do not run.
        names_missing: Whether a last look names the work that no step did.
        result: What a step of each verdict returns.
    """
    left = [step.tool for step in gold]
    outcomes: list[Outcome] = []
    for tool in plan:
        work = next((need for need in left if tool in world.doers(need)), None)
        verdict = world.faults.get(tool) or (IRRELEVANT if work is None else OK)
        if work is not None and verdict == OK:
            left.remove(work)
        outcomes.append(Outcome(tool=tool, verdict=verdict, result=result[verdict]))
        if stops and verdict in (FAILED, UNAVAILABLE):
            return tuple(outcomes), False
    if names_missing and not any(outcome.verdict in BROKEN for outcome in outcomes):
        outcomes += [Outcome(tool=need, verdict=MISSING, result=result[MISSING]) for need in dict.fromkeys(left)]
    return tuple(outcomes), not left


def better(gold: Sequence[GoldStep], world: World, outcomes: Iterable[Outcome]) -> tuple[GoldStep, ...]:
    """The gold plan without the tools that were seen to break.

    The work of a broken tool goes to the tool that does the same. Where there is none, the step is left out, and
    with it the steps that cannot be given what it would have returned.
    """
    last = {outcome.tool: outcome.verdict for outcome in outcomes}
    chosen: list[str | None] = []
    for step in gold:
        able = [tool for tool in world.doers(step.tool) if last.get(tool) not in BROKEN]
        chosen.append(next((tool for tool in able if last.get(tool) == OK), able[0] if able else None))
    lost = {at for at, tool in enumerate(chosen) if tool is None}
    while more := {at for at in range(len(gold)) if at not in lost and _taken_from(gold[at]) & lost}:
        lost |= more
    kept = [at for at in range(len(gold)) if at not in lost]
    place = {at: new for new, at in enumerate(kept)}
    found: list[GoldStep] = []
    for at in kept:
        needs = sorted({place[need] for need in _waits_for(gold, at, lost)})
        found.append(GoldStep(tool=chosen[at] or gold[at].tool, depends_on=tuple(needs), text=gold[at].text))
    return tuple(found)


def _taken_from(step: GoldStep) -> frozenset[int]:
    """The steps whose output an argument takes."""
    values = step.arguments.values()
    return frozenset(
        value["step"] for value in values if isinstance(value, Mapping) and isinstance(value.get("step"), int)
    )


def _waits_for(gold: Sequence[GoldStep], at: int, lost: set[int]) -> set[int]:
    """The kept steps before `at`; in the place of a lost one those that it waited for itself."""
    found: set[int] = set()
    seen: set[int] = set()
    ahead = list(gold[at].depends_on)
    while ahead:
        need = ahead.pop()
        if need in seen or not 0 <= need < len(gold):
            continue
        seen.add(need)
        if need in lost:
            ahead.extend(gold[need].depends_on)
        else:
            found.add(need)
    return found - {at}


def changed(
    tools: Sequence[str], change: str, near: Sequence[str], others: Sequence[str], chance: random.Random
) -> tuple[str, ...]:
    """A gold plan with one thing wrong.

    Args:
        tools: The gold plan.
        change: What is done to it, one of `CHANGES`; a plan that is too short for it stays as it is.
        near: Tools like those of the plan that are not in it.
        others: All tools that are not in it.
        chance: Random numbers.
    """
    plan = list(tools)
    pool = list(near if near and chance.random() < 0.8 else others)
    if change == "drop" and len(plan) > 1:
        del plan[chance.randrange(len(plan))]
    elif change == "add" and pool:
        plan.insert(chance.randint(0, len(plan)), chance.choice(pool))
    elif change == "swap" and plan and pool:
        plan[chance.randrange(len(plan))] = chance.choice(pool)
    elif change == "order" and len(plan) > 1:
        at = chance.randrange(len(plan) - 1)
        plan[at], plan[at + 1] = plan[at + 1], plan[at]
    return tuple(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """How often what goes wrong."""

    faulty: float = 0.55
    """Share of the trajectories in which a tool of the plan fails."""
    second: float = 0.2
    """Of those, the share in which a second tool fails as well."""
    faults: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({UNAVAILABLE: 0.4, FAILED: 0.35, IRRELEVANT: 0.25})
    )
    replaced: float = 0.65
    """Share of the failing tools beside which another does the same."""
    replacement_first: float = 0.4
    """Share of the worlds with such a pair in which the plan had taken the other tool."""
    changes: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(
            {"right": 0.30, "drop": 0.22, "add": 0.18, "swap": 0.18, "order": 0.06, "mistake": 0.06}
        )
    )
    """Of the trajectories in which no tool fails."""
    changed_too: float = 0.25
    """Share of the faulty trajectories whose plan has something else wrong, too."""
    stops: float = 0.5
    names_missing: float = 0.4
    again: float = 0.2
    """Share of the failing trajectories in which the next plan ran as well, in the same world."""


def simulate(
    example: Example,
    chance: random.Random,
    *,
    near: Sequence[str] = (),
    mistakes: Sequence[Sequence[str]] = (),
    odds: Odds | None = None,
) -> Trajectory:
    """One trajectory of an example.

    Args:
        example: A request with a gold plan that is not empty.
        chance: Random numbers; the trajectory follows from their state.
        near: Names of tools that read like those of the plan.
        mistakes: Plans that a model made for this request.
        odds: How often what goes wrong.
    """
    odds = odds or Odds()
    gold = tuple(step.tool for step in example.steps)
    names = {card.name for card in example.tools}
    faulty = chance.random() < odds.faulty
    choices = {name: share for name, share in odds.changes.items() if name != "mistake" or mistakes}
    change = _pick(choices, chance)
    if faulty and chance.random() >= odds.changed_too:
        change = "right"
    world = _world(example, gold, names, faulty, chance, odds)
    others = sorted(names - set(gold))
    likest = [name for name in near if name in names and name not in gold]
    if change == "mistake":
        plan = tuple(name for name in chance.choice(mistakes) if name in names)
    else:
        plan = changed(gold, change, likest, others, chance)
    if chance.random() < odds.replacement_first:
        # Which of a pair is the original means nothing in a registry: the roles are exchanged.
        world, plan = _exchanged(world, plan)
    stops = chance.random() < odds.stops
    names_missing = chance.random() < odds.names_missing
    outcomes, complete = run(plan, example.steps, world, stops=stops, names_missing=names_missing)
    target = better(example.steps, world, outcomes)
    if chance.random() < odds.again and any(outcome.verdict in BROKEN for outcome in outcomes):
        plan = tuple(step.tool for step in target)
        further, complete = run(plan, example.steps, world, stops=stops, names_missing=names_missing)
        anew = {outcome.tool for outcome in further}
        outcomes = (*(outcome for outcome in outcomes if outcome.tool not in anew), *further)
        target = better(example.steps, world, outcomes)
    return Trajectory(
        example=replace(example, tools=world.tools, steps=target),
        plan=plan,
        outcomes=outcomes,
        kind=_kind(change, world, outcomes, names_missing),
        faults=world.faults,
        complete=complete,
    )


def _world(
    example: Example, gold: Sequence[str], names: set[str], faulty: bool, chance: random.Random, odds: Odds
) -> World:
    distinct = list(dict.fromkeys(gold))
    count = min(len(distinct), 1 + (chance.random() < odds.second)) if faulty else 0
    picked = tuple(chance.sample(distinct, count))
    faults = {tool: _pick(odds.faults, chance) for tool in picked}
    cards = {card.name: card for card in example.tools}
    tools, stands_in = list(example.tools), {}
    # A pair of which neither fails teaches that two tools for the same work are no reason to call both.
    paired = picked or (tuple(chance.sample(distinct, 1)) if chance.random() < 0.3 else ())
    for tool in paired:
        other = stand_in(cards[tool])
        if chance.random() < odds.replaced and other.name not in names:
            stands_in[tool] = other.name
            tools.append(other)
    if stands_in:
        chance.shuffle(tools)
    return World(tools=tuple(tools), faults=faults, stands_in=stands_in)


def _exchanged(world: World, plan: tuple[str, ...]) -> tuple[World, tuple[str, ...]]:
    pairs = dict(world.stands_in)
    faults = {pairs.get(tool, tool): verdict for tool, verdict in world.faults.items()}
    return replace(world, faults=faults), tuple(pairs.get(tool, tool) for tool in plan)


def _kind(change: str, world: World, outcomes: Sequence[Outcome], names_missing: bool) -> str:
    met = next((outcome for outcome in outcomes if world.faults.get(outcome.tool) == outcome.verdict), None)
    if met is not None:
        paired = met.tool in world.stands_in or met.tool in world.stands_in.values()
        return f"{met.verdict}, {'another tool does it' if paired else 'nothing else does it'}"
    if change in ("drop", "mistake") and names_missing and any(o.verdict == MISSING for o in outcomes):
        return f"{change}, named"
    return change


def _pick(shares: Mapping[str, float], chance: random.Random) -> str:
    return chance.choices(list(shares), list(shares.values()))[0]
