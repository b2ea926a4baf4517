"""The A2A gateway's ports: card, JSON-RPC and REST over HTTP, and gRPC."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import grpc
from a2a.server.request_handlers import GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import AgentCard, AgentInterface
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.applications import Starlette

from cloud.gateways.a2a import A2aGateway
from cloud.gateways.a2a_tasks import podium_card
from cloud.gateways.callers import Callers
from cloud.gateways.http import Application, Guard, Listener
from cloud.serving import grpc_server, listen
from cloud.tls import Shown
from podium.errors import PodiumError
from podium.v1 import agent_pb2

_LOG = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Files travel in messages, so there is room for a page; larger ones go through BlobService."""
_RPC_PATH: Final = "/rpc"
_CARD_IS_GOOD_FOR_S: Final = 60.0


class SkillBook:
    """What the card says Podium can do, looked up at the server at most once a minute."""

    def __init__(
        self,
        callers: Callers,
        interfaces: Sequence[AgentInterface],
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with a card that says that any request is taken."""
        self._callers = callers
        self._interfaces = interfaces
        self._clock_s = clock_s
        self._looked_at_s: float | None = None
        self.card = self._card([])

    async def current(self, _: AgentCard) -> AgentCard:
        """The card of now; without a token of its own the gateway names no packs."""
        due = self._looked_at_s is None or self._clock_s() - self._looked_at_s > _CARD_IS_GOOD_FOR_S
        if due and not self._callers.token_required:
            self._looked_at_s = self._clock_s()
            try:
                async with self._callers.client(None) as client:
                    self.card = self._card(await client.agents())
            except PodiumError as error:
                _LOG.warning("the card keeps its old skills: %s", error.code)
        return self.card

    def _card(self, agents: Sequence[agent_pb2.AgentDescription]) -> AgentCard:
        return podium_card(agents, self._interfaces, token_required=self._callers.token_required)


def interfaces(listener: Listener, http_port: int, grpc_port: int, host: str) -> list[AgentInterface]:
    """The ways to the agent, as its card names them.

    Args:
        listener: where it listens.
        http_port: the port that was really taken.
        grpc_port: the same of gRPC.
        host: name that others reach this machine by.
    """
    url = f"{listener.scheme}://{host}:{http_port}"
    grpc_url = f"{listener.scheme}://{host}:{grpc_port}" if listener.scheme == "https" else f"{host}:{grpc_port}"
    return [
        AgentInterface(url=f"{url}{_RPC_PATH}", protocol_binding="JSONRPC", protocol_version="1.0"),
        AgentInterface(url=grpc_url, protocol_binding="GRPC", protocol_version="1.0"),
        AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0"),
    ]


def http_application(callers: Callers, book: SkillBook, *, local: bool) -> Application:
    """Card, JSON-RPC and REST, guarded; the card needs no token."""
    gateway = A2aGateway(callers)
    app = Starlette(
        routes=[
            *create_agent_card_routes(book.card, card_modifier=book.current),
            *create_jsonrpc_routes(gateway, _RPC_PATH),
            *create_rest_routes(gateway),
        ]
    )
    return Guard(
        app,  # type: ignore[arg-type]  # ASGI, with mutable mappings where we say dict
        callers,
        local=local,
        max_body_bytes=MAX_BODY_BYTES,
        open_paths=frozenset({AGENT_CARD_WELL_KNOWN_PATH}),
    )


def grpc_application(callers: Callers, wanted: str, shown: Shown | None) -> tuple[grpc.aio.Server, int]:
    """The gRPC server, not yet started, and its port.

    Raises:
        AddressUnavailable: it is taken or not of this machine.
    """
    server = grpc_server([_GrpcGuard(callers)])
    add: Callable[..., None] = a2a_pb2_grpc.add_A2AServiceServicer_to_server
    add(GrpcHandler(A2aGateway(callers)), server)
    return server, int(listen(server, wanted, shown).rpartition(":")[2])


class _GrpcGuard(grpc.aio.ServerInterceptor):
    """Ends calls of unknown callers with UNAUTHENTICATED, which A2A's own errors have no word for."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: grpc.HandlerCallDetails
    ) -> Any:
        given = dict(details.invocation_metadata or ()).get("authorization")
        try:
            await self._callers.check(str(given) if given is not None else None)
        except PodiumError as error:
            return _refusing(error)
        return await continuation(details)


def _refusing(error: PodiumError) -> "grpc.RpcMethodHandler[Any, Any]":
    async def refuse(_: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        await context.abort(error.status, f"{error.code}: {error.message}")

    return grpc.unary_unary_rpc_method_handler(refuse)
