"""Where a server is and how it is trusted; TLS everywhere but on loopback.

TLS needs the certificate authority of the server (`ca.pem`). Without one, only a loopback address can be
spoken to, and in clear: such bytes never leave the machine (see docs/adr/0004-tls-and-loopback.md).
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from podium.errors import InvalidRequest, PodiumError, ServerUnavailable
from podium.link.certificates import CertificateRefused, ServerNotTrusted
from podium.link.machine import MachineIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is and how it is trusted."""

    target: str
    """HOST:PORT."""
    ca_pem: bytes | None
    """Certificate authority of the server, or None for loopback in clear."""
    token: str = field(default="", repr=False)
    """Bearer token of a caller; sent with every call, never shown."""
    machine: MachineIdentity | None = field(default=None, repr=False)
    """Certificate and key of an enrolled machine, shown to the server's port for machines."""

    @classmethod
    def of(cls, target: str, ca_file: Path | None = None, *, token: str = "") -> "Address":
        """Check an address given by a person.

        Args:
            target: HOST:PORT.
            ca_file: the server's ca.pem; may be left out on loopback.
            token: a caller's bearer token.

        Raises:
            InvalidRequest: not HOST:PORT, an unreadable CA file, or an address off loopback without a CA.
        """
        host = cls._checked_target(target).rpartition(":")[0]
        if ca_file is not None:
            try:
                ca_pem = ca_file.read_bytes()
            except OSError as error:
                raise InvalidRequest(f"the CA file {ca_file} cannot be read: {error}", field="ca") from error
            if b"-----BEGIN CERTIFICATE-----" not in ca_pem:
                raise InvalidRequest(
                    f"{ca_file} holds no certificate in PEM form",
                    next_step="Give the server's ca.pem: it lies in tls/ of the server's data directory.",
                    field="ca",
                )
            return cls(target=target, ca_pem=ca_pem, token=token)
        if not is_loopback(host):
            raise InvalidRequest(
                f"{target} is not on this machine, so it is only spoken to with TLS",
                next_step="Give the server's certificate authority with --ca FILE or PODIUM_CA.",
                field="ca",
            )
        return cls(target=target, ca_pem=None, token=token)

    @classmethod
    def of_authority(cls, target: str, ca_pem: bytes) -> "Address":
        """A server whose authority is known as bytes, e.g. from an enrolment token.

        Raises:
            InvalidRequest: not HOST:PORT.
        """
        return cls(target=cls._checked_target(target), ca_pem=ca_pem)

    @classmethod
    def of_machine(cls, identity: MachineIdentity, target: str = "") -> "Address":
        """The server's port for machines, as an enrolled machine reaches it.

        Args:
            identity: the machine's files, read with `MachineIdentity.load`.
            target: HOST:PORT when it is another than the one that the machine was enrolled with.

        Raises:
            InvalidRequest: not HOST:PORT.
        """
        checked = cls._checked_target(target or identity.server)
        return cls(target=checked, ca_pem=identity.ca_pem, machine=identity)

    @staticmethod
    def _checked_target(target: str) -> str:
        host, separator, port = target.rpartition(":")
        if not separator or not host or not port.isdigit():
            raise InvalidRequest(f"{target!r} is not HOST:PORT", field="server")
        return target


def unreachable(address: Address, error: PodiumError) -> PodiumError:
    """Say in words about addresses and certificates why a connection did not come about; other errors stay.

    gRPC says it in words about sockets, and gives them only as text.
    """
    if not isinstance(error, ServerUnavailable):
        return error
    if "Connection refused" in error.message:
        message, advice = f"nothing listens on {address.target}", error.advice
    elif any(
        sign in error.message for sign in ("CERTIFICATE_VERIFY_FAILED", "BAD_SIGNATURE", "Hostname Verification")
    ):
        return ServerNotTrusted.at(address.target, error)
    elif address.machine is not None and "Socket closed" in error.message:
        return CertificateRefused(f"{address.target} hung up on this machine", evidence=[error.message])
    elif address.ca_pem is None and "Socket closed" in error.message:
        message = f"{address.target} hung up on a connection without TLS"
        advice = "It probably speaks TLS: give its ca.pem with --ca, from tls/ of its data directory."
    elif address.ca_pem is not None and "WRONG_VERSION_NUMBER" in error.message:
        message = f"{address.target} does not speak TLS"
        advice = "Leave --ca out: without it a server on loopback is spoken to in clear."
    else:
        return error
    return ServerUnavailable(message, next_step=advice, evidence=[error.message])


def is_loopback(host: str) -> bool:
    """True for localhost and loopback addresses, in brackets or not."""
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
