"""End a task: with its assembled answer and reward, or with the error that no recovery was left for."""

from conductor.assemble import assemble
from conductor.errors import ReviewRejected
from conductor.journal import Journal
from conductor.reward import compute_reward
from conductor.wiring import Wiring
from podium.errors import InternalError, PodiumError
from podium.rpc_status import error_detail
from podium.v1 import event_pb2, result_pb2, status_pb2


class Finisher:
    """Records the end of tasks; the last events are pressed to disk."""

    def __init__(self, wiring: Wiring) -> None:
        """Use the process's wiring."""
        self._wiring = wiring

    def fail(self, journal: Journal, error: result_pb2.ErrorDetail) -> None:
        """End the task without an answer."""
        self._reward(journal, answered=False)
        journal.record(event_pb2.TaskFailed(error=error), synced=True)

    def reject(self, journal: Journal) -> None:
        """End the task because the person who reviewed it said so."""
        note = journal.state.rejection
        self.fail(journal, error_detail(ReviewRejected(f"a person ended the task: {note}", evidence=[note])))

    def expire(self, journal: Journal) -> None:
        """End the task because its time limit ran out."""
        running = [step for step in journal.state.steps if step.status == status_pb2.STEP_STATUS_RUNNING]
        doing = ", ".join(f"step {step.index} ({step.agent}) ran" for step in running)
        self._reward(journal, answered=False)
        journal.record(event_pb2.TaskExpired(doing=doing or "nothing ran"), synced=True)

    def finish(self, journal: Journal) -> None:
        """End the task with its answer, or with the reason why there is none."""
        state = journal.state
        if failed := next((step for step in state.steps if step.status == status_pb2.STEP_STATUS_FAILED), None):
            self.fail(journal, failed.error or error_detail(InternalError(f"step {failed.index} failed")))
            return
        if open_steps := [step for step in state.steps if not step.finished]:
            self.fail(journal, error_detail(InternalError(f"step {open_steps[0].index} can never start")))
            return
        try:
            result = assemble(state)
        except PodiumError as error:
            self.fail(journal, error_detail(error, agent=_answering(journal)))
            return
        self._reward(journal, answered=True)
        journal.record(event_pb2.TaskSucceeded(result=result), synced=True)

    def _reward(self, journal: Journal, *, answered: bool) -> None:
        reward = compute_reward(journal.state, answered=answered, now=self._wiring.clock())
        journal.record(event_pb2.RewardComputed(reward=reward))


def _answering(journal: Journal) -> str:
    steps = journal.state.steps
    return steps[journal.state.answer_step].acting_agent if steps else ""
