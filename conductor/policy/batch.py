"""Plans for many requests at once, each over its own tools or over shared ones; structurally valid, not verified.

What a row may hold is the request and its tools and nothing else: a plan is never made with a look at the answer.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from agents.schema_cost import costs_too_much
from conductor.plan import Argument, Candidate, Literal, Plan, Step, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.decisions import Decision, decisions_of
from conductor.policy.drafting import Considered, Drafter, Links, has_schemas
from conductor.policy.filling import FilledStep
from conductor.policy.selecting import NOTHING
from conductor.policy.selecting_index import ToolIndex
from conductor.policy.waiting import Waiting
from tools.onnx.memory import give_back

_ALTERNATIVES = 5
_MAX_DEPTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """One request of a batch."""

    id: str | int | float
    request: str
    tools: tuple[ToolCard, ...] | None = None
    """Its own tools; the shared ones when None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The plan of one row."""

    id: str | int | float
    plan: Plan
    decisions: tuple[Decision, ...] = ()
    """What the model chose, in the order in which it chose; empty unless they are kept."""

    def to_json(self) -> dict[str, Any]:
        """As `podium plan --batch` writes it."""
        plan = self.plan.to_json()
        return {"id": self.id, "steps": plan["steps"], "confidence": round(self.plan.confidence, 6)}


class BatchPlanner:
    """Plans rows on several threads; every thread has its drafter, and the model is shared."""

    def __init__(
        self,
        make_drafter: Callable[[], Drafter],
        *,
        tools: Sequence[ToolCard] = (),
        links: Links | None = None,
        threads: int = 1,
        keep_decisions: bool = False,
    ) -> None:
        """Compute what is needed of the shared tools.

        Args:
            make_drafter: Gives each thread its own.
            tools: What rows without tools of their own are planned over.
            links: Which of them may follow which; None when nothing is known.
            threads: How many rows are planned at once.
            keep_decisions: Give with each plan the decisions that made it.

        Raises:
            OnnxError: the runtime failed.
        """
        self._make_drafter = make_drafter
        self._own = threading.local()
        self._own.drafter = make_drafter()
        self._shared: ToolIndex = self._own.drafter.index(tools)
        give_back()
        self._links = links
        self._threads = threads
        self._keep_decisions = keep_decisions
        self._values = _Values()

    def plans(self, rows: Iterable[BatchRow]) -> Iterator[BatchPlan]:
        """The plans in the order of the rows.

        Raises:
            OnnxError: the runtime failed.
        """
        if self._threads == 1:
            yield from map(self.plan, rows)
            return
        with ThreadPoolExecutor(max_workers=self._threads, thread_name_prefix="batch") as pool:
            yield from pool.map(self.plan, rows)

    def plan(self, row: BatchRow) -> BatchPlan:
        """The plan of one row.

        Raises:
            OnnxError: the runtime failed.
        """
        drafter = self._drafter()
        index = self._shared if row.tools is None else drafter.index(row.tools)
        links = self._links if row.tools is None else None
        considered = drafter.consider(row.request, index, links=links)
        sure = drafter.sure_of(considered, 0)
        cards = considered.cards(0)
        if not has_schemas(cards):
            arguments: list[dict[str, Argument]] = [{} for _ in cards]
            after = [() if place == 0 else (place - 1,) for place in range(len(cards))]
        else:
            arguments = self._arguments(cards, drafter.fill(considered, cards))
            after = [() for _ in cards]
        sure_of_steps = drafter.sure_of_steps(considered, 0)
        steps = in_order(
            [
                Step(
                    tool=card.name,
                    candidates=ranked(considered, place, sure_of_steps[place]),
                    arguments=given,
                    depends_on=before,
                )
                for place, (card, given, before) in enumerate(zip(cards, arguments, after, strict=True))
            ]
        )
        return BatchPlan(
            id=row.id,
            plan=Plan.of(steps, sure if math.isfinite(sure) else 0.0),
            decisions=self._decisions(row, considered),
        )

    def _decisions(self, row: BatchRow, considered: Considered) -> tuple[Decision, ...]:
        if not self._keep_decisions:
            return ()
        return decisions_of(row.request, considered.index, considered.hypotheses[0], NOTHING)

    def _drafter(self) -> Drafter:
        found: Drafter | None = getattr(self._own, "drafter", None)
        if found is None:
            found = self._own.drafter = self._make_drafter()
        return found

    def _arguments(self, cards: Sequence[ToolCard], filled: Sequence[FilledStep]) -> list[dict[str, Argument]]:
        """What the filler found and the tools' schemas take."""
        found: list[dict[str, Argument]] = []
        waiting = Waiting(len(cards))
        for place, (card, step) in enumerate(zip(cards, filled, strict=True)):
            taken: dict[str, Argument] = {}
            for name, value in step.arguments.items():
                argument = value.argument
                known = name in card.inputs
                if isinstance(argument, StepRef):
                    known = (
                        known and 0 <= argument.step < len(cards) and argument.step not in waiting.barred(place)
                    )
                    if known:
                        waiting.add(place, argument.step)
                elif isinstance(argument, Literal):
                    known = known and self._values.fit(card, name, argument.value)
                if known:
                    taken[name] = argument
            found.append(taken)
        return found


