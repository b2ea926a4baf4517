"""`GET /metrics` and nothing else, however rude the client is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from cloud.serving import AddressUnavailable
from cloud.telemetry import metrics_page
from cloud.telemetry.metrics_page import MetricsPage


async def _text() -> bytes:
    return b"podium_x 1\n"


@asynccontextmanager
async def _serving(page: Callable[[], Awaitable[bytes]] = _text) -> AsyncIterator[int]:
    server = MetricsPage(page)
    address = await server.listen("127.0.0.1:0")
    try:
        yield int(address.rpartition(":")[2])
    finally:
        server.close()


async def _said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200", b"podium_x 1\n"),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", b"200", b"podium_x 1\n"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b"404", b""),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", b"404", b""),
        (b"GET //metrics HTTP/1.1\r\n\r\n", b"404", b""),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405", b""),
        (b"nonsense\r\n\r\n", b"400", b""),
        (b"\xff\xfe\x00\r\n\r\n", b"400", b""),
        (b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", b"400", b""),
    ],
)
def test_one_page_is_served_and_all_else_refused(request_: bytes, status: bytes, body: bytes) -> None:
    async def ask() -> bytes:
        async with _serving() as port:
            return await _said(port, request_)

    answer = asyncio.run(ask())
    if len(request_) < 8192 or answer:  # the kernel may drop an answer to bytes that nobody reads any more
        assert answer.split(b" ")[1] == status
        assert answer.partition(b"\r\n\r\n")[2] == body


def test_clients_that_say_nothing_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "_WITHIN_S", 0.3)

    async def ask() -> bytes:
        async with _serving() as port:
            slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
            for _, writer in slow:
                with contextlib.suppress(ConnectionError):
                    writer.write(b"GET /met")
            answer = b""
            async with asyncio.timeout(20):
                while not answer:
                    answer = await _said(port, b"GET /metrics HTTP/1.1\r\n\r\n")
            for reader, writer in slow:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b"", "each was cut off"
                writer.close()
            return answer

    assert b" 200 " in asyncio.run(ask())


def test_an_address_that_is_taken_is_said() -> None:
    async def listen_twice() -> None:
        async with _serving() as port:
            await MetricsPage(_text).listen(f"127.0.0.1:{port}")

    with pytest.raises(AddressUnavailable, match="metrics"):
        asyncio.run(listen_twice())
