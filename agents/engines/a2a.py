"""Run a step as a task of an A2A 1.0 agent, found by its card."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agents.allowed_hosts import NONE_LISTED, AgentAddressRefused, AllowedHosts
from agents.contract import HandoverBroken
from agents.engines.foreign import (
    AgentIncompatible,
    attributed,
    message_limit,
    said,
    timed_out,
    token_headers,
    unquoted,
)
from agents.engines.settings import A2aSettings
from agents.invocation import Invocation
from podium.errors import AgentCrashed, AgentError, AgentTimeout, AgentUnreachable, OutputContractBroken

if TYPE_CHECKING:
    import grpc
    import httpx
    from a2a.client.client import Client, ClientCallContext
    from a2a.types.a2a_pb2 import Part

    from agents.engines.a2a_card import CheckedCard

_LOG = logging.getLogger(__name__)

_CARD_IS_GOOD_FOR_S: Final = 300.0
_AWAY: Final = (404, 429, 502, 503, 504)
"""HTTP statuses of an agent, or of a proxy before it, that may be there again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """A connected agent."""

    found: "CheckedCard"
    client: "Client"
    http: "httpx.AsyncClient"
    context: "ClientCallContext"
    since_s: float

    async def close(self) -> None:
        await self.client.close()
        await self.http.aclose()


