"""Run a step as a tool of an MCP server: a program started here, or a server over HTTP."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agents.allowed_hosts import NONE_LISTED, AllowedHosts
from agents.engines.foreign import (
    AgentIncompatible,
    attributed,
    message_limit,
    said,
    timed_out,
    token_headers,
    unquoted,
)
from agents.engines.settings import McpSettings
from agents.invocation import Invocation
from agents.sandbox.machine import Machine
from agents.sandbox.verdicts import failure_of
from agents.spec import AgentSpec
from podium.errors import AgentCrashed, AgentError, AgentUnreachable, OutputContractBroken
from podium.telemetry import outgoing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.types import CallToolResult, Tool

    from agents.engines.mcp_http import CallNotes
    from agents.engines.mcp_session import McpSession
    from agents.engines.mcp_stdio import ProgramLife

Misfits = Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[str]]
"""Where what the first schema allows can never fit into what the second asks for, each place in words."""

_MAX_SHOWN: Final = 20
_AWAY: Final = (404, 429, 502, 503, 504)
"""HTTP statuses of a server, or of a proxy before it, that may be there again later."""
_START_GRACE_S: Final = 1.0
_LIMIT_SIGNALS: Final = (signal.SIGXCPU, signal.SIGXFSZ)


class McpEngine:
    """Keeps one warm session for each agent; its calls share it, and a broken one is replaced at the next call."""

    def __init__(
        self,
        environment: Mapping[str, str],
        misfits: Misfits,
        machine: Machine | None = None,
        hosts: AllowedHosts = NONE_LISTED,
    ) -> None:
        """Start nothing yet.

        Args:
            environment: where the variables that manifests name are read from.
            misfits: compares an agent's input schema with that of its tool.
            machine: how programs are held.
            hosts: looked at again whenever a server is connected to.
        """
        self._hosts = hosts
        self.machine = machine or Machine()
        """How this machine holds programs."""
        self._environment = environment
        self._misfits = misfits
        self._sessions: dict[str, McpSession] = {}
        self._retired: set[McpSession] = set()

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`.

        Raises:
            AgentIncompatible: the server has no such tool, or it takes other inputs.
            AgentAddressRefused: its address leads where agents are not reached at.
            AgentUnreachable: the server cannot be started or reached, or died during the call.
            AgentOverLimit: the program used more than its manifest allows, and was ended.
            AgentCrashed: the tool, or the server, says that it failed.
            OutputContractBroken: the result is not one JSON object, or larger than the agent may answer.
        """
        settings = McpSettings.model_validate(dict(invocation.spec.settings))
        with unquoted(settings, self._environment):
            return await self._answer(invocation, settings)

    async def _answer(self, invocation: Invocation, settings: McpSettings) -> Any:
        from agents.engines.mcp_http import CallNotes

        name = invocation.spec.name
        session = self._session(invocation, settings)
        notes = CallNotes()
        meta = {"podium/idempotency-key": invocation.context.idempotency_key, **outgoing()}
        call = session.call(settings.tool, dict(invocation.inputs), meta, notes)
        try:
            done, _ = await asyncio.wait({call}, timeout=invocation.time_limit.total_seconds())
            if not done:
                # It hangs, or it is merely slow: other calls of it may end, new ones get a new server.
                self._retire(session)
                raise timed_out(invocation)
        finally:
            call.cancel()
        try:
            result = call.result()
        except BaseException as error:
            if not session.usable:
                self._retire(session)
            raise _mapped(error, invocation.spec, session, notes) from error
        raw = _raw(result, name)
        server = session.server or "an MCP server"
        place = settings.url or settings.command[0]
        return attributed(
            raw,
            invocation,
            settings,
            label=f"tool {settings.tool} of {server}",
            location=f"{place}#{settings.tool}",
        )

    async def forget(self, name: str) -> None:
        """End the sessions of an agent, each after its last call, as when it is disabled or replaced.

        Args:
            name: the agent, in all its versions.
        """
        for key, session in list(self._sessions.items()):
            if key.startswith(f"{name} "):
                self._retire(session)

    async def close(self) -> None:
        """End every session and every server that was started."""
        sessions = {*self._sessions.values(), *self._retired}
        self._sessions.clear()
        self._retired.clear()
        await asyncio.gather(*(session.close() for session in sessions))

    def _session(self, invocation: Invocation, settings: McpSettings) -> "McpSession":
        from agents.engines.mcp_session import McpSession
        from agents.engines.mcp_stdio import ProgramLife

        key = f"{invocation.spec.name} {invocation.spec.version}"
        session = self._sessions.get(key)
        if session is not None and session.usable:
            return session
        if session is not None:
            self._retire(session)
        life = ProgramLife()
        session = McpSession(
            self._streams(invocation, settings, life),
            life=life,
            check=partial(self._check, invocation, settings.tool),
            # Longer than the call: a server that is too slow to start is a call that took too long.
            start_limit_s=invocation.time_limit.total_seconds() + _START_GRACE_S,
        )
        self._sessions[key] = session
        return session

    def _retire(self, session: "McpSession") -> None:
        session.retire()
        self._retired = {old for old in self._retired if not old.over} | {session}
        self._sessions = {key: other for key, other in self._sessions.items() if other is not session}

    def _streams(
        self, invocation: Invocation, settings: McpSettings, life: "ProgramLife"
    ) -> Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]]:
        from agents.engines.mcp_stdio import Program, stdio_streams

        name = invocation.spec.name
        if settings.url is not None:
            headers = token_headers(settings, self._environment, name)
            check = partial(self._hosts.check, settings.url, agent=name)
            return partial(_http_streams, settings, headers, message_limit(invocation), check)
        if missing := [variable for variable in settings.env if variable not in self._environment]:
            raise AgentCrashed(
                f"{name} needs environment variables that are not set: {', '.join(missing)}",
                next_step="Start the server with them, or take them out of `env` in the manifest.",
                agent=name,
            )
        program = Program(
            agent=name,
            command=settings.command,
            environment={variable: self._environment[variable] for variable in settings.env},
            cwd=settings.cwd,
            path=settings.path,
            network=settings.network,
            scratch_bytes=settings.scratch_bytes,
            limits=invocation.spec.limits,
            search_path=self._environment.get("PATH", ""),
            max_message_bytes=message_limit(invocation),
        )
        return partial(stdio_streams, program, self.machine, life)

    def _check(self, invocation: Invocation, wanted: str, tools: "list[Tool]") -> None:
        name = invocation.spec.name
        tool = next((tool for tool in tools if tool.name == wanted), None)
        if tool is None:
            there = ", ".join(sorted(said(tool.name) for tool in tools)[:_MAX_SHOWN]) or "none"
            raise AgentIncompatible(f"{name}: the server has no tool {wanted!r}; it has {there}", agent=name)
        if misfits := self._misfits(invocation.spec.input_schema, tool.input_schema):
            raise AgentIncompatible(
                f"{name}: tool {wanted!r} takes other inputs than the manifest says: {said(misfits[0])}",
                evidence=[said(misfit) for misfit in misfits[:_MAX_SHOWN]],
                agent=name,
            )


