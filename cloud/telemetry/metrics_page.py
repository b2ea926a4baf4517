"""`GET /metrics` over HTTP, and nothing else: small enough that nobody can hold it up or make it grow."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cloud.serving import AddressUnavailable

_LOG = logging.getLogger(__name__)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_AT_ONCE = 16
_HEAD_BYTES = 8192
_WITHIN_S = 5.0


class MetricsPage:
    """Serves one page; each connection gets one answer and is closed."""

    def __init__(self, page: Callable[[], Awaitable[bytes]]) -> None:
        """Not listening yet.

        Args:
            page: makes the text.
        """
        self._page = page
        self._server: asyncio.Server | None = None
        self._open = 0

    async def listen(self, wanted: str) -> str:
        """Listen; HOST:PORT with the port that was taken.

        Raises:
            AddressUnavailable: the address is taken or not of this machine.
        """
        host, _, port = wanted.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                self._serve, host.strip("[]"), int(port), limit=_HEAD_BYTES, reuse_address=True
            )
        except OSError as error:
            raise AddressUnavailable(
                f"cannot listen on {wanted} for metrics: it is taken or not of this machine",
                next_step="Choose another with the setting metrics_listen.",
            ) from error
        return f"{host}:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= _AT_ONCE:
            writer.transport.abort()
            return
        self._open += 1
        try:
            async with asyncio.timeout(_WITHIN_S):
                writer.write(await self._answer(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            _LOG.debug("somebody asked for metrics and did not wait, or said nothing")
        finally:
            # Whoever does not read what was written must not keep it in memory.
            writer.transport.abort()
            self._open -= 1

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _response("400 Bad Request")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request")
        if words[1].partition(b"?")[0] != b"/metrics":
            return _response("404 Not Found")
        if words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", more="Allow: GET, HEAD\r\n")
        text = await self._page()
        return _response("200 OK", text, kind=CONTENT_TYPE, head_only=words[0] == b"HEAD")


def _response(
    status: str, body: bytes = b"", *, kind: str = "text/plain", more: str = "", head_only: bool = False
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\nX-Content-Type-Options: nosniff\r\n{more}\r\n"
    )
    return head.encode() + (b"" if head_only else body)