class A2aEngine:
    """Keeps one connection for each agent; its card is looked at again after five minutes and after a failure."""

    def __init__(
        self,
        environment: Mapping[str, str],
        hosts: AllowedHosts = NONE_LISTED,
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to nothing yet.

        Args:
            environment: where the tokens that manifests name are read from.
            hosts: looked at again whenever an agent is connected to.
            clock_s: seconds that only grow.
        """
        self._environment = environment
        self._hosts = hosts
        self._clock_s = clock_s
        self._links: dict[str, _Link] = {}
        self._connecting: dict[str, asyncio.Lock] = {}
        self._cards: dict[str, str] = {}
        self._background: set[asyncio.Task[Any]] = set()

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`.

        Raises:
            AgentIncompatible: the card is not what the manifest says, or the agent speaks another version.
            AgentAddressRefused: its address leads where agents are not reached at.
            AgentUnreachable: the agent cannot be reached, or died during the call.
            AgentCrashed: the agent says that it failed, or refuses.
            OutputContractBroken: the answer is not one JSON object, is too large, or is a question once too often.
        """
        settings = A2aSettings.model_validate(dict(invocation.spec.settings))
        with unquoted(settings, self._environment):
            return await self._answer(invocation, settings)

    async def _answer(self, invocation: Invocation, settings: A2aSettings) -> Any:
        work = self._start(self._converse(invocation, settings))
        try:
            done, _ = await asyncio.wait({work}, timeout=invocation.time_limit.total_seconds())
        finally:
            # Its remote task is cancelled in the background: whoever waits has waited long enough.
            work.cancel()
        if not done:
            raise timed_out(invocation)
        link, parts = work.result()
        from agents.engines.a2a_parts import answer_of

        name, card = invocation.spec.name, link.found.card
        return attributed(
            answer_of(parts, name),
            invocation,
            settings,
            label=f"skill {settings.skill} of {said(card.name)} {said(card.version)}",
            location=f"{settings.card}#{settings.skill}",
        )

    async def forget(self, name: str) -> None:
        """Close the connections of an agent, each after its last call, as when it is disabled or replaced.

        Args:
            name: the agent, in all its versions.
        """
        for key in [key for key in self._links if key.startswith(f"{name} ")]:
            self._start(_closed_after(self._links.pop(key), _CARD_IS_GOOD_FOR_S))

    async def close(self) -> None:
        """Give up what runs and close every connection."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        # Giving up leaves word for the agents, which ends within seconds.
        await asyncio.gather(*self._background, return_exceptions=True)
        links = list(self._links.values())
        self._links.clear()
        await asyncio.gather(*(link.close() for link in links), return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; nobody waits for one that was given up

    async def _converse(self, invocation: Invocation, settings: A2aSettings) -> "tuple[_Link, Sequence[Part]]":
        from agents.engines.a2a_conversation import Conversation
        from agents.engines.a2a_parts import first_request, reply

        name = invocation.spec.name
        request = first_request(invocation, settings.skill)
        try:
            link = await self._link(invocation, settings)
        except Exception as error:
            raise _mapped(error, name) from error
        conversation = Conversation(link.client, link.context, agent=name, max_bytes=message_limit(invocation))
        try:
            parts = await conversation.run(
                request,
                lambda task_id, context_id, turn: reply(
                    invocation, task_id=task_id, context_id=context_id, turn=turn
                ),
                max_turns=_turns(invocation, settings),
                one_too_many=partial(_one_too_many, invocation, settings),
            )
        except BaseException as error:
            self._start(conversation.abandon())
            if not isinstance(error, Exception):
                raise
            if not isinstance(error, AgentError):
                self._drop(invocation, link)
            raise _mapped(error, name) from error
        return link, parts

    def _drop(self, invocation: Invocation, link: _Link) -> None:
        """Let the next call look for the agent anew: it may come back as another one."""
        key = _key(invocation)
        if self._links.get(key) is link:
            del self._links[key]
            self._close_later(invocation, link)

    def _close_later(self, invocation: Invocation, link: _Link) -> None:
        """Calls under way still use it; they end within their time limits."""
        self._start(_closed_after(link, invocation.time_limit.total_seconds()))

    async def _link(self, invocation: Invocation, settings: A2aSettings) -> _Link:
        key = _key(invocation)
        async with self._connecting.setdefault(key, asyncio.Lock()):
            link = self._links.get(key)
            if link is not None and self._clock_s() - link.since_s < _CARD_IS_GOOD_FOR_S:
                return link
            fresh = await self._connect(invocation, settings)
            self._links[key] = fresh
            if link is not None:
                self._close_later(invocation, link)
            return fresh

    async def _connect(self, invocation: Invocation, settings: A2aSettings) -> _Link:
        from a2a.client.client import ClientCallContext, ClientConfig
        from a2a.client.client_factory import ClientFactory

        from agents.engines.a2a_card import find_card
        from agents.engines.a2a_http import http_client

        name = invocation.spec.name
        headers = token_headers(settings, self._environment, name)
        await self._hosts.check(settings.card, agent=name)
        found = await find_card(settings, headers, agent=name)
        if self._hosts.leads_out(settings.card, found.interface.url):
            why = self._hosts.refusal(found.interface.url)
            raise AgentAddressRefused(f"the card of {name} leads elsewhere: {why}", agent=name)
        await self._hosts.check(found.interface.url, agent=name)
        before = self._cards.setdefault(_key(invocation), found.sha256)
        if before != found.sha256:
            # Not what it says: whoever wrote the card may have put anything into it.
            _LOG.warning("the card of %s has changed from %s to %s", name, before, found.sha256)
            self._cards[_key(invocation)] = found.sha256
        limit = message_limit(invocation)
        http = http_client(max_response_bytes=limit, ca_file=settings.ca_file)
        config = ClientConfig(
            httpx_client=http,
            grpc_channel_factory=lambda url: _channel(url, settings.ca_file, limit),
            supported_protocol_bindings=[found.interface.protocol_binding],
        )
        return _Link(
            found=found,
            client=ClientFactory(config).create(found.card),
            http=http,
            context=ClientCallContext(service_parameters=dict(headers)),
            since_s=self._clock_s(),
        )


def _turns(invocation: Invocation, settings: A2aSettings) -> int:
    """How many questions are answered; the first exchange is a turn of the hand-over too."""
    agreed = invocation.context.turns_left
    return settings.max_turns if agreed is None else min(settings.max_turns, agreed - 1)


def _one_too_many(invocation: Invocation, settings: A2aSettings, asked: int, words: str) -> AgentError:
    name = invocation.spec.name
    message = f"{name} asks for more than its inputs, {asked} times: {words}"
    if asked <= settings.max_turns:
        return HandoverBroken(message, receiver=name, turn=asked)
    return OutputContractBroken(
        message,
        next_step="Let the plan give it what it asks for, or raise `max_turns` in its manifest.",
        agent=name,
    )


def _key(invocation: Invocation) -> str:
    return f"{invocation.spec.name} {invocation.spec.version}"


async def _closed_after(link: _Link, after_s: float) -> None:
    try:
        await asyncio.sleep(after_s)
    finally:
        await link.close()


def _channel(url: str, ca_file: str | None, max_bytes: int) -> "grpc.aio.Channel":
    from pathlib import Path

    import grpc

    from agents.engines.a2a_card import speaks_tls

    target = urlsplit(url if "://" in url else f"//{url}").netloc
    options = [
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.enable_http_proxy", 0),
    ]
    if not speaks_tls(url):
        return grpc.aio.insecure_channel(target, options=options)
    ca_pem = Path(ca_file).read_bytes() if ca_file is not None else None
    return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(ca_pem), options=options)


def _mapped(error: Exception, name: str) -> AgentError:
    """What went wrong in Podium's words; an error of the Podium tree stays."""
    import httpx
    from a2a.client.errors import A2AClientError, A2AClientTimeoutError
    from a2a.utils.errors import A2AError, TaskNotFoundError, VersionNotSupportedError

    from agents.engines.a2a_http import ResponseTooLarge

    if isinstance(error, AgentError):
        return error
    if isinstance(error, ResponseTooLarge):
        return OutputContractBroken(f"{name} answered more than its manifest allows", agent=name)
    if isinstance(error, VersionNotSupportedError):
        return AgentIncompatible(f"{name} speaks another version of A2A: {said(error)}", agent=name)
    if isinstance(error, TaskNotFoundError):
        return AgentUnreachable(f"{name} no longer knows its task; it was probably started anew", agent=name)
    if isinstance(error, A2AClientTimeoutError):
        return AgentTimeout(f"{name} took too long: {said(error)}", agent=name)
    if isinstance(error, A2AClientError):
        return _transport(error, name)
    if isinstance(error, A2AError):
        return AgentCrashed(f"{name} refused: {said(error)}", agent=name)
    if isinstance(error, httpx.HTTPError | OSError):
        return AgentUnreachable(f"{name} cannot be reached: {said(error) or type(error).__name__}", agent=name)
    return OutputContractBroken(f"{name} answered with what is not A2A: {said(error)}", agent=name)


def _transport(error: Exception, name: str) -> AgentError:
    """The SDK has one error for all that goes wrong on the wire; what it was stands behind it."""
    import grpc
    import httpx

    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        kind = AgentUnreachable if status in _AWAY else AgentCrashed
        return kind(f"{name} answered with HTTP {status}", agent=name)
    if isinstance(cause, httpx.RequestError):
        return AgentUnreachable(f"{name} cannot be reached: {said(cause) or type(cause).__name__}", agent=name)
    if isinstance(cause, grpc.RpcError):
        code, details = cause.code(), said(cause.details() or "")
        if code == grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
            return OutputContractBroken(f"{name} answered more than its manifest allows", agent=name)
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return AgentUnreachable(f"{name} cannot be reached: {details}", agent=name)
        return AgentCrashed(f"{name} answered with {code.name}: {details}", agent=name)
    return OutputContractBroken(f"{name} answered with what is not A2A: {said(error)}", agent=name)
