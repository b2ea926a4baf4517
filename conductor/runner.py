"""Run a task from its log to its end, or until it waits: the only place where a plan has effects.

One turn decides over the state, writes everything it decided in one commit, and only then starts agents. A turn
whose commit meets somebody else's events (a cancellation, an answer) is thrown away and decided again, so running
the same turn twice is harmless; finished steps are never run again, because they are finished in the log.
"""

import asyncio
from datetime import timedelta

from conductor.finishing import Finisher
from conductor.journal import Journal
from conductor.planner import Proposal
from conductor.planning import PlanOffice
from conductor.progress import StepProgress, TaskState
from conductor.scheduler import next_retry, ready
from conductor.settling import Outcome, Settler
from conductor.stepping import Launch, StepRunner
from conductor.verify import VerifiedPlan
from conductor.waiting import attend
from conductor.wiring import Wiring
from podium.telemetry import on_task
from podium.v1 import status_pb2


class TaskRunner:
    """Runs tasks; one instance serves all tasks of a process."""

    def __init__(self, wiring: Wiring) -> None:
        """Use the process's wiring."""
        self._wiring = wiring
        self._finisher = Finisher(wiring)
        self._settler = Settler(wiring, self._finisher)
        self._steps = StepRunner(wiring, self._settler)
        self._plans = PlanOffice(wiring, self._finisher)

    async def run(self, task_id: str) -> TaskState:
        """Run a task until it has ended or waits for its caller, a device or a person; where it then stands.

        The caller holds the task's lease. Cancelling this coroutine stops the agents and leaves the log as it is:
        whoever runs the task next goes on from there.

        Raises:
            NotFound: there is no such task.
            DataCorrupt: the log is out of order.
            StorageFull: the log cannot be written; nothing is lost.
        """
        journal = await Journal.open(self._wiring.bus, task_id, self._wiring.clock)
        with on_task(task_id, journal.state.trace_id):
            run = _Run(self._wiring, journal, self._plans, self._steps, self._settler, self._finisher)
            try:
                await run.to_end()
            finally:
                await run.stop()
        return journal.state


