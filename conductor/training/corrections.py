"""What people corrected, as training rows: out of event logs, without a model and without torch.

A row is `{"id", "request", "tools", "steps"[, "previous"], "origin"}`, one for each task that a person planned and
that succeeded under that plan; on request also for tasks that the planners alone brought to a high reward.
`previous` is the plan before with what became of each step: `ok`, `failed`, `unavailable`, `irrelevant` (what it
brought was of no use, or the better plan does without it) or `""` (it never ran and is part of the better plan).
`origin` says whose words and whose decision a row is, so that the rows of a tenant, a caller or a person can be
left out.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.canonical import canonical_json
from conductor.past import IRRELEVANT, OK, verdict_of
from conductor.plan import Plan
from conductor.policy.cards import ToolCard
from conductor.policy.requests import request_text
from conductor.progress import ProposedPlan, StepProgress, TaskState
from conductor.state import apply
from podium.errors import DataCorrupt
from podium.v1 import event_pb2, status_pb2

FORM = 1
"""Of rows and manifest; grows with every change of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows go into a set."""

    min_reward: float | None = None
    """Also tasks without a person's plan whose final reward is at least this; None for none of them."""
    without_tenants: frozenset[str] = frozenset()
    without_callers: frozenset[str] = frozenset()
    without_reviewers: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """As the manifest tells it."""
        return {
            "min_reward": self.min_reward,
            "without_tenants": sorted(self.without_tenants),
            "without_callers": sorted(self.without_callers),
            "without_reviewers": sorted(self.without_reviewers),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The agents as they are described now; logs hold only their names."""

    cards: Mapping[str, ToolCard]
    asking: frozenset[str]
    """Agents that ask the caller: a plan of theirs alone serves nothing."""


@dataclass(slots=True, kw_only=True)
class _Story:
    """A task read so far: the plan that counts, and what was before it."""

    state: TaskState = field(default_factory=TaskState)
    plan: Plan | None = None
    kind: str = ""
    reviewer: str = ""
    time: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    previous: tuple[tuple[str, StepProgress | None], ...] = ()
    """Tools of the plan before and what became of them; None: it never ran."""
    proposed: ProposedPlan | None = None


@dataclass(slots=True, kw_only=True)
class Collection:
    """Rows gathered from logs; `build` makes a set of them."""

    wanted: Wanted
    known: Known
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Tasks that might have been rows, by why they are none."""
    tasks: int = 0

    def add(self, events: Iterable[event_pb2.Event]) -> None:
        """Look at the log of one task; one that is damaged is counted and left out."""
        self.tasks += 1
        story = _Story()
        try:
            for event in events:
                _read(story, event)
        except DataCorrupt:
            self.left_out["the log is damaged"] += 1
            return
        if story.plan is None or not story.plan.steps:
            return
        if self._is_plain(story):
            return
        if (reason := self._reason_against(story)) is not None:
            self.left_out[reason] += 1
            return
        self.rows.append(_row(story, story.plan, self.known))

    def _is_plain(self, story: _Story) -> bool:
        """Whether nobody took part and it is not wanted for its reward either."""
        if story.kind:
            return False
        least, reward = self.wanted.min_reward, story.state.reward
        return least is None or reward is None or reward.final < least

    def _reason_against(self, story: _Story) -> str | None:
        state, plan, wanted = story.state, story.plan, self.wanted
        tools = {step.tool for step in plan.steps} if plan is not None else set()
        reasons = {
            "the task has not succeeded": state.status != status_pb2.TASK_STATUS_SUCCEEDED,
            "the tenant is left out": _tenant(state) in wanted.without_tenants,
            "the caller is left out": state.caller in wanted.without_callers,
            "the reviewer is left out": story.reviewer in wanted.without_reviewers,
            "its plan only asks the caller": tools <= self.known.asking,
            "an agent of its plan is not known any more": not tools <= self.known.cards.keys(),
            "it has no words": not request_text(story.request),
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def build(self) -> tuple[dict[str, Any], ...]:
        """The rows in order, no request over the same agents twice: the newest plan for it counts."""
        ordered = sorted(self.rows, key=lambda row: (row["origin"]["time"], row["id"]))
        newest: dict[bytes, dict[str, Any]] = {}
        for row in ordered:
            key = canonical_json([row["request"], [tool["name"] for tool in row["tools"]]])
            before = newest.get(key)
            if before is not None and before["steps"] == row["steps"]:
                self.left_out["the same request has the same plan"] += 1
                continue
            if before is not None:
                self.left_out["the same request has a newer plan"] += 1
            newest[key] = row
        return tuple(sorted(newest.values(), key=lambda row: (row["origin"]["time"], row["id"])))


def rows_bytes(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The rows as they lie in a file: one canonical JSON object a line."""
    return b"".join(canonical_json(row) + b"\n" for row in rows)


def version_of(content: bytes) -> str:
    """What a set is called by: the SHA-256 of its rows."""
    return hashlib.sha256(content).hexdigest()


def manifest(
    name: str, rows: Sequence[Mapping[str, Any]], collection: Collection, *, parent: str | None
) -> dict[str, Any]:
    """What is said of a set; the same logs, agents and options give the same, whenever it is made.

    Args:
        name: of the set.
        rows: what `Collection.build` gave.
        collection: where they came from.
        parent: version of the set that was there before under this name.
    """
    origins = [row["origin"] for row in rows]
    times = sorted(origin["time"] for origin in origins)
    cards = sorted(collection.known.cards[name].key for name in collection.known.cards)
    return {
        "form": FORM,
        "name": name,
        "version": version_of(rows_bytes(rows)),
        "parent": parent,
        "rows": len(rows),
        "with_previous": sum("previous" in row for row in rows),
        "kinds": _counts(origin["kind"] for origin in origins),
        "tenants": _counts(origin["tenant"] for origin in origins),
        "callers": _counts(origin["caller"] for origin in origins),
        "reviewers": _counts(origin["reviewer"] for origin in origins if origin["reviewer"]),
        "first_time": times[0] if times else None,
        "last_time": times[-1] if times else None,
        "tasks_read": collection.tasks,
        "agents_sha256": hashlib.sha256("".join(cards).encode()).hexdigest(),
        "left_out": dict(sorted(collection.left_out.items())),
        "options": collection.wanted.to_json(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one set has that another has not; rows by id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    """The fields in which a row of both differs."""
    same: int

    @classmethod
    def between(cls, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> "Difference":
        """Compare two sets."""
        old, new = ({str(row["id"]): row for row in rows} for rows in (before, after))
        both = [key for key in new if key in old]
        changed = {
            key: tuple(sorted(name for name in {*old[key], *new[key]} if old[key].get(name) != new[key].get(name)))
            for key in both
            if old[key] != new[key]
        }
        return cls(
            added=tuple(sorted(key for key in new if key not in old)),
            removed=tuple(sorted(key for key in old if key not in new)),
            changed=changed,
            same=len(both) - len(changed),
        )


def _read(story: _Story, event: event_pb2.Event) -> None:
    """Follow a log by one event; what a plan replaces is looked at before it is replaced."""
    state, kind = story.state, event.WhichOneof("payload")
    if kind == "review_resolved" and event.review_resolved.HasField("plan"):
        waiting = (review.proposed for review in state.reviews if review.step is None)
        story.proposed = next(waiting, None)
    if kind == "plan_adopted":
        adopted = event.plan_adopted
        plan = Plan.from_proto(adopted.plan)
        if adopted.planner == "person":
            story.previous = _before(state, story.proposed)
            story.kind = _kind(plan, story.proposed)
            story.reviewer = adopted.origin
        elif state.plan is not None and state.replan_reason and state.failures:
            story.previous = _before(state, None)
        story.plan = plan
        story.time = event.header.time.ToJsonString()
        story.request = state.request.value if state.request is not None else {}
    story.state = apply(state, event)


def _before(state: TaskState, proposed: ProposedPlan | None) -> tuple[tuple[str, StepProgress | None], ...]:
    if state.plan is not None:
        return tuple((step.tool, step) for step in state.steps)
    return tuple((step.tool, None) for step in proposed.plan.steps) if proposed is not None else ()


def _kind(plan: Plan, proposed: ProposedPlan | None) -> str:
    """accepted, corrected (something of what was proposed is left) or taken_over (nothing is)."""
    if proposed is None:
        return "taken_over"
    if _steps(plan) == _steps(proposed.plan):
        return "accepted"
    shared = {step.tool for step in plan.steps} & {step.tool for step in proposed.plan.steps}
    return "corrected" if shared else "taken_over"


def _row(story: _Story, plan: Plan, known: Known) -> dict[str, Any]:
    state = story.state
    tools = {step.tool for step in plan.steps}
    listed = [name for name in story.request.get("agents", ()) if name in known.cards]
    row: dict[str, Any] = {
        "id": state.task_id,
        "request": request_text(story.request),
        "tools": [_card(known.cards[name]) for name in sorted({*listed, *tools})],
        "steps": _steps(plan),
        "origin": {
            "kind": story.kind or "rewarded",
            "task": state.task_id,
            "tenant": _tenant(state),
            "caller": state.caller,
            "reviewer": story.reviewer,
            "time": story.time,
        },
    }
    before = [(tool, step) for tool, step in story.previous if tool not in known.asking]
    if before and (story.kind != "accepted" or state.failures):
        row["previous"] = {
            "steps": [{"tool": tool} for tool, _ in before],
            "verdicts": [_verdict(tool, step, tools) for tool, step in before],
        }
    return row


def _verdict(tool: str, step: StepProgress | None, better: set[str]) -> str:
    if step is not None and step.status in (status_pb2.STEP_STATUS_FAILED, status_pb2.STEP_STATUS_SKIPPED):
        return verdict_of(step.error.code if step.error is not None else "")
    if tool not in better:
        return IRRELEVANT
    return OK if step is not None and step.status == status_pb2.STEP_STATUS_SUCCEEDED else ""


def _steps(plan: Plan) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = plan.to_json()["steps"]
    return [{name: step[name] for name in ("tool", "arguments", "depends_on")} for step in steps]


def _card(card: ToolCard) -> dict[str, Any]:
    return {
        "name": card.name,
        "description": card.description,
        "input_schema": dict(card.input_schema),
        "output_schema": dict(card.output_schema),
    }


def _tenant(state: TaskState) -> str:
    return state.tenant or state.caller


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
