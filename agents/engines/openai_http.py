"""The HTTP client below the OpenAI SDK: it stops an answer that grows too long while it arrives."""

from collections.abc import AsyncIterator
from contextvars import ContextVar

import httpx2

from podium.telemetry import outgoing

answer_room_bytes: ContextVar[int] = ContextVar("answer_room_bytes")
"""How much the call in progress may receive; set before each call."""


class AnswerTooLong(Exception):
    """The endpoint has sent more than the call may receive."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"more than {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, room_bytes: int) -> None:
        self._stream = stream
        self._room = room_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for part in self._stream:
            received += len(part)
            if received > self._room:
                raise AnswerTooLong(self._room)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class _CountingTransport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # A compressed answer could grow a thousandfold after it was counted.
        request.headers["Accept-Encoding"] = "identity"
        request.headers.update(outgoing())
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed although none was asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response.stream, answer_room_bytes.get())
        return response


def counting_client() -> httpx2.AsyncClient:
    """A client whose answers are counted; it follows no redirect, so a key goes nowhere but where it belongs."""
    return httpx2.AsyncClient(transport=_CountingTransport(), follow_redirects=False, trust_env=False)
