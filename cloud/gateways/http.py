"""The HTTP front of a gateway: bounded requests, known callers, no pages of other sites, TLS off loopback."""

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn

from cloud.gateways.callers import Callers
from cloud.serving import AddressUnavailable
from podium.errors import InvalidRequest, PodiumError, Unauthenticated
from podium.link import is_loopback

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_STREAMS_END_WITHIN_S: Final = 2
_MAX_HEADER_BYTES: Final = 32_768
_MAX_CONNECTIONS: Final = 512
_STATUS: Final = {"UNAUTHENTICATED": 401, "SERVER_UNAVAILABLE": 503}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where a gateway listens and how it shows who it is."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, wanted: str, certificate: Path | None, key: Path | None) -> "Listener":
        """Check what a person asked for.

        Raises:
            InvalidRequest: not HOST:PORT, or off loopback without a certificate and its key.
        """
        host, _, port = wanted.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise InvalidRequest(f"{wanted!r} is not HOST:PORT", field="listen")
        if (certificate is None) != (key is None):
            raise InvalidRequest("give both --tls-certificate and --tls-key", field="tls_certificate")
        if certificate is None and not is_loopback(host):
            raise InvalidRequest(
                f"{host} can be reached from other machines, so it is only listened on with TLS",
                next_step="Give --tls-certificate and --tls-key, or listen on 127.0.0.1.",
                field="listen",
            )
        for path in filter(None, (certificate, key)):
            if not path.is_file():
                raise InvalidRequest(f"{path} is not a file", field="tls_certificate")
        return cls(host=host.strip("[]"), port=int(port), certificate=certificate, key=key)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        """`http`, or `https` with a certificate."""
        return "http" if self.certificate is None else "https"


@contextmanager
def bound(listener: Listener) -> Iterator[tuple[socket.socket, int]]:
    """The listening socket and its port.

    Raises:
        AddressUnavailable: it is taken or not of this machine.
    """
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    try:
        listening = socket.create_server((listener.host, listener.port), family=family)
    except OSError as error:
        raise AddressUnavailable(f"cannot listen on {listener.host}:{listener.port}: {error.strerror}") from error
    with listening:
        yield listening, listening.getsockname()[1]


async def serve(
    app: Application,
    listening: socket.socket,
    listener: Listener,
    *,
    started: Callable[[], None],
    stop: asyncio.Event,
) -> None:
    """Serve until told to stop.

    Args:
        app: ASGI application, already guarded.
        listening: its socket.
        listener: as it was asked for.
        started: called once requests are taken.
        stop: ends it.
    """
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ssl_certfile=listener.certificate,
            ssl_keyfile=listener.key,
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_STREAMS_END_WITHIN_S,
            lifespan="on",
        ),
        started,
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    stopped.cancel()
    await serving


class _Server(uvicorn.Server):
    """Leaves the process's signals to whoever started it."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._said = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._said()


class Guard:
    """Wraps an application: only known callers and bounded requests get through."""

    def __init__(
        self, app: Application, callers: Callers, *, local: bool, max_body_bytes: int, open_paths: frozenset[str]
    ) -> None:
        """Wrap an application.

        Args:
            app: what is guarded.
            callers: knows whom the server knows.
            local: only this machine can reach it: then a page of another site must not, by way of the browser.
            max_body_bytes: of one request.
            open_paths: need no token, such as an agent's card.
        """
        self._app = app
        self._callers = callers
        self._local = local
        self._max_body_bytes = max_body_bytes
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI asks for."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self._local and not _from_here(headers):
            await _refuse(send, 403, "FORBIDDEN", "requests of other sites' pages are not taken")
            return
        if _length(headers) > self._max_body_bytes:
            await _refuse_size(send, self._max_body_bytes)
            return
        if scope["path"] not in self._open_paths:
            try:
                await self._callers.check(headers.get("authorization"))
            except PodiumError as error:
                await _refuse(send, _STATUS.get(error.code, 502), error.code, error.message)
                return
        exchange = _Bounded(receive, send, self._max_body_bytes)
        await self._app(scope, exchange.receive, exchange.send)


class _Bounded:
    """A body that does not say its length is cut off where it becomes too large.

    To the application its sender has gone away; the sender is told the reason instead of what comes of that.
    """

    def __init__(self, receive: Receive, send: Send, max_bytes: int) -> None:
        self._receive = receive
        self._send = send
        self._max_bytes = max_bytes
        self._received = 0
        self._started = False
        self._refused = False

    async def receive(self) -> dict[str, Any]:
        message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > self._max_bytes:
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: dict[str, Any]) -> None:
        if self._received <= self._max_bytes or self._started:
            self._started = True
            await self._send(message)
        elif not self._refused:
            self._refused = True
            await _refuse_size(self._send, self._max_bytes)


def _length(headers: Mapping[str, str]) -> int:
    given = headers.get("content-length", "0")
    return int(given) if given.isdecimal() and len(given) < 19 else 2**63


def _from_here(headers: Mapping[str, str]) -> bool:
    """A name that leads to this machine only by a trick of DNS, or a page of another site, is not from here."""
    origin = headers.get("origin")
    try:
        hosts = [urlsplit(f"//{headers.get('host', '')}").hostname]
        if origin is not None:
            hosts.append(urlsplit(origin).hostname)
    except ValueError:  # as of http://[
        return False
    return all(host is not None and is_loopback(host) for host in hosts)


async def _refuse_size(send: Send, max_bytes: int) -> None:
    await _refuse(send, 413, "LIMIT_EXCEEDED", f"the request has more than {max_bytes} bytes")


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == _STATUS[Unauthenticated.code]:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def quiet_libraries() -> None:
    """Keep what requests say out of the log: the SDKs quote bodies and messages in theirs."""
    for name in ("a2a", "mcp", "client", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
