"""The one-time token: who may enrol, and which authority the server must show.

Its text is ``podium1.ID.SECRET.CA``, each part in URL-safe base64. CA is the server's certificate authority itself
(312 bytes or so), not a hash of it: a machine that has the token can check the server's certificate on its very
first connection, and there is no moment in which an unchecked one is accepted.
"""

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from podium.link.certificates import EnrolmentTokenInvalid

_PREFIX = "podium1"
_ID_BYTES = 9
_SECRET_BYTES = 32
MAX_TOKEN_CHARACTERS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentToken:
    """A token, taken apart."""

    token_id: str
    """Names it in records; no secret."""
    secret: bytes = field(repr=False)
    ca_der: bytes = field(default=b"", repr=False)
    """The authority of the server; empty when the operator's own certificate is served and `--ca` is needed."""

    @classmethod
    def make(cls, ca_der: bytes) -> "EnrolmentToken":
        """A new one, from the system's randomness."""
        return cls(
            token_id=_text(secrets.token_bytes(_ID_BYTES)),
            secret=secrets.token_bytes(_SECRET_BYTES),
            ca_der=ca_der,
        )

    @classmethod
    def parse(cls, text: str) -> "EnrolmentToken":
        """Read a token that a person pasted; spaces and line breaks around and within it do not matter.

        Raises:
            EnrolmentTokenInvalid: it is not one. The message does not quote it.
        """
        if len(text) > MAX_TOKEN_CHARACTERS:
            raise EnrolmentTokenInvalid("the enrolment token is too long to be one", field="token")
        parts = "".join(text.split()).split(".")
        try:
            prefix, token_id, secret, ca = parts
            token = cls(token_id=token_id, secret=_bytes(secret), ca_der=_bytes(ca))
            whole = prefix == _PREFIX and len(_bytes(token_id)) == _ID_BYTES and len(token.secret) == _SECRET_BYTES
        except (ValueError, binascii.Error):
            whole = False
        if not whole:
            raise EnrolmentTokenInvalid(
                "what was given is not an enrolment token, or only a part of one", field="token"
            )
        return token

    @property
    def text(self) -> str:
        """What a person copies."""
        return ".".join((_PREFIX, self.token_id, _text(self.secret), _text(self.ca_der)))

    @property
    def proof(self) -> str:
        """What is sent to the server: the token without the authority, which the server knows."""
        return ".".join((_PREFIX, self.token_id, _text(self.secret), ""))

    @property
    def secret_sha256(self) -> bytes:
        """What the server stores."""
        return hashlib.sha256(self.secret).digest()

    @property
    def ca_pem(self) -> bytes:
        """The authority in PEM form; empty when the token names none.

        Raises:
            EnrolmentTokenInvalid: the token was damaged on its way.
        """
        if not self.ca_der:
            return b""
        try:
            certificate = x509.load_der_x509_certificate(self.ca_der)
        except ValueError as error:
            raise EnrolmentTokenInvalid("the enrolment token was damaged on its way", field="token") from error
        return certificate.public_bytes(serialization.Encoding.PEM)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    # Without `validate` foreign characters are dropped, and many texts would be one token.
    padded = text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4)
    data = base64.b64decode(padded, validate=True)
    if _text(data) != text:
        raise ValueError("not the one form of these bytes")
    return data