def in_order(steps: Sequence[Step]) -> list[Step]:
    """The steps with each after those that it refers to and depends on, and otherwise as they were.

    Args:
        steps: References go to places among them, in any direction but never in a circle.
    """
    needs = [
        {item.step for item in step.arguments.values() if isinstance(item, StepRef)} | set(step.depends_on)
        for step in steps
    ]
    order: list[int] = []
    while len(order) < len(steps):
        order.append(next(at for at in range(len(steps)) if at not in order and needs[at] <= set(order)))
    place = {old: new for new, old in enumerate(order)}
    return [
        replace(
            steps[at],
            arguments={
                name: StepRef(step=place[item.step], field=item.field) if isinstance(item, StepRef) else item
                for name, item in steps[at].arguments.items()
            },
            depends_on=tuple(place[before] for before in steps[at].depends_on),
        )
        for at in order
    ]


def ranked(considered: Considered, place: int, sure: float) -> tuple[Candidate, ...]:
    """The tools that could do a step of the best plan, the chosen one first; the others share what is left.

    Args:
        considered: What the model thinks.
        place: Of the step.
        sure: The calibrated probability of the chosen tool.
    """
    cards = considered.index.cards
    hypothesis = considered.hypotheses[0]
    chosen = hypothesis.tools[place]
    others = [(tool, share) for tool, share in hypothesis.candidates[place] if tool != chosen][:_ALTERNATIVES]
    left = max(sum(share for _, share in others), 1e-9)
    sure = min(max(sure, 0.0), 1.0)
    scores = {cards[chosen].name: sure}
    for tool, share in others:
        scores.setdefault(cards[tool].name, (1 - sure) * max(share, 0.0) / left)
    return tuple(Candidate(tool=name, score=round(score, 6)) for name, score in scores.items())


class _Values:
    """Holds literals against schemas; a schema that is none says nothing. Safe from several threads."""

    def __init__(self) -> None:
        self._validators: dict[tuple[str, str], Any] = {}

    def fit(self, card: ToolCard, name: str, value: Any) -> bool:
        key = (card.key, name)
        if key not in self._validators:
            self._validators[key] = _validator(card.input_schema, card.inputs[name])
        validator = self._validators[key]
        return validator is None or bool(validator.is_valid(value))


def _validator(root: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    whole = {**{key: root[key] for key in ("$defs", "definitions") if key in root}, **schema}
    if costs_too_much(whole, max_depth=_MAX_DEPTH):
        return None
    try:
        return jsonschema_rs.Draft202012Validator(whole, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        # Public data names types (dict, float) that JSON Schema does not have; the filler knows them.
        return None
