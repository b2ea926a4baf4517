"""Many threads share one write: whoever finds nobody writing writes for all that wait."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")


class _Waiter(Generic[Job]):
    __slots__ = ("done", "job", "leads", "turn")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done = False
        self.leads = False
        self.turn = threading.Lock()
        self.turn.acquire()


class GroupCommit(Generic[Job]):
    """Runs jobs in the order in which they came, those that wait together in one go.

    There is no thread of its own: with one caller nothing is handed over. While one group is on its way to the
    disk the next gathers, so the longer a write takes the more share the next. Each waiter has a lock of its own;
    one lock or condition for all would wake them one after the other and halve the throughput.
    """

    def __init__(self, commit: Callable[[list[Job]], None]) -> None:
        """Prepare.

        Args:
            commit: does the jobs; called by one thread at a time. What goes wrong with a job it notes in the job.
        """
        self._commit = commit
        self._mutex = threading.Lock()
        self._waiting: list[_Waiter[Job]] = []
        self._leading = False

    def run(self, job: Job) -> None:
        """Have the job done, with others or alone; returns when it is."""
        waiter = _Waiter(job)
        with self._mutex:
            self._waiting.append(waiter)
            leads = not self._leading
            self._leading = True
        if not leads:
            try:
                waiter.turn.acquire()
            except BaseException:
                self._leave(waiter)
                raise
            if waiter.done:
                return
        self._lead()

    def _lead(self) -> None:
        with self._mutex:
            group, self._waiting = self._waiting, []
        try:
            self._commit([waiter.job for waiter in group])
        finally:
            # Those that are served first: they may come back with more before the next group is taken.
            for waiter in group:
                waiter.done = True
                waiter.turn.release()
            with self._mutex:
                self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].turn.release()
        else:
            self._leading = False

    def _leave(self, waiter: _Waiter[Job]) -> None:
        """Forget a thread that was interrupted while it waited (Ctrl-C), without stopping the others."""
        with self._mutex:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                if waiter.leads:
                    self._pass_on()
