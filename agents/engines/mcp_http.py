"""The way to an MCP server over HTTP: bounded responses, no proxy of the environment, no redirect elsewhere."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import httpx2

_CONNECTED_WITHIN_S: Final = 10.0
_SILENT_FOR_AT_MOST_S: Final = 300.0


@dataclass(slots=True)
class CallNotes:
    """What went wrong on the wire during one call, which the SDK reports as one and the same error."""

    too_large: bool = False
    status: int | None = None
    """The HTTP status of a refused request."""
    most_bytes: int | None = None
    """What a response may have, where that is less than what the agent's answer may."""


NOTES: ContextVar[CallNotes | None] = ContextVar("mcp_call_notes", default=None)
"""Of the call that sends; the SDK hands a sender's context to the request it makes."""


def http_client(headers: Mapping[str, str], *, max_response_bytes: int, ca_file: str | None) -> httpx2.AsyncClient:
    """A client whose responses end where they become too large.

    Raises:
        OSError: the CA file cannot be read or holds no certificate (ssl.SSLError).
    """
    verify = ssl.create_default_context(cafile=ca_file)
    return httpx2.AsyncClient(
        # A compressed response could grow on this side past every bound on what was received.
        headers={**headers, "Accept-Encoding": "identity"},
        transport=_Bounded(httpx2.AsyncHTTPTransport(verify=verify), max_response_bytes),
        timeout=httpx2.Timeout(_CONNECTED_WITHIN_S, read=_SILENT_FOR_AT_MOST_S),
        trust_env=False,
    )


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncHTTPTransport, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        notes = NOTES.get()
        if notes is not None and response.status_code >= httpx2.codes.MULTIPLE_CHOICES:
            notes.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the response is compressed although that was not asked for")
        # The stream of notifications (GET) lives as long as the session; the SDK bounds each of its events.
        if request.method == "POST" and isinstance(response.stream, httpx2.AsyncByteStream):
            most = notes.most_bytes if notes is not None else None
            most_bytes = self._max_bytes if most is None else min(most, self._max_bytes)
            response.stream = _BoundedStream(response.stream, most_bytes, notes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int, notes: CallNotes | None) -> None:
        self._inner = inner
        self._left = max_bytes
        self._notes = notes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                if self._notes is not None:
                    self._notes.too_large = True
                raise httpx2.StreamError("the response is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
