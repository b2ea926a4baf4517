"""What a host shows and whom it lets in: its own certificate, and conductors with one of the same authority."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import Any

import grpc

from podium.errors import InvalidRequest, PermissionDenied, PodiumError
from podium.link import IdentityUnusable, MachineIdentity
from podium.link.machine import CA_FILE, IDENTITY_FILE, files_in_force
from podium.link.renewing import RenewalWatch

_LOG = logging.getLogger(__name__)

CONDUCTOR = "podium://worker/"
"""How the certificates begin of those who run steps: servers and their workers."""
_END = b"-----END CERTIFICATE-----"


class HostCredentials:
    """The files of an enrolled agent host; renewed ones are shown from the next connection on."""

    def __init__(self, folder: Path) -> None:
        """Read them.

        Raises:
            IdentityUnusable: a file is missing or damaged.
            InvalidRequest: the machine is no agent host.
        """
        self._folder = folder
        identity = MachineIdentity.load(folder)
        if identity.kind != "agent_host":
            raise InvalidRequest(
                f"{folder} is the identity of a {identity.kind}, not of an agent host",
                next_step="Enrol this machine with a token of `podium machine invite --kind agent_host`.",
                field="identity",
            )
        self._known = self._stamp()
        self._first = _configuration(identity)

    def for_server(self) -> grpc.ServerCredentials:
        """TLS credentials; whoever connects must show a certificate of the host's authority."""
        credentials: grpc.ServerCredentials = grpc.dynamic_ssl_server_credentials(
            self._first, self._newer, require_client_authentication=True
        )
        return credentials

    def renewal(self) -> RenewalWatch:
        """Renews the certificate in time, for as long as its `run` runs."""
        return RenewalWatch(
            self._folder,
            clock=lambda: datetime.now(UTC),
            jitter=SystemRandom().random,
            on_renewed=lambda: _LOG.info("the certificate was renewed"),
            on_problem=lambda error: _LOG.warning("not renewed: %s", error.code),
        )

    def _newer(self) -> Any:
        """Called by gRPC for each connection, on its threads; None keeps what there is."""
        try:
            stamp = self._stamp()
            if stamp == self._known:
                return None
            configuration = _configuration(MachineIdentity.load(self._folder))
        except (OSError, PodiumError) as error:
            _LOG.warning("the files of the identity cannot be read just now: %s", error)
            return None
        self._known = stamp
        return configuration

    def _stamp(self) -> tuple[Path, int]:
        place = files_in_force(self._folder)
        return place, (place / IDENTITY_FILE).stat().st_mtime_ns


def admit_conductors(context: Any) -> None:
    """Let those in who run steps. Devices and sites have certificates of the same authority, and no business here.

    Raises:
        PermissionDenied: the certificate is another machine's.
    """
    names = [name.decode("utf-8", "replace") for name in context.auth_context().get("peer_uri", ())]
    if not any(name.startswith(CONDUCTOR) for name in names):
        raise PermissionDenied(
            f"an agent host is called by Podium servers and workers, not by {names[0] if names else 'others'}",
            next_step="Let the server call the agent: it shows a certificate of the host's authority by itself.",
        )


def _configuration(identity: MachineIdentity) -> Any:
    # The first is the authority of machines; what may follow vouches for the port that callers use.
    first, end, _ = identity.ca_pem.partition(_END)
    if not end:
        raise IdentityUnusable(f"{identity.folder / CA_FILE} holds no certificate", field="identity")
    authority = first + end + b"\n"
    return grpc.ssl_server_certificate_configuration(
        [(identity.key_pem, identity.certificate_pem)], root_certificates=authority
    )
