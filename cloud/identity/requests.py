"""What machines send to be certified: read carefully, and nothing but the key is taken from it."""

import hashlib
import ipaddress
import re
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cloud.identity.authority import MachinePublicKey
from cloud.identity.records import TokenRecord
from podium.errors import InvalidRequest
from podium.link.certificates import (
    CertificateRequestInvalid,
    CertificateUnknown,
    EnrolmentNotCovered,
    EnrolmentTokenExpired,
    EnrolmentTokenUsed,
    PossessionNotProven,
)

MAX_PEM_BYTES = 8 * 1024
MAX_SIGNATURE_BYTES = 256
MAX_NAME_CHARACTERS = 63
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_HOST_NAMES = 20
MAX_DNS_CHARACTERS = 253
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
# The last label has a letter: an address with a wrong number in it is no name.
_DNS_NAME = re.compile(rf"({_LABEL}\.)*(?=[a-z0-9-]*[a-z]){_LABEL}")
_CURVES = ("secp256r1", "secp384r1")


def checked_name(name: str) -> str:
    """A machine's name: it is written into certificates, logs and file names.

    Raises:
        InvalidRequest: it is empty, too long, or holds something other than letters, digits and ``. _ -``.
    """
    if len(name) > MAX_NAME_CHARACTERS or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} cannot be a machine's name",
            next_step=(
                f"Use 1 to {MAX_NAME_CHARACTERS} letters, digits, dots, hyphens and underscores, beginning with a "
                "letter or digit."
            ),
            field="name",
        )
    return name


def checked_host_names(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a machine is reached by, which go into its certificate beside ``podium://KIND/NAME``.

    Raises:
        InvalidRequest: the machine is no agent host, there are too many, or one is neither DNS name nor address.
    """
    if names and kind != "agent_host":
        raise InvalidRequest(
            f"nobody connects to a {kind}; only agent hosts have names they are reached by", field="host_names"
        )
    if len(names) > MAX_HOST_NAMES:
        raise InvalidRequest(f"an agent host has at most {MAX_HOST_NAMES} names", field="host_names")
    for name in names:
        if not (_is_address(name) or (len(name) <= MAX_DNS_CHARACTERS and _DNS_NAME.fullmatch(name))):
            raise InvalidRequest(
                f"{name[:80]!r} is neither a DNS name nor an IP address",
                next_step="Give names such as agents.example or 192.0.2.7, without port and without wildcards.",
                field="host_names",
            )
    return tuple(dict.fromkeys(names))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return "%" not in name  # a zone is a matter of one machine


def public_key_of(csr_pem: bytes) -> MachinePublicKey:
    """The key of a certificate request that is signed with it. The names in the request are not looked at.

    Raises:
        CertificateRequestInvalid: too large, not PKCS#10, an unsuitable key, or a signature that is not the key's.
    """
    if len(csr_pem) > MAX_PEM_BYTES:
        raise CertificateRequestInvalid(
            f"the certificate request has more than {MAX_PEM_BYTES} bytes", field="csr_pem"
        )
    try:
        request = x509.load_pem_x509_csr(csr_pem)
        key = request.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateRequestInvalid("what was sent is not a certificate request", field="csr_pem") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _CURVES:
        raise CertificateRequestInvalid("the request's key is not an EC key on P-256 or P-384", field="csr_pem")
    try:
        signed = request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        signed = False
    if not signed:
        raise CertificateRequestInvalid("the request is not signed with its own key", field="csr_pem")
    return key


def certificate_in(pem: bytes) -> x509.Certificate:
    """The certificate that a machine says it holds.

    Raises:
        CertificateUnknown: it is none.
    """
    try:
        return x509.load_pem_x509_certificate(pem[: MAX_PEM_BYTES + 1])
    except ValueError as error:
        raise CertificateUnknown("what was sent is not a certificate", field="certificate_pem") from error


def check_possession(certificate: x509.Certificate, signature: bytes, data: bytes) -> None:
    """Whether whoever asks has the certificate's key.

    Raises:
        PossessionNotProven: the signature over `data` is not the key's.
    """
    key = certificate.public_key()
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature[:MAX_SIGNATURE_BYTES], data, ec.ECDSA(hashes.SHA256()))
            return
    except InvalidSignature:
        pass
    raise PossessionNotProven(
        "the request is not signed with the key of the certificate in hand", field="signature"
    )


def key_sha256(key: MachinePublicKey) -> bytes:
    """What a key is recognised by."""
    return hashlib.sha256(
        key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    ).digest()


def check_token(record: TokenRecord, uses: int, now: datetime) -> None:
    """Let an enrolment token be used once more or not.

    Raises:
        EnrolmentTokenUsed, EnrolmentTokenExpired: it may not.
    """
    if uses >= record.max_uses:
        raise EnrolmentTokenUsed(f"the enrolment token was used {uses} of {record.max_uses} times", field="token")
    if now >= record.expire_time:
        raise EnrolmentTokenExpired(
            f"the enrolment token expired at {told(record.expire_time)}; the server's clock says {told(now)}",
            field="token",
        )


def covered_name(record: TokenRecord, kind: str, name: str) -> str:
    """The name that is enrolled.

    Raises:
        EnrolmentNotCovered: the token is not for it, or not for the kind.
        InvalidRequest: it is not a name.
    """
    if kind not in ("", record.kind):
        raise EnrolmentNotCovered(f"the token is for a {record.kind}, not for a {kind}", field="kind")
    if record.name and name not in ("", record.name):
        raise EnrolmentNotCovered(f"the token is for the name {record.name}, not for {name[:80]!r}", field="name")
    return checked_name(record.name or name)


def told(moment: datetime) -> str:
    """A moment for people."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
