"""`podium gateway`: Podium as an MCP server or an A2A agent."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloud.commands.connection import (
    DEFAULT_DATA,
    CaOption,
    DataOption,
    ServerOption,
    TokenFileOption,
    running_server,
    serving_address,
)
from podium.cli import emit
from podium.errors import InvalidRequest, ServerUnavailable
from podium.link import Address
from podium.link.tokens import given_token

if TYPE_CHECKING:
    from cloud.gateways.callers import Callers
    from cloud.gateways.http import Listener

app = typer.Typer(name="gateway", no_args_is_help=True)

CertificateOption = Annotated[
    Path | None, typer.Option("--tls-certificate", help="Certificate chain, PEM; needed off loopback.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", help="Its private key, PEM.")]
FirstLineOption = Annotated[bool, typer.Option("--json", help="Print the first line as a JSON object.")]

_MAX_BODY_BYTES = 1024 * 1024
_ANY_HOST = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on


@app.callback()
def gateway() -> None:
    """Offer Podium to clients that speak MCP or A2A; a process of its own in front of a server."""


@app.command()
def mcp(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak on stdin and stdout, for a client that starts this command.")
    ] = False,
    listen: Annotated[
        str, typer.Option("--listen", help="HOST:PORT of the HTTP endpoint (path /mcp); port 0 takes a free one.")
    ] = "127.0.0.1:7480",
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: FirstLineOption = False,
) -> None:
    """Offer Podium as an MCP server: submit_task, get_task, answer_question, cancel_task, list_agents.

    Over HTTP every caller brings a bearer token of its own, which is passed on; only on loopback may callers
    without one use the token that was given with --token-file or PODIUM_TOKEN, never the operator's. Over --stdio
    whoever started it is the caller.
    """
    from cloud.gateways.http import Listener, quiet_libraries
    from podium.telemetry.log_lines import log_to

    log_to(sys.stderr, level="warning")
    quiet_libraries()
    if stdio:
        with serving_address(server, ca, data, token_file) as address:
            asyncio.run(_mcp_stdio(address))
        return
    listener = Listener.of(listen, tls_certificate, tls_key)
    callers = _callers(listener, server, ca, token_file, data)
    asyncio.run(_mcp_http(callers, listener, as_json=as_json))


@app.command()
def a2a(
    listen: Annotated[
        str, typer.Option("--listen", help="HOST:PORT of card, JSON-RPC and REST; port 0 takes a free one.")
    ] = "127.0.0.1:7481",
    listen_grpc: Annotated[
        str, typer.Option("--listen-grpc", help="HOST:PORT of gRPC. Default: the same host, a free port.")
    ] = "",
    host_name: Annotated[
        str, typer.Option("--host-name", help="Name that the card gives for this machine. Default: HOST.")
    ] = "",
    tls_certificate: CertificateOption = None,
    tls_key: KeyOption = None,
    server: ServerOption = None,
    ca: CaOption = None,
    token_file: TokenFileOption = None,
    data: DataOption = DEFAULT_DATA,
    as_json: FirstLineOption = False,
) -> None:
    """Offer Podium as an A2A 1.0 agent: a card with its skills, JSON-RPC, REST and gRPC.

    A task that asks is `input-required`; the next message of the task answers it. Callers bring their tokens as
    with `podium gateway mcp`.
    """
    from cloud.gateways.http import Listener, quiet_libraries
    from podium.telemetry.log_lines import log_to

    log_to(sys.stderr, level="warning")
    quiet_libraries()
    listener = Listener.of(listen, tls_certificate, tls_key)
    host = listen.rpartition(":")[0]
    grpc_listener = Listener.of(listen_grpc or f"{host}:0", tls_certificate, tls_key)
    if grpc_listener.local != listener.local:
        raise InvalidRequest(
            "--listen and --listen-grpc must both be on loopback, or neither", field="listen_grpc"
        )
    callers = _callers(listener, server, ca, token_file, data)
    wanted = listen_grpc or f"{host}:0"
    asyncio.run(_a2a(callers, listener, wanted, host_name or host, as_json=as_json))


def _callers(
    listener: "Listener", server: str | None, ca: Path | None, token_file: Path | None, data: Path
) -> "Callers":
    """Who may call over HTTP, and the server that is called.

    The operator's token, which commands take from the data directory, is not lent: whoever reaches the gateway
    would be an administrator. A token that was given by name is, on loopback.
    """
    from cloud.gateways.callers import Callers

    given = given_token(token_file, os.environ)
    if server is None and running_server(data, given) is None:
        raise ServerUnavailable(f"no server runs on {data}", next_step="Start `podium serve`, or give --server.")
    with ExitStack() as stack:
        # Nothing is started for it: the server runs, or is elsewhere.
        address = stack.enter_context(serving_address(server, ca, data, token_file))
    return Callers(address=address, token_required=not listener.local or (bool(address.token) and not given))


async def _mcp_stdio(address: Address) -> None:
    from mcp.server.stdio import stdio_server

    from cloud.gateways.callers import Callers
    from cloud.gateways.mcp import McpGateway

    mcp_server = McpGateway(Callers(address=address, token_required=False)).server
    async with stdio_server() as (read, write):
        await mcp_server.run(read, write, mcp_server.create_initialization_options())


async def _mcp_http(callers: "Callers", listener: "Listener", *, as_json: bool) -> None:
    from cloud.gateways.http import Guard, bound, serve
    from cloud.gateways.mcp import McpGateway

    application = McpGateway(callers).server.streamable_http_app(
        host=listener.host, max_request_body_size=_MAX_BODY_BYTES
    )
    guarded = Guard(
        application,  # type: ignore[arg-type]  # ASGI, with mutable mappings where we say dict
        callers,
        local=listener.local,
        max_body_bytes=_MAX_BODY_BYTES,
        open_paths=frozenset(),
    )
    with bound(listener) as (listening, port):
        url = f"{listener.scheme}://{_in_url(listener.host)}:{port}/mcp"
        await serve(guarded, listening, listener, started=_announcing({"url": url}, as_json), stop=_told_to_stop())


async def _a2a(callers: "Callers", listener: "Listener", grpc_wanted: str, host: str, *, as_json: bool) -> None:
    from cloud.gateways.a2a_serving import SkillBook, grpc_application, http_application, interfaces
    from cloud.gateways.http import bound, serve
    from cloud.tls import Shown, given_identity

    shown = None
    if listener.certificate is not None and listener.key is not None:
        shown = Shown(partial(given_identity, listener.certificate, listener.key))
    grpc_front, grpc_port = grpc_application(callers, grpc_wanted, shown)
    with bound(listener) as (listening, port):
        book = SkillBook(callers, interfaces(listener, port, grpc_port, host))
        app_ = http_application(callers, book, local=listener.local)
        await grpc_front.start()
        said = {"url": f"{listener.scheme}://{host}:{port}", "grpc": f"{host}:{grpc_port}"}
        try:
            await serve(app_, listening, listener, started=_announcing(said, as_json), stop=_told_to_stop())
        finally:
            await grpc_front.stop(2)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _announcing(said: dict[str, str], as_json: bool) -> Callable[[], None]:
    def announce() -> None:
        if as_json:
            emit({**said, "pid": os.getpid()})
        else:
            sys.stdout.write("listening on " + ", gRPC on ".join(said.values()) + "\n")
            sys.stdout.flush()

    return announce


def _told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
