"""TLS for the server: its own certificate, or a local authority made at the first start.

DIR/ca.pem is what clients need to trust the server (`--ca` or PODIUM_CA). The authority signs nothing but this
server's certificate; a real deployment sets `tls_certificate` and `tls_key` instead.
"""

import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podium.errors import InvalidRequest

_AUTHORITY_LIFETIME = timedelta(days=3650)
_SERVER_LIFETIME = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
_CLOCK_SKEW = timedelta(days=1)


class TlsFilesUnusable(InvalidRequest):
    """A certificate or key cannot be read, or they do not belong together."""

    code = "TLS_FILES_UNUSABLE"
    advice = (
        "Check the files named; an authority made by Podium is made anew when the whole tls folder is removed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """What the server shows and what clients trust it by."""

    certificate_pem: bytes
    """The chain, the server's own certificate first."""
    key_pem: bytes
    ca_file: Path | None
    """What a client needs; None when the certificate is the operator's own."""


def given_identity(certificate: Path, key: Path) -> ServerIdentity:
    """The operator's certificate.

    Raises:
        TlsFilesUnusable: a file cannot be read, or the key is not the certificate's.
    """
    certificate_pem, key_pem = _read(certificate), _read(key)
    if _certificate(certificate_pem, certificate).public_key() != _any_key(key_pem, key).public_key():
        raise TlsFilesUnusable(f"the key {key} does not belong to the certificate {certificate}")
    return ServerIdentity(certificate_pem=certificate_pem, key_pem=key_pem, ca_file=None)


def local_identity(folder: Path, *, host_names: tuple[str, ...], clock: Callable[[], datetime]) -> ServerIdentity:
    """A certificate of the local authority for these names, made or renewed where needed.

    Args:
        folder: where the files lie; made when it is not there.
        host_names: DNS names and IP addresses that clients will use.
        clock: decides whether a certificate still has 30 days.

    Raises:
        TlsFilesUnusable: files of an earlier start are damaged or partly missing.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority_file, authority_key_file = folder / "ca.pem", folder / "ca.key"
    if not authority_file.exists():  # nobody can trust an authority whose certificate was never shown
        _make_authority(authority_file, authority_key_file, clock())
    authority = _certificate(_read(authority_file), authority_file)
    authority_key = _key(_read(authority_key_file), authority_key_file)
    certificate_file, key_file = folder / "server.pem", folder / "server.key"
    if not _usable(certificate_file, key_file, authority, host_names, clock()):
        _make_server(certificate_file, key_file, authority, authority_key, host_names, clock())
    return ServerIdentity(certificate_pem=_read(certificate_file), key_pem=_read(key_file), ca_file=authority_file)


def _make_authority(certificate_file: Path, key_file: Path, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Podium local authority")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key.public_key(), now, _AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    # The key first: a crash in between leaves a key without certificate, and the next start makes both anew.
    _write(key_file, _key_pem(key), mode=0o600)
    _write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)


def _make_server(
    certificate_file: Path,
    key_file: Path,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    host_names: tuple[str, ...],
    now: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Podium server")])
    certificate = (
        _builder(name, authority.subject, key.public_key(), now, _SERVER_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(host_names)), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    _write(key_file, _key_pem(key), mode=0o600)
    _write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)  # a client's clock may be behind
        .not_valid_after(now + lifetime)
    )


def _usable(
    certificate_file: Path, key_file: Path, authority: x509.Certificate, host_names: tuple[str, ...], now: datetime
) -> bool:
    """Whether the server's certificate of an earlier start still does."""
    if not (certificate_file.exists() and key_file.exists()):
        return False
    certificate = _certificate(_read(certificate_file), certificate_file)
    key = _key(_read(key_file), key_file)
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (
        certificate.public_key() == key.public_key()
        and set(names) == set(_alternative_names(host_names))
        and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _RENEW_BEFORE
    )


def _alternative_names(host_names: tuple[str, ...]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(host_names):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsFilesUnusable(f"{path} cannot be read: {error.strerror}") from error


def _certificate(pem: bytes, path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise TlsFilesUnusable(f"{path} is not a PEM certificate") from error


def _any_key(pem: bytes, path: Path) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise TlsFilesUnusable(f"{path} is not an unencrypted PEM private key") from error


def _key(pem: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    key = _any_key(pem, path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsFilesUnusable(f"{path} is not an EC key")
    return key


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Put a whole file in place at once; it never has wider rights than `mode`, not even for a moment."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
