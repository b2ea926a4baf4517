"""Run agent functions: plain ones in threads, coroutine functions on the loop, so many at once and no more."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

from podium.agent_host.context import CallContext
from podium.agent_host.errors import HostBusy
from podium.errors import AgentCrashed, AgentError

AgentFunction = Callable[[Mapping[str, Any], CallContext], Any]
_MAX_SAID_CHARS = 300


class Executor:
    """Runs calls; belongs to one event loop.

    A thread cannot be stopped from outside: a plain function that nobody waits for any more keeps its place until
    it ends. Threads are daemons, so one that never ends does not keep the host from ending.
    """

    def __init__(self, *, threads: int, waiting: int) -> None:
        """Run nothing yet.

        Args:
            threads: calls at once.
            waiting: calls that may wait for a place.
        """
        self._places = asyncio.Semaphore(threads)
        self._max_waiting = waiting
        self._waiting = 0

    async def run(
        self, function: AgentFunction, inputs: Mapping[str, Any], context: CallContext, name: str
    ) -> Any:
        """What the function returns.

        Raises:
            HostBusy: there is no place, also none to wait in, or no thread to be had; nothing was run.
            AgentError: as the function raised it.
            AgentCrashed: it raised something else.
        """
        if self._places.locked() and self._waiting >= self._max_waiting:
            raise HostBusy(f"{name} was not called: {self._waiting} calls wait already", agent=name)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        if inspect.iscoroutinefunction(function):
            try:
                return await function(inputs, context)
            except (Exception, SystemExit) as error:
                raise _typed(error, name) from error
            finally:
                self._places.release()
        result, raised = await self._in_thread(function, inputs, context, name)
        if raised is not None:
            raise _typed(raised, name) from raised
        return result

    def _in_thread(
        self, function: AgentFunction, inputs: Mapping[str, Any], context: CallContext, name: str
    ) -> "asyncio.Future[tuple[Any, BaseException | None]]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        variables = contextvars.copy_context()

        def settle(result: Any, error: BaseException | None) -> None:
            self._places.release()
            if not answer.done():
                answer.set_result((result, error))

        def work() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = variables.run(function, inputs, context)
            except BaseException as raised:  # noqa: BLE001 - told to the caller; sys.exit() must not end the host
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, error)

        try:
            threading.Thread(target=work, name=f"agent {name}", daemon=True).start()
        except RuntimeError as error:
            self._places.release()
            raise HostBusy(f"{name} was not called: no thread can be started", agent=name) from error
        return answer


def _typed(error: BaseException, name: str) -> AgentError:
    if isinstance(error, AgentError):
        error.agent = error.agent or name
        return error
    return AgentCrashed(f"{name} raised {type(error).__name__}: {str(error)[:_MAX_SAID_CHARS]}", agent=name)
