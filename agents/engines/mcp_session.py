"""One warm connection to an MCP server; it lives in a task of its own, calls come from anywhere.

The SDK ties a connection to the task that opened it (anyio), and calls are cut off by their time limits: so the
two never share a task.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from mcp import Client
from mcp.types import CallToolResult, Implementation, Tool

from agents.engines.mcp_http import NOTES, CallNotes
from agents.engines.mcp_stdio import ProgramLife

# The SDK logs what it cannot read, and that may quote a request; what goes wrong is raised to the caller anyway.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
logging.getLogger("client").setLevel(logging.CRITICAL)

_MAX_PAGES: Final = 50
_MAX_TOOLS: Final = 2_000
_MAX_PAGE_BYTES: Final = 2**20
"""Of a list of tools; to read one takes a second for each megabyte, in which nobody else is served."""
_CLOSED_WITHIN_S: Final = 6.0

Streams = Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]]


class McpSession:
    """Starts as soon as it is made; `call` waits until it is ready."""

    def __init__(
        self, streams: Streams, *, life: ProgramLife, check: Callable[[list[Tool]], None], start_limit_s: float
    ) -> None:
        """Open a connection.

        Args:
            streams: opens the way to the server.
            life: set as ended when there is nothing to hope for any more.
            check: looks at the server's tools once; what it raises ends the session.
            start_limit_s: how long the server may take until its tools are known.
        """
        self.life = life
        self.notes = CallNotes(most_bytes=_MAX_PAGE_BYTES)
        """Of the time until it was ready."""
        self.server = ""
        """What the server calls itself, with its version."""
        self._streams = streams
        self._check = check
        self._start_limit_s = start_limit_s
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._calls: set[asyncio.Task[CallToolResult]] = set()
        self._task = asyncio.create_task(self._live())

    @property
    def usable(self) -> bool:
        """Whether a new call may be made."""
        return not (self._task.done() or self._stop.is_set() or self.life.spent)

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._task.done()

    def call(
        self, tool: str, arguments: dict[str, Any], meta: dict[str, Any], notes: CallNotes
    ) -> "asyncio.Task[CallToolResult]":
        """Call a tool; the task raises what the SDK raises, and is cancelled to give the call up."""
        call = asyncio.create_task(self._call(tool, arguments, meta, notes))
        self._calls.add(call)
        call.add_done_callback(self._called)
        return call

    def retire(self) -> None:
        """Take no more calls, and end when those that run have ended."""
        self._stop.set()

    async def close(self) -> None:
        """End now."""
        self._stop.set()
        for call in self._calls:
            call.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSED_WITHIN_S)
        self._task.cancel()
        await asyncio.gather(self._task, *self._calls, return_exceptions=True)

    def _called(self, call: "asyncio.Task[CallToolResult]") -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # whoever waits has it; one that nobody waits for any more is not worth a warning

    async def _call(
        self, tool: str, arguments: dict[str, Any], meta: dict[str, Any], notes: CallNotes
    ) -> CallToolResult:
        NOTES.set(notes)
        client = await asyncio.shield(self._ready)
        async with self.life.in_call():
            return await client.call_tool(tool, arguments, meta=meta)  # type: ignore[arg-type]  # a typed dict there

    async def _live(self) -> None:
        NOTES.set(self.notes)
        try:
            async with asyncio.timeout(self._start_limit_s) as starting, self._open() as client:
                tools = await _all_tools(client)
                self.server = _named(client.server_info)
                self._check(tools)
                starting.reschedule(None)
                self.life.started()
                self._ready.set_result(client)
                await self._until_told()
        except asyncio.CancelledError:
            self._fail(ConnectionError("the session with the MCP server was given up"))
            raise
        except BaseException as error:  # noqa: BLE001 - raised to the calls that wait for the session
            self._fail(error)
        finally:
            self.life.ended.set()
            self._fail(ConnectionError("the session with the MCP server has ended"))

    def _open(self) -> Client:
        return Client(_Entered(self._streams), client_info=Implementation(name="podium", version="1"), cache=None)

    async def _until_told(self) -> None:
        ended = asyncio.create_task(self.life.ended.wait())
        stopped = asyncio.create_task(self._drained())
        try:
            await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            stopped.cancel()
            await asyncio.gather(ended, stopped, return_exceptions=True)

    async def _drained(self) -> None:
        await self._stop.wait()
        while self._calls:
            await asyncio.wait(self._calls)

    def _fail(self, error: BaseException) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # a session that nobody has called yet fails without a warning


class _Entered(AbstractAsyncContextManager[tuple[Any, Any]]):
    """A transport as the SDK takes it, opened when the client is entered."""

    def __init__(self, streams: Streams) -> None:
        self._manager = streams()

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self._manager.__aenter__()

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._manager.__aexit__(*failure)


async def _all_tools(client: Client) -> list[Tool]:
    """The tools of a server, as many as a server may have; one that lists more is not listened to for ever."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools.extend(page.tools[: _MAX_TOOLS - len(tools)])
        cursor = page.next_cursor
        if cursor is None or len(tools) >= _MAX_TOOLS:
            break
    return tools


def _named(info: Implementation | None) -> str:
    return f"{info.name} {info.version}".strip() if info is not None else ""
