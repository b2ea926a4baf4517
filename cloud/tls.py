"""TLS for the server: its own certificate, or one of the local authority.

DIR/ca.pem is what clients need to trust the server (`--ca` or PODIUM_CA). A deployment with certificates of its
own sets `tls_certificate` and `tls_key`, for the port for callers; machines are always shown a certificate of the
local authority, because that is whom they trust.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cloud.identity.authority import RENEW_SERVER_BEFORE, Authority, alternative_names
from cloud.identity.files import TlsFilesUnusable, any_key_from, certificate_from, key_pem, read, write
from podium.errors import PodiumError

__all__ = [
    "ServerIdentity",
    "Shown",
    "TlsFilesUnusable",
    "given_identity",
    "local_identity",
    "names_in",
]

_LOG = logging.getLogger(__name__)

_LOOKED_AT_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """What the server shows and what clients trust it by."""

    certificate_pem: bytes
    """The chain, the server's own certificate first."""
    key_pem: bytes
    ca_file: Path | None
    """What a client needs; None when the certificate is the operator's own and nobody said whose."""


class Shown:
    """What a port shows at this moment. Safe to ask from threads.

    An operator's files that were exchanged, and a certificate of ours that was made anew, count without a restart.
    """

    def __init__(
        self, look: Callable[[], ServerIdentity], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Look for the first time.

        Args:
            look: says what is to be shown, e.g. reads files; asked again once a minute at most.
            clock_s: a clock that never goes back.

        Raises:
            TlsFilesUnusable: what is there cannot be shown.
        """
        self._look = look
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._looked_s = clock_s()
        self.now = look()
        """As of the last look."""

    def newer(self) -> ServerIdentity | None:
        """What is to be shown from now on; None for what was shown before, also where the new cannot be used."""
        with self._lock:
            if self._clock_s() - self._looked_s < _LOOKED_AT_EVERY_S:
                return None
            self._looked_s = self._clock_s()
            try:
                found = self._look()
            except PodiumError as error:
                _LOG.warning("the server goes on with its certificate as it was: %s", error.code)
                return None
            if found == self.now:
                return None
            self.now = found
            _LOG.info("the server shows another certificate from now on")
            return found


def given_identity(certificate: Path, key: Path, ca: Path | None = None) -> ServerIdentity:
    """The operator's certificate.

    Args:
        certificate: PEM file of the chain.
        key: PEM file of its private key.
        ca: PEM file of the authority that vouches for it, where clients do not know it anyway.

    Raises:
        TlsFilesUnusable: a file cannot be read, or the key is not the certificate's.
    """
    certificate_pem, private_pem = read(certificate), read(key)
    public_key = certificate_from(certificate_pem, certificate).public_key()
    if public_key != any_key_from(private_pem, key).public_key():
        raise TlsFilesUnusable(f"the key {key} does not belong to the certificate {certificate}")
    if ca is not None:
        certificate_from(read(ca), ca)
    return ServerIdentity(certificate_pem=certificate_pem, key_pem=private_pem, ca_file=ca)


def local_identity(authority: Authority, *, host_names: tuple[str, ...], now: datetime) -> ServerIdentity:
    """A certificate of this authority for these names, beside its own; made or renewed where needed.

    Args:
        authority: signs.
        host_names: DNS names and IP addresses that clients will use.
        now: decides whether a certificate still has 400 days.

    Raises:
        TlsFilesUnusable: files of an earlier start are damaged or partly missing.
        StorageFull, InternalError: a new one cannot be written.
    """
    folder = authority.ca_file.parent
    certificate_file, key_file = folder / "server.pem", folder / "server.key"
    if not _usable(certificate_file, key_file, authority, host_names, now):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = authority.server_certificate(key.public_key(), host_names, now)
        # The certificate goes first, so that a crash in between leaves no certificate with another's key.
        certificate_file.unlink(missing_ok=True)
        write(key_file, key_pem(key), mode=0o600)
        write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
    return ServerIdentity(
        certificate_pem=read(certificate_file), key_pem=read(key_file), ca_file=authority.ca_file
    )


def names_in(identity: ServerIdentity) -> tuple[str, ...]:
    """The DNS names and addresses that a server's certificate is for."""
    try:
        extensions = x509.load_pem_x509_certificate(identity.certificate_pem).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def _usable(
    certificate_file: Path, key_file: Path, authority: Authority, host_names: tuple[str, ...], now: datetime
) -> bool:
    """Whether the server's certificate of an earlier start still does."""
    if not (certificate_file.exists() and key_file.exists()):
        return False
    certificate = certificate_from(read(certificate_file), certificate_file)
    key = any_key_from(read(key_file), key_file)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (
        authority.issued(certificate)
        and certificate.public_key() == key.public_key()
        and set(names) == set(alternative_names(host_names))
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEW_SERVER_BEFORE
    )
