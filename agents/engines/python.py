"""Run agents that are Python functions of this process."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from agents.callables import resolve
from agents.invocation import AgentContext, Invocation, Resources
from agents.spec import ManifestInvalid
from podium.errors import AgentCrashed, AgentTimeout, PodiumError

_LOG = logging.getLogger(__name__)

AgentFunction = Callable[[Mapping[str, Any], AgentContext], Any]


class PythonEngine:
    """Calls `f(inputs, context)`: plain functions in a pool of threads, coroutine functions on the loop.

    A thread cannot be stopped from outside: past its time limit a plain function's answer is dropped and its
    thread returns to the pool when the function ends.
    """

    def __init__(self, resources: Resources, *, threads: int) -> None:
        """Start without threads; they come with the first calls.

        Args:
            resources: What agents share; put into the context of every call.
            threads: How many plain functions run at once.
        """
        self._resources = resources
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="agent")
        self._functions: dict[str, AgentFunction] = {}

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`; errors of the Podium tree pass unchanged."""
        function = await self._function(str(invocation.spec.settings["callable"]))
        context = replace(invocation.context, resources=self._resources)
        try:
            async with asyncio.timeout(invocation.time_limit.total_seconds()):
                if inspect.iscoroutinefunction(function):
                    return await _guarded(function, invocation, context)
                call = contextvars.copy_context().run
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, call, _call, function, invocation, context)
        except TimeoutError as error:
            raise AgentTimeout(
                f"{invocation.spec.name} did not answer within {invocation.time_limit.total_seconds():g} s",
                agent=invocation.spec.name,
            ) from error

    def close(self) -> None:
        """Take no more calls; running functions are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def warm(self, names: Iterable[str]) -> None:
        """Import callables before somebody waits for their first call.

        One that cannot be imported is logged; the first call of it says so to its caller.

        Args:
            names: `module:function`, as manifests name them.
        """
        for name in names:
            try:
                await self._function(name)
            except ManifestInvalid as error:
                _LOG.warning("an agent's function %s cannot be called: %s", name, error.code)

    async def _function(self, name: str) -> AgentFunction:
        # Importing a specialist late keeps DuckDB and its like out of processes that never need them; on a thread
        # it does not hold up every other call for the half second that pandas and DuckDB take.
        if name not in self._functions:
            self._functions[name] = await asyncio.to_thread(resolve, name)
        return self._functions[name]


def _call(function: AgentFunction, invocation: Invocation, context: AgentContext) -> Any:
    try:
        return function(invocation.inputs, context)
    except PodiumError:
        raise
    except BaseException as error:  # an agent that calls sys.exit() must not end the server
        raise _crash(invocation, error) from error


async def _guarded(function: AgentFunction, invocation: Invocation, context: AgentContext) -> Any:
    try:
        return await function(invocation.inputs, context)
    except PodiumError:
        raise
    except (Exception, SystemExit) as error:
        raise _crash(invocation, error) from error


def _crash(invocation: Invocation, error: BaseException) -> AgentCrashed:
    name = invocation.spec.name
    return AgentCrashed(f"{name} raised {type(error).__name__}: {str(error)[:300]}", agent=name)
