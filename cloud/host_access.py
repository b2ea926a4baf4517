"""What the server shows to agent hosts, and which of their certificates it takes as good at this moment.

It does not trust the authority there, but exactly the certificates that it issued to agent hosts and did not take
back: TLS knows nothing of revocation, and no other machine of the authority can pose as a host.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agents.engines.grpc_endpoints import HostTrust
from cloud.identity.authority import Authority
from cloud.identity.files import key_pem
from cloud.identity.revocation import Revocations

KIND = "agent_host"
_LIFETIME = timedelta(days=800)
"""A host's clock may be a year ahead."""
_MADE_ANEW_EVERY = timedelta(days=100)
"""Of a server that is not restarted for so long. Connections to hosts are made anew then, so not every day."""
_FRESH_S = 1.0
"""So much later a host that was just enrolled is trusted."""


class HostAccess:
    """Safe to ask from threads."""

    def __init__(
        self,
        authority: Authority,
        revocations: Revocations,
        *,
        clock: Callable[[], datetime],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a certificate for this server; its key is never written down.

        Args:
            authority: the server's own, which signed the hosts' certificates too.
            revocations: knows every certificate.
            clock: the server's clock.
            clock_s: a clock that never goes back.
        """
        self._authority = authority
        self._revocations = revocations
        self._clock = clock
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._known: HostTrust | None = None
        self._looked_s = 0.0
        self._make(clock())

    def __call__(self) -> HostTrust:
        """What is shown and trusted now."""
        with self._lock:
            if self._known is None or self._clock_s() - self._looked_s >= _FRESH_S:
                self._looked_s = self._clock_s()
                if abs((now := self._clock()) - self._made) >= _MADE_ANEW_EVERY:
                    self._make(now)
                self._known = HostTrust(
                    certificate_pem=self._certificate_pem,
                    key_pem=self._key_pem,
                    trusted=frozenset(certificate.pem for certificate in self._revocations.good(KIND)),
                )
            return self._known

    def look_again(self) -> None:
        """A certificate was taken back: what was trusted a moment ago does not count."""
        with self._lock:
            self._known = None

    def _make(self, now: datetime) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        # Not on record: at this server's port for machines it opens nothing.
        certificate = self._authority.machine_certificate(
            "worker", "conductor", key.public_key(), now=now, lifetime=_LIFETIME
        )
        self._certificate_pem = certificate.public_bytes(serialization.Encoding.PEM)
        self._key_pem = key_pem(key)
        self._made = now