class _Run:
    """One run of one task."""

    def __init__(
        self,
        wiring: Wiring,
        journal: Journal,
        plans: PlanOffice,
        steps: StepRunner,
        settler: Settler,
        finisher: Finisher,
    ) -> None:
        self._wiring = wiring
        self._journal = journal
        self._plans = plans
        self._steps = steps
        self._settler = settler
        self._finisher = finisher
        self._live: dict[str, asyncio.Task[Outcome]] = {}
        """Agents at work, by step uid."""
        self._outcomes: list[Outcome] = []
        """What came back and is not yet committed."""
        self._plan: VerifiedPlan | None = plans.revived(journal.state)
        self._version = journal.state.plan_version
        self._looked_at: set[str] = set()
        """Finished steps of the plan in force that were asked whether they change it, by uid."""

    async def to_end(self) -> None:
        """Take turns until the task has ended or waits and no agent is at work."""
        while True:
            launches = await self._turn()
            if not await self._journal.commit():
                self._forget_plan()
                continue
            self._outcomes.clear()
            if self._journal.state.ended:
                return
            for launch in launches:
                self._live[launch.uid] = asyncio.create_task(self._steps.carry_out(launch), name=launch.uid)
            if not self._live and self._journal.state.status not in _GOING_ON:
                return
            await self._wait()

    async def stop(self) -> None:
        """Stop the agents that are still at work."""
        for task in self._live.values():
            task.cancel()
        await asyncio.gather(*self._live.values(), return_exceptions=True)
        self._live.clear()

    async def _turn(self) -> list[Launch]:
        """Decide what happens next and record it; the agents to start once it is committed."""
        journal = self._journal
        if journal.state.ended:
            return []
        for outcome in self._outcomes:
            self._settler.settle(journal, outcome)
        if journal.state.ended:
            return []
        if journal.state.expire_time is not None and self._wiring.clock() >= journal.state.expire_time:
            self._finisher.expire(journal)
            return []
        if journal.state.rejection:
            self._finisher.reject(journal)
            return []
        attend(journal, self._wiring, self._settler)
        return await self._go_on()

    async def _go_on(self) -> list[Launch]:
        journal = self._journal
        if journal.state.status not in _GOING_ON:
            return []
        if self._plan is None or journal.state.replan_reason:
            # Agents at work are waited for: what they bring may be kept under the new plan.
            if self._busy():
                return []
            # Without a new plan the one in force still serves the steps that a person may settle.
            self._set_plan(await self._plans.plan(journal, journal.state.replan_reason) or self._plan)
        elif (revision := await self._revision()) is not None:
            if self._busy():
                return []
            uid, proposal = revision
            self._looked_at.add(uid)
            self._set_plan(self._plans.revise(journal, proposal) or self._plan)
        # While a person is asked for the plan, nothing of the one in force goes on.
        asks_person = any(review.step is None for review in journal.state.reviews)
        if self._plan is None or journal.state.ended or asks_person:
            return []
        launches = await self._start_steps(self._plan)
        if journal.state.ended or journal.state.replan_reason or launches or self._live:
            return launches
        stuck = journal.state.status in _GOING_ON and next_retry(self._plan.plan, journal.state.steps) is None
        if stuck or all(step.finished for step in journal.state.steps):
            self._finisher.finish(journal)
        return launches

    async def _start_steps(self, plan: VerifiedPlan) -> list[Launch]:
        journal = self._journal
        launches = [await self._steps.resume(journal, plan, step) for step in self._orphans()]
        # A step that is skipped or fails at its start may make others ready: look again until nothing changes.
        while not journal.state.ended and not journal.state.replan_reason:
            limit, now = self._wiring.settings.max_parallel_steps, self._wiring.clock()
            able = ready(plan.plan, journal.state.steps, max_parallel=limit, now=now)
            if not able:
                break
            launches += [await self._start(plan, step) for step in able]
        return [launch for launch in launches if launch is not None]

    async def _start(self, plan: VerifiedPlan, step: StepProgress) -> Launch | None:
        # A step before it in the same batch may have ended the task or asked for another plan.
        if self._journal.state.ended or self._journal.state.replan_reason:
            return None
        return await self._steps.start(self._journal, plan, step)

    async def _revision(self) -> tuple[str, Proposal] | None:
        for step in self._journal.state.steps:
            if step.status != status_pb2.STEP_STATUS_SUCCEEDED or step.uid in self._looked_at:
                continue
            proposal = await self._plans.revision(self._journal.state, step)
            if proposal is not None:
                return step.uid, proposal
            self._looked_at.add(step.uid)
        return None

    def _orphans(self) -> list[StepProgress]:
        """Steps that run according to the log, and no agent of this process is at work on them."""
        return [
            step
            for step in self._journal.state.steps
            if step.status == status_pb2.STEP_STATUS_RUNNING and step.uid not in self._live
        ]

    def _busy(self) -> bool:
        return bool(self._live)

    def _set_plan(self, plan: VerifiedPlan | None) -> None:
        self._plan = plan
        if self._version != self._journal.state.plan_version:
            self._version = self._journal.state.plan_version
            self._looked_at.clear()

    def _forget_plan(self) -> None:
        """After a conflict the plan decided on may not be the one in the log."""
        if self._version != self._journal.state.plan_version or self._plan is None:
            self._set_plan(self._plans.revived(self._journal.state))

    async def _wait(self) -> None:
        """Until an agent is done, a retry is due, the time limit is near, or the log is to be looked at again."""
        seconds = self._wait_limit().total_seconds()
        if self._live:
            await asyncio.wait(self._live.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            # Steps that end together are committed together.
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(seconds)
        done = [uid for uid, task in self._live.items() if task.done()]
        self._outcomes.extend(self._live.pop(uid).result() for uid in done)
        if not done:
            await self._journal.refresh()

    def _wait_limit(self) -> timedelta:
        state, now = self._journal.state, self._wiring.clock()
        moments = [state.expire_time]
        if self._plan is not None:
            moments.append(next_retry(self._plan.plan, state.steps))
        waits = [moment - now for moment in moments if moment is not None]
        return max(timedelta(0), min([*waits, self._wiring.settings.poll_interval]))


_GOING_ON = frozenset({status_pb2.TASK_STATUS_ACCEPTED, status_pb2.TASK_STATUS_RUNNING})
