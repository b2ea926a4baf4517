"""Run agents that are language models behind OpenAI-compatible endpoints."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.allowed_hosts import NONE_LISTED, AllowedHosts
from agents.engines.foreign import attributed, said, timed_out
from agents.engines.openai_prompt import estimated_tokens, messages_of
from agents.engines.settings import ForeignSettings, OpenaiSettings
from agents.invocation import Invocation
from podium.errors import AgentCrashed, AgentError, AgentOverLimit, AgentUnreachable, InternalError

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_LOG = logging.getLogger(__name__)

_FORMATS = ("json_schema", "json_object", "none")
"""How an endpoint is asked for JSON, strictest first; not every endpoint knows each."""
_REFUSED = (400, 404, 415, 422, 501)
"""Statuses of endpoints that do not know a response format."""
_ROOM_BYTES = 65_536
_ROOM_PER_TOKEN_BYTES = 600
"""A streamed answer wraps each token in a message of its own."""
_NONSENSE = (ValueError, AttributeError, TypeError)
"""How the SDK fails on lines that are not what the interface says."""
_LONGEST_RETRY_AFTER = timedelta(minutes=10)


class OpenaiEngine:
    """Asks the model once per call; whoever called decides about another attempt."""

    def __init__(self, environment: Mapping[str, str], hosts: AllowedHosts = NONE_LISTED) -> None:
        """Connect to nothing yet.

        Args:
            environment: Where the variables that manifests name for their keys are read from.
            hosts: Looked at again before every call.
        """
        self._environment = environment
        self._hosts = hosts
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._formats: dict[tuple[str, str], str] = {}

    async def invoke(self, invocation: Invocation) -> Any:
        """See `Engine.invoke`; the answer is a JSON object, or the text when it is not exactly one.

        Raises:
            AgentOverLimit: prompt and answer do not fit into `limits.context_tokens`, or the answer is too long.
            AgentAddressRefused: the endpoint's address leads where agents are not reached at.
            AgentUnreachable: the endpoint cannot be reached, is overloaded (`retry_after` says for how long), or
                broke off.
        """
        settings = OpenaiSettings.model_validate(dict(invocation.spec.settings))
        client = self._client(settings, invocation.spec.name)
        try:
            async with asyncio.timeout(invocation.time_limit.total_seconds()):
                await self._hosts.check(settings.base_url, agent=invocation.spec.name)
                text = await self._asked(client, invocation, settings)
        except TimeoutError as error:
            raise timed_out(invocation) from error
        if not _is_object(text):
            return text  # the contract says what is wrong with it, or its declared hook unwraps it
        trusted = ForeignSettings(max_confidence=settings.max_confidence)
        label = f"{settings.model} answered as {invocation.spec.name}"
        return attributed(text, invocation, trusted, label=label, location=settings.base_url)

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()

    def _client(self, settings: OpenaiSettings, agent: str) -> "AsyncOpenAI":
        key = ""
        if settings.api_key_env is not None:
            key = self._environment.get(settings.api_key_env, "").strip()
            if not key:
                raise AgentCrashed(
                    f"the environment variable {settings.api_key_env} that holds the key of {agent} is not set",
                    next_step=f"Start the server with {settings.api_key_env} set.",
                    agent=agent,
                )
        place = (settings.base_url, key)
        if place not in self._clients:
            from openai import AsyncOpenAI

            from agents.engines.openai_http import counting_client

            self._clients[place] = AsyncOpenAI(
                # The SDK insists on a key; an endpoint that asks for none is sent a word that is no secret.
                api_key=key or "none",
                base_url=settings.base_url,
                max_retries=0,
                http_client=counting_client(),
            )
        return self._clients[place]

    async def _asked(self, client: "AsyncOpenAI", invocation: Invocation, settings: OpenaiSettings) -> str:
        from openai import APIStatusError

        place = (settings.base_url, settings.model)
        start = _FORMATS.index(self._formats.get(place, _FORMATS[0]))
        for form in _FORMATS[start:]:
            try:
                text = await self._answer(client, invocation, settings, form)
            except APIStatusError as error:
                if error.status_code in _REFUSED and form != _FORMATS[-1]:
                    continue
                # Without its cause: that quotes what the endpoint said, and some repeat the key.
                raise _status_error(error, invocation.spec.name, self._secrets()) from None
            if self._formats.setdefault(place, form) != form:
                self._formats[place] = form
            return text
        raise InternalError("the last form either answers or raises")

    async def _answer(
        self, client: "AsyncOpenAI", invocation: Invocation, settings: OpenaiSettings, form: str
    ) -> str:
        spec = invocation.spec
        messages, response_format = messages_of(invocation, settings), _response_format(invocation, form)
        needed = estimated_tokens(messages, response_format) + settings.max_output_tokens
        if needed > spec.limits.context_tokens:
            raise AgentOverLimit(
                f"{spec.name} would need about {needed} tokens, {settings.max_output_tokens} of them to answer; "
                f"its limit context_tokens is {spec.limits.context_tokens}",
                agent=spec.name,
            )
        extra: dict[str, Any] = {} if response_format is None else {"response_format": response_format}
        async with _mapped(invocation, self._secrets()):
            _allow(_room(invocation, settings))
            stream: Any = await client.chat.completions.create(
                model=settings.model,
                messages=messages,  # type: ignore[arg-type]  # plain dicts of the SDK's message type
                temperature=settings.temperature,
                max_tokens=settings.max_output_tokens,
                stream=True,
                timeout=invocation.time_limit.total_seconds(),
                **extra,
            )
            async with stream:
                return await _collected(stream, invocation, settings)

    def _secrets(self) -> tuple[str, ...]:
        return tuple(key for _, key in self._clients if key)


async def _collected(stream: Any, invocation: Invocation, settings: OpenaiSettings) -> str:
    """The whole text of a streamed answer that ended well."""
    name, limits = invocation.spec.name, invocation.spec.limits
    parts: list[str] = []
    size, reason, refusal = 0, None, ""
    async for chunk in stream:
        for choice in chunk.choices[:1]:
            delta, reason = choice.delta, choice.finish_reason or reason
            refusal += str(getattr(delta, "refusal", None) or "")[:1000]
            part = delta.content or ""
            size += len(part.encode("utf-8", "surrogatepass"))
            if size > limits.max_output_bytes:
                raise AgentOverLimit(
                    f"{name} answered with more than its limit max_output_bytes of {limits.max_output_bytes}",
                    agent=name,
                )
            parts.append(part)
    if refusal:
        raise AgentCrashed(f"the model of {name} refused: {said(refusal)}", agent=name)
    if reason == "length":
        raise AgentOverLimit(
            f"the answer of {name} was cut off at its setting max_output_tokens of {settings.max_output_tokens}",
            next_step="Raise max_output_tokens in the settings of its manifest, or ask for a shorter answer.",
            agent=name,
        )
    if reason == "content_filter":
        raise AgentCrashed(f"the endpoint of {name} withheld the answer (content_filter)", agent=name)
    if reason is None:
        raise AgentUnreachable(f"the endpoint of {name} broke off in the middle of its answer", agent=name)
    if reason != "stop":
        raise AgentCrashed(f"the model of {name} ended with {said(reason)} instead of an answer", agent=name)
    return "".join(parts)


@asynccontextmanager
async def _mapped(invocation: Invocation, secrets: tuple[str, ...]) -> AsyncIterator[None]:
    """Turn what the SDK and the HTTP client raise into errors of the agent; statuses are left to the caller."""
    import httpx2
    import openai

    from agents.engines.openai_http import AnswerTooLong

    name = invocation.spec.name
    try:
        yield
    except (openai.APIStatusError, AgentError):
        raise
    except openai.APITimeoutError as error:
        raise timed_out(invocation) from error
    except (openai.OpenAIError, httpx2.HTTPError, AnswerTooLong, *_NONSENSE) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, AnswerTooLong):
            cause = cause.__cause__
        if isinstance(cause, AnswerTooLong):
            raise AgentOverLimit(
                f"the endpoint of {name} sent more than {cause.limit_bytes} bytes; its limit max_output_bytes of "
                f"{invocation.spec.limits.max_output_bytes} leaves no room for more",
                agent=name,
            ) from error
        if isinstance(error, httpx2.TimeoutException):
            raise timed_out(invocation) from error
        text = _without(str(error), secrets)
        if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
            raise AgentUnreachable(
                f"the endpoint of {name} cannot be reached: {said(text)}", agent=name
            ) from error
        raise AgentCrashed(f"the endpoint of {name} answered nonsense: {said(text)}", agent=name) from error


def _status_error(error: "APIStatusError", name: str, secrets: tuple[str, ...]) -> AgentError:
    status, text = error.status_code, said(_without(error.message, secrets))
    if status == 429:
        return AgentUnreachable(
            f"the endpoint of {name} has too many requests (429): {text}",
            retry_after=_retry_after(error.response.headers.get("retry-after", "")),
            agent=name,
        )
    if status >= 500:
        return AgentUnreachable(f"the endpoint of {name} failed ({status}): {text}", agent=name)
    return AgentCrashed(f"the endpoint of {name} refused the call ({status}): {text}", agent=name)


def _retry_after(header: str) -> timedelta | None:
    # The other form, a date, depends on two clocks; without a number our own delays are as good.
    if not header.isdecimal() or len(header) > 9:
        return None
    return min(timedelta(seconds=int(header)), _LONGEST_RETRY_AFTER)


def _without(text: str, secrets: tuple[str, ...]) -> str:
    """An endpoint may repeat the key that it did not like."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def _response_format(invocation: Invocation, form: str) -> dict[str, Any] | None:
    if form == "none":
        return None
    if form == "json_object":
        return {"type": "json_object"}
    schema = {"name": invocation.spec.name, "schema": dict(invocation.spec.output_schema), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _room(invocation: Invocation, settings: OpenaiSettings) -> int:
    per_token = _ROOM_PER_TOKEN_BYTES * settings.max_output_tokens
    return _ROOM_BYTES + 2 * invocation.spec.limits.max_output_bytes + per_token


def _allow(room_bytes: int) -> None:
    from agents.engines.openai_http import answer_room_bytes

    answer_room_bytes.set(room_bytes)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