@asynccontextmanager
async def _http_streams(
    settings: McpSettings, headers: Mapping[str, str], max_bytes: int, check: Callable[[], Awaitable[None]]
) -> "AsyncIterator[tuple[Any, Any]]":
    from mcp.client.streamable_http import streamable_http_client

    from agents.engines.mcp_http import http_client

    await check()
    async with (
        http_client(headers, max_response_bytes=max_bytes, ca_file=settings.ca_file) as client,
        streamable_http_client(str(settings.url), http_client=client, max_sse_event_size=max_bytes) as streams,
    ):
        yield streams


def _raw(result: "CallToolResult", name: str) -> object:
    """The structured content; else the only text, which must be one JSON object."""
    texts = [block.text for block in result.content if block.type == "text"]
    if result.is_error:
        raise AgentCrashed(f"{name} failed: {said(' '.join(texts)) or 'it does not say why'}", agent=name)
    if result.structured_content is not None:
        return result.structured_content
    if len(texts) != 1 or len(result.content) != 1:
        kinds = ", ".join(block.type for block in result.content[:_MAX_SHOWN]) or "nothing"
        raise OutputContractBroken(f"{name} returned {kinds} where one JSON object was asked for", agent=name)
    return texts[0]


def _mapped(error: BaseException, spec: AgentSpec, session: "McpSession", notes: "CallNotes") -> AgentError:
    """What went wrong in Podium's words; an error of the Podium tree stays."""
    import httpx2
    from mcp import MCPError
    from pydantic import ValidationError

    from agents.engines.mcp_stdio import ProgramMissing

    name, life = spec.name, session.life
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if life.verdict.get("kind") == "over":
        return failure_of(spec, life.verdict)
    if isinstance(error, AgentError):
        return error
    if notes.too_large or session.notes.too_large or life.too_large:
        return OutputContractBroken(f"{name} answered more than its manifest allows", agent=name)
    if life.verdict or life.garbage:
        return _died(spec, life)
    if isinstance(error, ProgramMissing | httpx2.HTTPError | OSError):
        # TimeoutError is an OSError: the server did not get ready in time.
        return AgentUnreachable(f"the server of {name} cannot be reached: {_words(error)}", agent=name)
    if isinstance(error, MCPError):
        return _refused(error, name, notes.status or session.notes.status)
    if isinstance(error, ValidationError):
        return OutputContractBroken(f"{name} answered with what is not MCP", agent=name)
    if isinstance(error, RuntimeError):
        return _runtime(error, name)
    return AgentUnreachable(f"the server of {name} is gone: {_words(error)}", agent=name)


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it did not get ready within the time limit"
    return said(error) or type(error).__name__


