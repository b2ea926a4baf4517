"""One endpoint of remote agents: its connection, whether it is healthy, how busy it is."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from agents.engines.grpc_breaker import Breaker
from podium.link import Address

_LOG = logging.getLogger(__name__)

SERVICE = "podium.v1.AgentService"
_ROOM_BYTES = 4_096
_DESCRIPTION_BYTES = 262_144
"""Descriptions come over the same connection as answers."""
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_UNUSED_S = 600.0
"""An endpoint that was not called for so long is no longer watched."""
_CLOSES_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTrust:
    """What is shown to agent hosts, and which of their certificates are good."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    trusted: frozenset[bytes] = field(repr=False)
    """PEM certificates: of the hosts themselves, or of an authority."""


TrustNow = Callable[[], HostTrust | None]
"""None: in clear, on loopback."""


class Endpoint:
    """Belongs to one event loop."""

    def __init__(
        self, target: str, trust: TrustNow, *, max_output_bytes: int, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Connect to nothing yet.

        Args:
            target: HOST:PORT.
            trust: asked before every call; what it says may change.
            max_output_bytes: of an answer.
            clock_s: a clock that never goes back.
        """
        self.target = target
        self.breaker = Breaker(clock_s)
        self.last_failure = ""
        """In words."""
        self.in_flight = 0
        self.healthy: bool | None = None
        """As its health service says; None when nobody knows."""
        self.described: set[tuple[str, ...]] = set()
        """Agents that were compared with their manifests over the present connection."""
        self._trust = trust
        self._trusted: HostTrust | None = None
        self._max_bytes = max(max_output_bytes, _DESCRIPTION_BYTES) + _ROOM_BYTES
        self._clock_s = clock_s
        self._channel: grpc.aio.Channel | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._used_s = clock_s()

    @property
    def address(self) -> Address:
        """For errors in words."""
        return Address(target=self.target, ca_pem=None if self._trusted is None else b"")

    def channel(self) -> grpc.aio.Channel:
        """The connection, made anew when what is trusted has changed; its health is watched from now on."""
        self._used_s = self._clock_s()
        trust = self._trust()
        if self._channel is None or trust != self._trusted:
            self._leave(grace_s=_CLOSES_WITHIN_S)
            self._trusted = trust
            self._channel = self._connected(trust)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(self._channel))
        return self._channel

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment, as far as gRPC knows."""
        return self._channel is not None and self._channel.get_state() is grpc.ChannelConnectivity.READY

    @contextmanager
    def called(self) -> Iterator[None]:
        """Count a call."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    def distrust(self) -> int:
        """End the connection if a certificate that it was made with is no longer good; how many calls it had."""
        trust = self._trust()
        if self._channel is None or self._trusted is None:
            return 0
        if trust is not None and self._trusted.trusted <= trust.trusted:
            return 0
        ended = self.in_flight
        self._leave(grace_s=None)
        return ended

    async def close(self) -> None:
        """End the connection and everything on it."""
        self._leave(grace_s=None)
        if self._closing:
            await asyncio.wait(self._closing)

    def _leave(self, *, grace_s: float | None) -> None:
        channel, self._channel = self._channel, None
        self.described.clear()
        self.healthy = None
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if channel is not None:
            closing = asyncio.create_task(channel.close(grace_s if self.in_flight else None))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _connected(self, trust: HostTrust | None) -> grpc.aio.Channel:
        options: list[tuple[str, Any]] = [
            # A black hole is noticed within 15 s.
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 5_000),
            ("grpc.http2.ping_timeout_ms", 5_000),
            ("grpc.http2.max_pings_without_data", 0),
            # Of the message as it is after decompression, too.
            ("grpc.max_receive_message_length", self._max_bytes),
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.min_reconnect_backoff_ms", 1_000),
            ("grpc.max_reconnect_backoff_ms", 1_000),
            ("grpc.dns_min_time_between_resolutions_ms", 1_000),
            # The runner decides about another attempt; gRPC must not send a write twice by itself.
            ("grpc.enable_retries", 0),
            ("grpc.service_config", json.dumps({})),
        ]
        if trust is None:
            return grpc.aio.insecure_channel(self.target, options=options)
        credentials = grpc.ssl_channel_credentials(
            # Without a certificate that is trusted, an empty text would mean the authorities of the system.
            root_certificates=b"".join(sorted(trust.trusted)) or trust.certificate_pem,
            private_key=trust.key_pem,
            certificate_chain=trust.certificate_pem,
        )
        return grpc.aio.secure_channel(self.target, credentials, options=options)

    async def _watch(self, channel: grpc.aio.Channel) -> None:
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        watch = health_pb2_grpc.HealthStub(channel).Watch
        pause_s = _FIRST_PAUSE_S
        while self._clock_s() - self._used_s < _UNUSED_S:
            try:
                async for response in watch(health_pb2.HealthCheckRequest(service=SERVICE)):
                    self.healthy = response.status == health_pb2.HealthCheckResponse.SERVING
                    if self.healthy:
                        self.breaker.succeeded()  # back: nobody need wait for the end of the pause
                        pause_s = _FIRST_PAUSE_S
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    self.healthy = None  # a host without a health service is as good as its answers
                    return
                if self.healthy is not False:  # once, not at every attempt
                    _LOG.info("agent host %s is not there: %s", self.target, error.code().name)
            self.healthy = False
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
