"""A machine's key and its certificate request. The key is made here and never leaves the machine."""

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podium.link.machine import IdentityUnusable


def make_key() -> ec.EllipticCurvePrivateKey:
    """A new EC P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as it is written to disk (mode 0600), not encrypted: a machine starts without a person."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def load_key(pem: bytes, place: str) -> ec.EllipticCurvePrivateKey:
    """Read a key from disk.

    Raises:
        IdentityUnusable: it is damaged or of another kind.
    """
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise IdentityUnusable(f"{place} is not an unencrypted PEM private key", field="identity") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise IdentityUnusable(f"{place} is not an EC key", field="identity")
    return key


def certificate_request(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A PKCS#10 request in PEM form. It names nobody: the server decides about names."""
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def signature(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    """ECDSA with SHA-256 in DER form: proves that the old key is in hand."""
    return key.sign(data, ec.ECDSA(hashes.SHA256()))