def _died(spec: AgentSpec, life: "ProgramLife") -> AgentError:
    words, verdict, name = life.last_words(), life.verdict, spec.name
    evidence = [f"the end of its stderr: {words}"] if words else []
    if not verdict:
        return AgentCrashed(
            f"{name} wrote {life.garbage} lines to its stdout that are not MCP", evidence=evidence, agent=name
        )
    if verdict.get("signal") in _LIMIT_SIGNALS:
        return failure_of(spec, verdict)
    if verdict["kind"] != "crash":
        why = said(verdict.get("message", verdict["kind"]))
        return AgentUnreachable(f"the process that watches {name} is lost: {why}", evidence=evidence, agent=name)
    how = f"signal {verdict['signal']}" if "signal" in verdict else f"status {verdict['status']}"
    return AgentUnreachable(f"the server of {name} ended with {how}", evidence=evidence, agent=name)


def _refused(error: Any, name: str, status: int | None) -> AgentError:
    from mcp.types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION

    if error.code == CONNECTION_CLOSED or status in _AWAY:
        return AgentUnreachable(f"the server of {name} is gone: {said(error.message)}", agent=name)
    if error.code == UNSUPPORTED_PROTOCOL_VERSION:
        return AgentIncompatible(f"{name} speaks another version of MCP: {said(error.message)}", agent=name)
    with_status = f" (HTTP {status})" if status else ""
    return AgentCrashed(f"{name} refused the call{with_status}: {said(error.message)}", agent=name)


def _runtime(error: RuntimeError, name: str) -> AgentError:
    """The SDK raises RuntimeError for a result that breaks the tool's own schema and for unknown versions."""
    if "protocol version" in str(error):
        return AgentIncompatible(f"{name} speaks another version of MCP: {said(error)}", agent=name)
    return OutputContractBroken(f"{name} broke the schema of its own tool: {said(error)}", agent=name)
