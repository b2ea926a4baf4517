"""Who vouches for the server and for its machines, put together from the settings: authority, records, ports."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from agents.audit import AuditLog
from cloud.access import Access
from cloud.host_access import KIND, HostAccess
from cloud.identity.attempts import AttemptLimiter
from cloud.identity.authority import Authority
from cloud.identity.desk import IdentityDesk, IdentityRules
from cloud.identity.files import certificate_from, read
from cloud.identity.revocation import Revocations
from cloud.identity.store import IdentityStore
from cloud.services.identity import IdentityService
from cloud.settings import Settings
from cloud.tls import ServerIdentity, Shown, given_identity, local_identity, names_in
from podium.errors import PodiumError
from podium.link.certificates import CertificateRevoked
from podium.v1 import identity_pb2_grpc

_LOG = logging.getLogger(__name__)

STORE = "identity.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What a server knows about its machines, and what it shows at its two ports."""

    front: Shown | None
    """Shown at the port for callers; None in clear."""
    back: Shown | None
    """Shown at the port for machines; None when there is none."""
    ca_file: Path | None
    """What callers trust the server by; None in clear, or when the operator did not say."""
    desk: IdentityDesk
    hosts: HostAccess
    """What is shown to agent hosts and which of them are trusted."""
    revocations: Revocations
    store: IdentityStore
    _noting: set["asyncio.Task[None]"] = field(default_factory=set)

    @classmethod
    def open(cls, settings: Settings, audit: AuditLog, clock: Callable[[], datetime]) -> "Machines":
        """Put it together; the data directory is locked.

        Raises:
            TlsFilesUnusable: certificates or keys are damaged or do not belong together.
            DatabaseCorrupt, InternalError: the records cannot be used.
        """
        # Also without TLS: a token made now is for the server that runs on this directory later.
        authority = Authority.load_or_make(settings.data / "tls", clock())
        front: Shown | None = None
        back: Shown | None = None
        if not settings.insecure_loopback:
            names = _names(settings)
            if settings.tls_certificate is not None and settings.tls_key is not None:
                look = partial(given_identity, settings.tls_certificate, settings.tls_key, settings.tls_ca)
                front = Shown(look)
                names += names_in(front.now)
            local = _local(authority, names, clock)
            front = front or Shown(local)
            back = Shown(local) if settings.machines_listen else None
        store = IdentityStore(settings.data / STORE)
        try:
            revocations = Revocations(store, clock=clock)
            desk = IdentityDesk(
                store,
                authority,
                revocations,
                audit,
                clock=clock,
                rules=IdentityRules(
                    lifetime=timedelta(hours=settings.machine_lifetime_hours),
                    grace=timedelta(hours=settings.machine_grace_hours),
                    token_lifetime=timedelta(hours=settings.enrolment_token_hours),
                ),
                front_ca_der=_front_ca(settings),
            )
        except BaseException:
            store.close()
            raise
        return cls(
            front=front,
            back=back,
            ca_file=front.now.ca_file if front is not None else None,
            desk=desk,
            hosts=HostAccess(authority, revocations, clock=clock),
            revocations=revocations,
            store=store,
        )

    def serve(
        self,
        server: grpc.aio.Server,
        access: Access,
        audit: AuditLog,
        clock: Callable[[], datetime],
        address: Callable[[], str],
    ) -> None:
        """Add `IdentityService` to a server, and have revocation end live calls.

        Args:
            server: not started yet.
            access: the callers' tokens and the live calls.
            audit: the ledger.
            clock: the server's clock.
            address: HOST:PORT that machines are told to use; '' when there is no port for them.
        """
        self.revocations.on_revoked(
            lambda kind, name: access.live.end(
                kind, name, failure=CertificateRevoked(f"the certificate of {kind} {name} was revoked")
            )
        )
        service = IdentityService(
            self.desk,
            self.revocations,
            tokens=access.tokens,
            live=access.live,
            audit=audit,
            attempts=AttemptLimiter(clock_s=time.monotonic),
            clock=clock,
            machines_address=address,
        )
        identity_pb2_grpc.add_IdentityServiceServicer_to_server(service, server)

    def on_host_revoked(self, end_calls: Callable[[], int]) -> None:
        """Have this called when an agent host's certificates were taken back; it says how many calls it ended."""

        def tell(kind: str, name: str) -> int:
            if kind != KIND:
                return 0
            self.hosts.look_again()
            return end_calls()

        self.revocations.on_revoked(tell)

    def contested(self, device_id: str) -> None:
        """Two processes show the certificate of one device: have it recorded, without making the caller wait."""
        noting = asyncio.create_task(self._note_contested(device_id))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _note_contested(self, device_id: str) -> None:
        try:
            await asyncio.to_thread(
                self.desk.note_contested, "device", device_id, "two processes are connected with its certificate"
            )
        except PodiumError as error:
            _LOG.error("two holders of the certificate of device %s, not recorded: %s", device_id, error.code)

    def close(self) -> None:
        """Put the last on record and close the file."""
        try:
            self.revocations.flush()
        finally:
            self.store.close()


def _local(
    authority: Authority, names: tuple[str, ...], clock: Callable[[], datetime]
) -> Callable[[], ServerIdentity]:
    """How the certificate of ours is looked at, which makes it anew in good time; both ports ask."""
    one_at_a_time = threading.Lock()

    def look() -> ServerIdentity:
        with one_at_a_time:
            return local_identity(authority, host_names=names, now=clock())

    return look


def _names(settings: Settings) -> tuple[str, ...]:
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
    hosts = [settings.host, *(item.strip() for item in settings.server_names.split(","))]
    addresses = (settings.machines_listen, settings.machines_address)
    hosts += [address.rpartition(":")[0].strip("[]") for address in addresses]
    names += [host for host in hosts if host not in ("", "0.0.0.0", "::")]  # noqa: S104 - compared with only
    return tuple(dict.fromkeys(names))


def _front_ca(settings: Settings) -> bytes | None:
    """The authority of the operator's own certificate; b'' when nobody said which, None when it is ours."""
    if settings.tls_certificate is None:
        return None
    if settings.tls_ca is None:
        return b""
    certificate: x509.Certificate = certificate_from(read(settings.tls_ca), settings.tls_ca)
    return certificate.public_bytes(serialization.Encoding.DER)
