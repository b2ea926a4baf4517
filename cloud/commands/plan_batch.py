"""`podium plan --batch`: many requests of a file, planned from the requests and the tools alone."""

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conductor.policy.batch import BatchPlan, BatchPlanner, BatchRow
from conductor.policy.batch_file import BatchTools, read_rows, read_tools, require_apart, write_plans
from podium.errors import InvalidRequest, PodiumError

if TYPE_CHECKING:
    from cloud.specialists import Specialists
    from conductor.policy.model import PlannerModel

_SAYS_EVERY_S = 2.0


def plan_batch(
    specialists: "Specialists",
    *,
    batch: Path,
    out: Path,
    decisions: Path | None = None,
    tools: Path | None,
    planner: str,
    model: "PlannerModel | None",
    threads: int,
    now: datetime | None,
) -> dict[str, Any]:
    """Plan every row of a file and write the plans; what was done, as JSON.

    Args:
        specialists: whose agents rows without tools are planned over when there is no `tools` file.
        batch: the rows.
        out: where the plans go.
        decisions: where the decisions go that made them; only the planner policy takes decisions.
        tools: tools, and links between them, for rows without tools of their own.
        planner: policy or rules.
        model: of the planner policy.
        threads: rows that are planned at once.
        now: what "last quarter" refers to, for the planner rules.

    Raises:
        BatchInvalid: a file has another form; nothing was planned.
        InvalidRequest: decisions are wanted of a planner that takes none.
        OnnxError: the runtime failed.
    """
    require_apart(out, batch, tools)
    if decisions is not None:
        _require_decisions(planner)
        require_apart(decisions, batch, tools, out, field="decisions")
    rows = read_rows(batch)
    shared = read_tools(tools) if tools is not None else _of_packs(specialists)
    began = time.monotonic()
    if planner == "rules":
        moment = now or datetime.now(UTC)
        plans: Iterable[BatchPlan] = _by_rules(specialists, rows, alone=tools is None, now=moment)
    else:
        if model is None:
            raise ValueError("the planner policy needs a model")
        plans = _by_policy(model, rows, shared, threads, keep_decisions=decisions is not None)
    count = write_plans(out, _told(plans, len(rows)), decisions=decisions)
    took = time.monotonic() - began
    report = {"plans": count, "out": str(out), "seconds": round(took, 2), "planner": planner, "threads": threads}
    return report | ({"decisions": str(decisions)} if decisions is not None else {})


def _require_decisions(planner: str) -> None:
    if planner != "policy":
        raise InvalidRequest(
            f"the planner {planner} takes no decisions that have a probability",
            field="decisions",
            next_step="Use --planner policy, or leave --decisions out.",
        )


def _of_packs(specialists: "Specialists") -> BatchTools:
    from conductor.policy.agent_cards import cards_of

    return BatchTools(cards=tuple(cards_of(specialists.registry.serving()).values()), links=None)


def _by_policy(
    model: "PlannerModel", rows: tuple[BatchRow, ...], shared: BatchTools, threads: int, *, keep_decisions: bool
) -> Iterator[BatchPlan]:
    from conductor.policy.drafting import Drafter
    from conductor.policy.tokens import Tokens

    vocabulary = Tokens()
    needed = shared.cards if any(row.tools is None for row in rows) else ()
    planner = BatchPlanner(
        lambda: Drafter(model, vocabulary),
        tools=needed,
        links=shared.links,
        threads=threads,
        keep_decisions=keep_decisions,
    )
    return planner.plans(rows)


def _by_rules(
    specialists: "Specialists", rows: tuple[BatchRow, ...], *, alone: bool, now: datetime
) -> Iterator[BatchPlan]:
    """What the rules of the packs plan; rows with other tools get no steps, because no rule speaks of those."""
    from agents.invocation import Caller
    from conductor.plan import Plan
    from conductor.planner import Situation
    from conductor.request import build_request
    from conductor.state import TaskState

    caller = Caller(name="command line")
    for row in rows:
        plan = Plan.of((), 0.0)
        if alone and row.tools is None:
            state = TaskState(text=row.request, as_of=now)
            try:
                request = build_request(
                    state, specialists.normalise, caller=caller, agents=[], device_online=False
                ).value
                situation = Situation(request=request, registry=specialists.registry, caller=caller)
                plan = asyncio.run(specialists.planner.propose(situation)).plan
            except PodiumError:
                plan = Plan.of((), 0.0)  # no plan is an answer as well
        yield BatchPlan(id=row.id, plan=plan)


def _told(plans: Iterable[BatchPlan], count: int) -> Iterator[BatchPlan]:
    """The plans as they come, with a line on stderr now and then."""
    began = said = time.monotonic()
    for number, plan in enumerate(plans, 1):
        now = time.monotonic()
        if now - said >= _SAYS_EVERY_S or number == count:
            said = now
            left = (now - began) / number * (count - number)
            sys.stderr.write(f"{number} of {count} planned, {left:.0f} s left\n")
        yield plan
