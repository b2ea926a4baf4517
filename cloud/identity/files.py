"""Certificates and keys on disk: read with typed errors, written whole and never readable by others."""

import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from podium.errors import InvalidRequest
from tools.ledger.errors import storage_error


class TlsFilesUnusable(InvalidRequest):
    """A certificate or key cannot be read, or they do not belong together."""

    code = "TLS_FILES_UNUSABLE"
    advice = (
        "Check the files named, or restore them from a backup. Removing the tls folder makes a new authority, and "
        "then every client needs the new ca.pem and every machine enrols again."
    )


def read(path: Path) -> bytes:
    """A file's bytes.

    Raises:
        TlsFilesUnusable: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsFilesUnusable(f"{path} cannot be read: {error.strerror}") from error


def certificate_from(pem: bytes, path: Path) -> x509.Certificate:
    """The first certificate of a PEM file.

    Raises:
        TlsFilesUnusable: there is none.
    """
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise TlsFilesUnusable(f"{path} is not a PEM certificate") from error


def any_key_from(pem: bytes, path: Path) -> PrivateKeyTypes:
    """A private key of any kind.

    Raises:
        TlsFilesUnusable: it is none, or encrypted.
    """
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise TlsFilesUnusable(f"{path} is not an unencrypted PEM private key") from error


def key_from(pem: bytes, path: Path, certificate: x509.Certificate) -> ec.EllipticCurvePrivateKey:
    """The EC key of a certificate of ours.

    Raises:
        TlsFilesUnusable: it is none, or another's.
    """
    key = any_key_from(pem, path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TlsFilesUnusable(f"{path} is not an EC key")
    if key.public_key() != certificate.public_key():
        raise TlsFilesUnusable(f"the key {path} does not belong to the certificate beside it")
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key as it is written to disk, not encrypted: the server starts without a person."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write(path: Path, content: bytes, *, mode: int) -> None:
    """Put a whole file in place at once; it never has wider rights than `mode`, not even for a moment.

    Raises:
        StorageFull: there is no room; what was there stays.
        InternalError: it cannot be written.
    """
    try:
        _write(path, content, mode)
    except OSError as error:
        raise storage_error(error, path) from error


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
