"""`AgentHost`: takes functions in as agents and serves them until it is stopped."""

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import grpc

from podium.agent_host.checking import Checks
from podium.agent_host.credentials import HostCredentials, admit_conductors
from podium.agent_host.declaration import Declaration, read_manifest
from podium.agent_host.errors import HostAddressUnavailable
from podium.agent_host.execution import AgentFunction, Executor
from podium.agent_host.outcomes import Outcomes
from podium.agent_host.service import AgentService, HostedAgent
from podium.errors import Conflict, InvalidRequest
from podium.link import is_loopback
from podium.v1 import agent_pb2_grpc

F = TypeVar("F", bound=Callable[..., Any])

_LOG = logging.getLogger(__name__)

SERVICE = "podium.v1.AgentService"
_ROOM_BYTES = 65_536
"""What a message has beside the inputs."""
_STREAMS_END_WITHIN_S = 1.0


def say_where(address: str) -> None:
    """The first line of a host on stdout: who starts it learns the port."""
    sys.stdout.write(f"listening on {address}\n")
    sys.stdout.flush()


class AgentHost:
    """Serves agents to Podium servers. `run` blocks until SIGTERM, SIGINT or `stop`."""

    def __init__(
        self,
        *,
        listen: str = "127.0.0.1:0",
        identity: Path | None = None,
        insecure_loopback: bool = False,
        threads: int = 8,
        waiting: int = 64,
        grace: timedelta = timedelta(seconds=30),
        outcomes: Path | None = None,
    ) -> None:
        """Take agents in; nothing listens yet.

        Args:
            listen: HOST:PORT; port 0 takes a free one.
            identity: the folder that `podium enroll --kind agent_host` wrote.
            insecure_loopback: in place of an identity: no TLS, everybody on this machine may call.
            threads: calls at once.
            waiting: further calls that may wait for a thread.
            grace: how long a stop waits for calls that run.
            outcomes: file that remembers what came of writes; in memory when None.

        Raises:
            InvalidRequest, IdentityUnusable: an argument cannot be used.
        """
        host, separator, port = listen.rpartition(":")
        if not separator or not host or not port.isdecimal() or int(port) > 65535:
            raise InvalidRequest(f"{listen!r} is not HOST:PORT", field="listen")
        if (identity is None) != insecure_loopback:
            raise InvalidRequest(
                "a host needs either its identity or to be told that it may do without TLS",
                next_step="Give the folder that `podium enroll` wrote, or insecure_loopback on loopback.",
                field="identity",
            )
        if insecure_loopback and not is_loopback(host):
            raise InvalidRequest(f"{host} is not on this machine, so it is only served with TLS", field="listen")
        self.address = listen
        """HOST:PORT, with the port that is really listened on once it serves."""
        self._credentials = HostCredentials(identity) if identity is not None else None
        self._threads, self._waiting, self._grace = threads, waiting, grace
        self._outcomes_file = outcomes
        self._agents: dict[tuple[str, str], HostedAgent] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    def agent(
        self,
        name: str = "",
        *,
        version: str = "",
        manifest: str | Path | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Callable[[F], F]:
        """Make an agent of a function `f(inputs, context)`, plain or coroutine; use it as a decorator.

        Args:
            name: the agent's name; may be left out when the manifest says it.
            version: the agent's version; as for the name.
            manifest: file with the manifest; relative to the file of the function.
            input_schema: in place of a manifest, with name, version and `output_schema`.
            output_schema: JSON Schema of what the function returns.
            fields: further fields of a manifest, e.g. `side_effects`.

        Raises:
            InvalidRequest: the manifest cannot be used, or says something else than the arguments.
            Conflict: the host has this version of the agent already.
        """
        given = {"name": name, "version": version, "input_schema": input_schema, "output_schema": output_schema}
        given = {field: value for field, value in {**given, **fields}.items() if value not in ("", None)}

        def take(function: F) -> F:
            raw: dict[str, Any] = dict(given)
            if manifest is not None:
                raw = dict(read_manifest(_beside(function, Path(manifest))))
                for field, value in given.items():
                    if raw.get(field) != value:
                        raise InvalidRequest(f"{manifest} says another {field} than the code", field=field)
            self.add(Declaration.of(raw, named=str(manifest or name or function.__name__)), function)
            return function

        return take

    def add(self, declaration: Declaration, function: AgentFunction) -> None:
        """Take an agent in whose declaration is made already.

        Raises:
            InvalidRequest: its schemas are none.
            Conflict: the host has this version of the agent already.
        """
        key = (declaration.name, declaration.version)
        if key in self._agents:
            raise Conflict(
                f"the host has {declaration.name} {declaration.version} already",
                next_step="Give the manifest another version.",
                agent=declaration.name,
            )
        self._agents[key] = HostedAgent(declaration=declaration, checks=Checks(declaration), function=function)

    def run(self, *, on_ready: Callable[[str], None] = say_where) -> None:
        """Serve until SIGTERM, SIGINT or `stop`; then finish what runs and take nothing new.

        Args:
            on_ready: told HOST:PORT once calls are answered.

        Raises:
            HostAddressUnavailable: it cannot listen there.
            DataCorrupt, StorageFull, InternalError: the file of outcomes cannot be used.
        """
        asyncio.run(self._serve_alone(on_ready))

    async def _serve_alone(self, on_ready: Callable[[str], None]) -> None:
        await self.serve(on_ready=on_ready)
        # A stopped server leaves tasks of streams that it ended, such as the watch of a conductor; a loop that
        # closes before they are done has gRPC print a traceback for each.
        if left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=_STREAMS_END_WITHIN_S)

    def stop(self) -> None:
        """Have `run` end; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, *, on_ready: Callable[[str], None] = say_where) -> None:
        """As `run`, on a loop that is running already."""
        from grpc_health.v1 import health, health_pb2, health_pb2_grpc
        from grpc_reflection.v1alpha import reflection

        self._loop = asyncio.get_running_loop()
        self._stopping.clear()
        self._end_on_signals()
        with Outcomes(self._outcomes_file, clock=lambda: datetime.now(UTC)) as outcomes:
            server = grpc.aio.server(options=self._options())
            service = AgentService(
                self._agents,
                Executor(threads=self._threads, waiting=self._waiting),
                outcomes,
                admit=admit_conductors if self._credentials is not None else lambda _: None,
                software_version=software_version(),
            )
            agent_pb2_grpc.add_AgentServiceServicer_to_server(service, server)
            health_service = health.aio.HealthServicer()  # type: ignore[attr-defined]  # exported without a stub
            health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
            reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
            self.address = self._listen(server)
            await server.start()
            renewing = None
            if self._credentials is not None:
                renewing = asyncio.create_task(self._credentials.renewal().run())
            try:
                for name in ("", SERVICE):
                    await health_service.set(name, health_pb2.HealthCheckResponse.SERVING)
                on_ready(self.address)
                await self._stopping.wait()
                service.draining = True
                await health_service.enter_graceful_shutdown()
                await self._drain(service)
            finally:
                if renewing is not None:
                    renewing.cancel()
                await server.stop(_STREAMS_END_WITHIN_S)

    async def _drain(self, service: AgentService) -> None:
        try:
            async with asyncio.timeout(self._grace.total_seconds()):
                await service.drained()
        except TimeoutError:
            _LOG.warning("calls still ran %g s after the stop; they are given up", self._grace.total_seconds())

    def _listen(self, server: grpc.aio.Server) -> str:
        try:
            if self._credentials is None:
                port = server.add_insecure_port(self.address)
            else:
                port = server.add_secure_port(self.address, self._credentials.for_server())
        except RuntimeError as error:
            raise HostAddressUnavailable(
                f"cannot listen on {self.address}: it is taken or not of this machine"
            ) from error
        return f"{self.address.rpartition(':')[0]}:{port}"

    def _options(self) -> list[tuple[str, Any]]:
        largest = max((agent.declaration.max_input_bytes for agent in self._agents.values()), default=0)
        return [
            ("grpc.max_receive_message_length", largest + _ROOM_BYTES),
            ("grpc.so_reuseport", 0),
            # A server that was cut off is noticed, and its calls are cancelled.
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            # Servers ping more often than gRPC allows by default, to notice a dead host.
            ("grpc.http2.min_ping_interval_without_data_ms", 2_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ]

    def _end_on_signals(self) -> None:
        if threading.current_thread() is threading.main_thread() and self._loop is not None:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._stopping.set)


def _beside(function: Callable[..., Any], manifest: Path) -> Path:
    code = getattr(function, "__code__", None)
    return Path(code.co_filename).parent / manifest if code is not None else manifest


def software_version() -> str:
    """Of the Podium that is installed; '' where none is."""
    try:
        return f"podium {version('podium')}"
    except PackageNotFoundError:
        return "podium"
