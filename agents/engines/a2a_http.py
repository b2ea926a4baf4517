"""HTTP to an A2A agent: bounded responses, no proxy of the environment, redirects within the same host only."""

import ssl
from collections.abc import AsyncIterator
from typing import Final

import httpx

from podium.telemetry import outgoing

_CONNECTED_WITHIN_S: Final = 10.0
_MAX_REDIRECTS: Final = 3


class ResponseTooLarge(httpx.StreamError):
    """A response was given up because it went on for too long."""


class RedirectedAway(httpx.RequestError):
    """A redirect that leads to another host was not followed."""


def http_client(*, max_response_bytes: int, ca_file: str | None) -> httpx.AsyncClient:
    """A client whose responses end where they become too large.

    Raises:
        OSError: the CA file cannot be read or holds no certificate (ssl.SSLError).
    """
    verify = ssl.create_default_context(cafile=ca_file)
    return httpx.AsyncClient(
        # A compressed response could grow on this side past every bound on what was received.
        headers={"Accept-Encoding": "identity"},
        transport=_Bounded(httpx.AsyncHTTPTransport(verify=verify), max_response_bytes),
        # How long an answer may take is a matter of the call.
        timeout=httpx.Timeout(None, connect=_CONNECTED_WITHIN_S),
        trust_env=False,
    )


async def fetch(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> httpx.Response:
    """Get a document, over redirects that stay on its host.

    Raises:
        RedirectedAway: one leads elsewhere, or there are too many.
        httpx.HTTPError: it cannot be had.
        ResponseTooLarge: it is larger than the client takes.
    """
    wanted = httpx.URL(url)
    for _ in range(_MAX_REDIRECTS):
        response = await client.get(wanted, headers=headers, follow_redirects=False)
        if response.next_request is None:
            response.raise_for_status()
            return response
        location = response.next_request.url
        if (location.scheme, location.host, location.port) != (wanted.scheme, wanted.host, wanted.port):
            raise RedirectedAway(f"redirected to another host, {location.host}")
        wanted = location
    raise RedirectedAway(f"redirected more than {_MAX_REDIRECTS} times")


class _Bounded(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncHTTPTransport, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.update(outgoing())
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx.RemoteProtocolError("the response is compressed although that was not asked for")
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise ResponseTooLarge("the response is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
