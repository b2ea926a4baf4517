"""Ed25519 keys and signatures; the only module here that needs `cryptography`, and only when it is called."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.artefacts.errors import ArtefactInvalid
from tools.artefacts.records import Signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_CONTEXT = b"podium artefact signature v1\n"
"""Keeps a signature of ours from meaning anything elsewhere, and the other way round."""
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SigningKey:
    """A private key; never printed, never logged."""

    key_id: str
    public_key: bytes
    private_pem: bytes


def new_key() -> SigningKey:
    """A fresh key pair."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _signing_key(Ed25519PrivateKey.generate())


def read_key(pem: bytes) -> SigningKey:
    """A private key out of its PEM file.

    Raises:
        ArtefactInvalid: it is not an Ed25519 key in PEM without a passphrase.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # The library's text may quote the file; a key is not for messages.
        raise ArtefactInvalid("not a private key in PEM without a passphrase", field="key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ArtefactInvalid("the private key is not an Ed25519 key", field="key")
    return _signing_key(key)


def sign(key: SigningKey, statement: bytes) -> Signature:
    """A signature of a statement.

    Args:
        key: the private key.
        statement: see `records.statement`.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = load_pem_private_key(key.private_pem, password=None)
    if not isinstance(private, Ed25519PrivateKey):
        raise ArtefactInvalid("the private key is not an Ed25519 key", field="key")
    return Signature(key_id=key.key_id, value=private.sign(_CONTEXT + statement))


def is_right(public_key: bytes, signature: Signature, statement: bytes) -> bool:
    """Whether the signature was made by the key over the statement.

    Args:
        public_key: 32 raw bytes.
        signature: what is checked.
        statement: what it should be over.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(public_key) != _KEY_BYTES or len(signature.value) != _SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature.value, _CONTEXT + statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_id_of(public_key: bytes) -> str:
    """The name of a key: the first 32 hexadecimal digits of the SHA-256 of its 32 raw bytes."""
    return hashlib.sha256(public_key).hexdigest()[:32]


def _signing_key(private: "Ed25519PrivateKey") -> SigningKey:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return SigningKey(key_id=key_id_of(public), public_key=public, private_pem=pem)
