"""What people corrected becomes rows: which tasks count, what stood before, and that a version is its content."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conductor.clarifying import asks_caller
from conductor.hybrid_planner import HybridPlanner
from conductor.policy.agent_cards import cards_of
from conductor.rules_planner import RulesPlanner
from conductor.thresholds import PlanThresholds
from conductor.training.corrections import Collection, Difference, Known, Wanted, manifest, rows_bytes, version_of
from conductor.training.written import read_corrections
from podium.errors import AgentCrashed, AgentUnreachable
from podium.v1 import event_pb2, status_pb2
from tests.fakes.planners import SurePlanner, sure
from tests.fakes.sales import PLAN, SCRIPTS, SPECS
from tests.fakes.stage import Stage, stage
from tests.unit.conductor.test_plan_reviews import SHORT, given, unsure
from tests.unit.conductor.test_waiting import ASKING, CLARIFY

OTHER: dict[str, Any] = {"steps": [{"tool": "report", "arguments": {"total": 7.0}}]}
LONG: dict[str, Any] = {"steps": PLAN["steps"]}


async def reviewed(
    show: Stage, plan: Any = None, *, text: str = "How did sales change?", reviewer: str = "ada", **fields: Any
) -> Sequence[event_pb2.Event]:
    """The log of a task that a person planned."""
    state = await show.perform(text, **fields)
    assert state.status == status_pb2.TASK_STATUS_WAITING_REVIEW
    payload = given(plan)
    payload.reviewer = reviewer
    await show.desk.resolve_review(state.task_id, payload)
    state = await show.run(state.task_id)
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED, state.error
    return await show.events(state.task_id)


def known(show: Stage) -> Known:
    agents = show.registry.all_versions()
    return Known(
        cards=cards_of(agents), asking=frozenset(agent.spec.name for agent in agents if asks_caller(agent))
    )


def collected(show: Stage, logs: Sequence[Sequence[event_pb2.Event]], **wanted: Any) -> Collection:
    collection = Collection(wanted=Wanted(**wanted), known=known(show))
    for log in logs:
        collection.add(log)
    return collection


def test_accepted_corrected_and_replaced_plans_become_rows_with_what_was_proposed() -> None:
    async def scenario() -> None:
        show = unsure()
        logs = [
            await reviewed(show, text="first", tenant="acme"),
            await reviewed(show, SHORT, text="second", caller="bob"),
        ]
        policy = SurePlanner(sure(SHORT["steps"][:1], 0.5))
        planner = HybridPlanner(RulesPlanner([]), policy, lambda tenant, model: PlanThresholds())
        other = show.rewired(planner=planner)
        logs.append(await reviewed(other, OTHER, text="third"))
        rows = {row["request"]: row for row in collected(show, logs).build()}
        assert {request: row["origin"]["kind"] for request, row in rows.items()} == {
            "first": "accepted",
            "second": "corrected",
            "third": "taken_over",
        }
        assert "previous" not in rows["first"], "what was accepted taught nothing about what was wrong"
        assert [step["tool"] for step in rows["first"]["steps"]] == [step["tool"] for step in PLAN["steps"]]
        assert rows["second"]["previous"] == {
            "steps": [{"tool": step["tool"]} for step in PLAN["steps"]],
            "verdicts": ["", "irrelevant", "", "irrelevant", ""],
        }
        assert rows["third"]["previous"]["verdicts"] == ["irrelevant"]
        assert [card["name"] for card in rows["first"]["tools"]] == [
            "clarify", "code", "lookup", "parse", "report", "retrieve",
        ]  # fmt: skip
        origin = rows["first"]["origin"]
        assert (origin["tenant"], origin["caller"], origin["reviewer"]) == ("acme", "tester", "ada")
        assert rows["second"]["origin"]["tenant"] == "bob"
        assert rows["second"]["steps"][1]["arguments"] == {"topic": {"step": 0, "field": "topic"}}

    asyncio.run(scenario())


def test_what_became_of_the_steps_before_is_told() -> None:
    class Doubtful(SurePlanner):
        async def propose(self, situation: Any) -> Any:
            self.plan = sure(PLAN["steps"], 0.9 if not situation.avoid else 0.5)
            self.plan = self.plan if not situation.avoid else sure(SHORT["steps"], 0.5)
            return await super().propose(situation)

    async def scenario(error: Exception, verdict: str) -> None:
        planner = HybridPlanner(RulesPlanner([]), Doubtful(), lambda tenant, model: PlanThresholds())
        show = stage((*SPECS, CLARIFY), {**SCRIPTS, "code": error, "clarify": ASKING}, planner=planner)
        [row] = collected(show, [await reviewed(show)]).build()
        assert row["previous"] == {
            "steps": [{"tool": step["tool"]} for step in PLAN["steps"]],
            "verdicts": ["ok", "irrelevant", "ok", verdict, ""],
        }

    asyncio.run(scenario(AgentCrashed("fell over"), "failed"))
    asyncio.run(scenario(AgentUnreachable("the host is down"), "unavailable"))


def test_what_does_not_teach_is_left_out_and_counted() -> None:
    async def scenario() -> None:
        show = unsure()
        rejected = await show.perform("rejected")
        await show.desk.resolve_review(
            rejected.task_id, event_pb2.ReviewResolved(verdict=status_pb2.REVIEW_VERDICT_REJECTED)
        )
        await show.run(rejected.task_id)
        waiting = await show.perform("waits still")
        failing = show.rewired(engines={"python": _failing()})
        failed = await failing.perform("fails")
        await failing.desk.resolve_review(failed.task_id, given(OTHER))
        await failing.run(failed.task_id)
        logs = [await show.events(task.task_id) for task in (rejected, waiting, failed)]
        good = await reviewed(show, SHORT, tenant="acme", caller="bob")
        damaged = [*good[:2], *good[3:]]
        collection = collected(show, [*logs, damaged, good])
        assert len(collection.build()) == 1
        assert collection.tasks == 5
        assert dict(collection.left_out) == {"the task has not succeeded": 1, "the log is damaged": 1}
        for name in ("without_tenants", "without_callers", "without_reviewers"):
            leave = {"without_tenants": "acme", "without_callers": "bob", "without_reviewers": "ada"}[name]
            assert collected(show, [good], **{name: frozenset({leave})}).build() == ()
        gone = Known(
            cards={name: card for name, card in known(show).cards.items() if name != "lookup"}, asking=frozenset()
        )
        collection = Collection(wanted=Wanted(), known=gone)
        collection.add(good)
        assert dict(collection.left_out) == {"an agent of its plan is not known any more": 1}

    asyncio.run(scenario())


class _Failing:
    async def invoke(self, invocation: Any) -> Any:
        raise AgentCrashed("all is lost")


def _failing() -> _Failing:
    return _Failing()


def test_plans_that_went_well_count_only_when_they_are_asked_for() -> None:
    async def scenario() -> None:
        show = stage(SPECS, SCRIPTS, PLAN)
        state = await show.perform()
        log = await show.events(state.task_id)
        assert collected(show, [log]).build() == ()
        assert collected(show, [log], min_reward=0.999).build() == ()
        [row] = collected(show, [log], min_reward=0.5).build()
        assert (row["origin"]["kind"], row["origin"]["reviewer"]) == ("rewarded", "")

    asyncio.run(scenario())


def test_a_request_counts_once_and_its_newest_plan_wins() -> None:
    async def scenario() -> None:
        show = unsure()
        logs = []
        for plan in (LONG, LONG, SHORT):
            show.clock.advance(minutes=1)
            logs.append(await reviewed(show, plan))
        collection = collected(show, logs)
        [row] = collection.build()
        assert len(row["steps"]) == 3
        assert dict(collection.left_out) == {
            "the same request has the same plan": 1,
            "the same request has a newer plan": 1,
        }

    asyncio.run(scenario())


def test_the_same_logs_give_the_same_version_and_other_logs_another() -> None:
    async def scenario() -> None:
        show = unsure()
        logs = []
        for number in range(3):
            show.clock.advance(minutes=1)
            logs.append(await reviewed(show, SHORT, text=f"request {number}"))
        one, again = collected(show, logs), collected(show, list(reversed(logs)))
        rows = one.build()
        assert rows_bytes(rows) == rows_bytes(again.build())
        told = manifest("corrections", rows, one, parent=None)
        assert told == manifest("corrections", again.build(), again, parent=None)
        assert told["version"] == version_of(rows_bytes(rows))
        assert (told["rows"], told["with_previous"], told["tasks_read"]) == (3, 3, 3)
        assert (told["kinds"], told["callers"], told["reviewers"]) == ({"corrected": 3}, {"tester": 3}, {"ada": 3})
        fewer = collected(show, logs[:2])
        assert version_of(rows_bytes(fewer.build())) != told["version"]
        mended = [{**rows[0], "steps": []}, *rows[1:]]
        found = Difference.between(fewer.build(), mended)
        assert (found.added, found.removed, dict(found.changed), found.same) == (
            (rows[2]["id"],),
            (),
            {rows[0]["id"]: ("steps",)},
            1,
        )

    asyncio.run(scenario())


def test_training_reads_the_rows(tmp_path: Path) -> None:
    async def scenario() -> tuple[dict[str, Any], ...]:
        show = unsure()
        return collected(show, [await reviewed(show, SHORT)]).build()

    path = tmp_path / "rows.jsonl"
    path.write_bytes(rows_bytes(asyncio.run(scenario())))
    [example] = read_corrections(path, tmp_path)
    assert example.tool_set == {"parse", "lookup", "report"}
    assert example.request == "How did sales change?"
    assert {card.name for card in example.tools} >= example.tool_set
    assert json.loads(path.read_text())["previous"]["verdicts"].count("irrelevant") == 2


def test_no_torch_is_loaded_for_it() -> None:
    code = (
        "import sys, conductor.training.corrections, conductor.training.written; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
