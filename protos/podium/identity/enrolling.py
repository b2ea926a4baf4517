"""Getting a certificate and renewing it: what `podium enroll` and the renewal process do."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from google.protobuf.timestamp_pb2 import Timestamp

from podium.errors import Conflict, DataCorrupt, InvalidRequest, PermissionDenied, Unauthenticated
from podium.identity.folder import forget_next_key, install, locked, next_key
from podium.identity.keys import certificate_request, load_key, signature
from podium.identity.token import EnrolmentToken
from podium.link import Address, MachineIdentity, sync_channel, unreachable
from podium.link.machine import (
    CA_FILE,
    CERTIFICATE_FILE,
    IDENTITY_FILE,
    KEY_FILE,
    IdentityUnusable,
    files_in_force,
)
from podium.rpc_status import from_rpc_error
from podium.v1 import identity_pb2, identity_pb2_grpc

KINDS = {
    "device": identity_pb2.IDENTITY_KIND_DEVICE,
    "site": identity_pb2.IDENTITY_KIND_SITE,
    "worker": identity_pb2.IDENTITY_KIND_WORKER,
    "agent_host": identity_pb2.IDENTITY_KIND_AGENT_HOST,
}
"""Kinds of machines by their names in certificates and commands."""
DEADLINE = timedelta(seconds=20)
_EVERY_INTERFACE = ("", "0.0.0.0", "[::]")  # noqa: S104 - compared with, not listened on


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """What a machine has become."""

    kind: str
    name: str
    serial: str
    """Of the certificate, in hexadecimal."""
    expires: datetime
    server: str
    """HOST:PORT where the certificate is shown."""
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """As the commands print it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "serial": self.serial,
            "expires": self.expires.isoformat(),
            "server": self.server,
            "dir": str(self.folder),
        }


def enroll(
    server: str,
    token_text: str,
    folder: Path,
    *,
    kind: str,
    name: str = "",
    ca_pem: bytes = b"",
    clock: Callable[[], datetime],
    deadline: timedelta = DEADLINE,
) -> Enrolled:
    """Make a key, have it certified with a one-time token, and write the files of the identity.

    Called again after a crash or a lost answer it goes on with the same key, which the server recognises: the
    token is not used up twice. In a folder that holds an identity it replaces that one once the new one is there.

    Args:
        server: HOST:PORT of the server's port for callers.
        token_text: as `podium machine invite` printed it.
        folder: where the files go; made when it is not there.
        kind: one of `KINDS`.
        name: the wanted name; may be left out when the token names one.
        ca_pem: the server's authority, when the token names none.
        clock: this machine's clock.
        deadline: longest time for the server's answer.

    Raises:
        EnrolmentTokenInvalid, EnrolmentTokenExpired, EnrolmentTokenUsed, EnrolmentNotCovered, IdentityNameTaken,
        MachinesNotServed: the server refused.
        ServerNotTrusted: the server is not the one that the token is of; nothing was sent to it.
        InvalidRequest, IdentityUnusable, StorageFull, ServerUnavailable.
    """
    token = EnrolmentToken.parse(token_text)
    roots = ca_pem or token.ca_pem
    if not roots:
        raise InvalidRequest(
            "the token does not say which authority the server has",
            next_step="Give the authority that vouches for the server's certificate with --ca FILE.",
            field="ca",
        )
    if kind not in KINDS:
        raise InvalidRequest(f"{kind!r} is not a kind of machine; there are {', '.join(KINDS)}", field="kind")
    with locked(folder):
        pem = next_key(folder)
        key = load_key(pem, str(folder))
        request = identity_pb2.EnrollRequest(
            token=token.proof, csr_pem=certificate_request(key), name=name, kind=KINDS[kind]
        )
        response = _call(
            server, roots, lambda stub: stub.Enroll(request, timeout=deadline.total_seconds()), folder
        )
        return _install(folder, server, pem, response, roots, clock)


def renew(folder: Path, *, clock: Callable[[], datetime], deadline: timedelta = DEADLINE) -> Enrolled:
    """Exchange the certificate for a new one with a new key; also some time after it expired.

    It goes to the port for callers, which asks for no certificate; the old key's signature proves who asks.

    Raises:
        CertificateRevoked, CertificateSuperseded, CertificateUnknown, RenewalTooLate, PossessionNotProven: the
            server refused; the old files stay.
        IdentityUnusable, StorageFull, ServerNotTrusted, ServerUnavailable, RenewalFailed.
    """
    with locked(folder):
        identity = MachineIdentity.load(folder)
        old = load_key(identity.key_pem, str(folder / KEY_FILE))
        server = renewal_server(folder)
        pem = next_key(folder)
        csr = certificate_request(load_key(pem, str(folder)))
        request = identity_pb2.RenewRequest(
            certificate_pem=identity.certificate_pem, csr_pem=csr, signature=signature(old, csr)
        )
        response = _call(
            server, identity.ca_pem, lambda stub: stub.Renew(request, timeout=deadline.total_seconds()), folder
        )
        return _install(folder, server, pem, response, identity.ca_pem, clock)


def renewal_server(folder: Path) -> str:
    """HOST:PORT of the port for callers that the machine was enrolled through.

    Raises:
        IdentityUnusable: the file is missing or damaged.
    """
    path = files_in_force(folder) / IDENTITY_FILE
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["renewal_server"])
    except OSError as error:
        raise IdentityUnusable(f"{path} cannot be read: {error.strerror}", field="identity") from error
    except (ValueError, KeyError, TypeError) as error:
        raise IdentityUnusable(f"{path} is damaged: {type(error).__name__}", field="identity") from error


def _call(
    server: str,
    roots: bytes,
    call: Callable[[identity_pb2_grpc.IdentityServiceStub], Any],
    folder: Path,
) -> Any:
    # The server's certificate is checked against `roots` before a byte of ours is sent.
    address = Address.of_authority(server, roots)
    with sync_channel(address) as channel:
        try:
            return call(identity_pb2_grpc.IdentityServiceStub(channel))
        except grpc.RpcError as error:
            failure = unreachable(address, from_rpc_error(error))
    if isinstance(failure, InvalidRequest | Unauthenticated | PermissionDenied | Conflict):
        forget_next_key(folder)  # refused for good, so no certificate for this key is on its way
    raise failure


def _install(
    folder: Path,
    server: str,
    pem: bytes,
    response: identity_pb2.EnrollResponse | identity_pb2.RenewResponse,
    roots: bytes,
    clock: Callable[[], datetime],
) -> Enrolled:
    identity = response.identity
    kind = next((name for name, number in KINDS.items() if number == identity.kind), "")
    _check(response, pem, f"podium://{kind}/{identity.name}", folder)
    enrolled = Enrolled(
        kind=kind,
        name=identity.name,
        serial=identity.serial,
        expires=_moment(identity.expire_time),
        server=_reached_at(response.machines_address, server),
        folder=folder,
    )
    about = {
        "kind": kind,
        "name": enrolled.name,
        "server": enrolled.server,
        "renewal_server": server,
        "serial": enrolled.serial,
        "issued": _moment(identity.issue_time).isoformat(),
        "expires": enrolled.expires.isoformat(),
        # By this machine's clock: how far it is off does not matter, only how long it runs from here.
        "received": clock().isoformat(),
    }
    files = {
        KEY_FILE: pem,
        CERTIFICATE_FILE: response.certificate_pem,
        CA_FILE: response.ca_pem if roots.strip() in response.ca_pem else response.ca_pem + roots,
        IDENTITY_FILE: (json.dumps(about, indent=2) + "\n").encode(),
    }
    install(folder, enrolled.serial, files)
    return enrolled


def _check(
    response: identity_pb2.EnrollResponse | identity_pb2.RenewResponse, pem: bytes, uri: str, folder: Path
) -> None:
    """Whether the server gave what was asked for; the old files stay when it did not."""
    ours = load_key(pem, str(folder)).public_key()
    try:
        certificate = x509.load_pem_x509_certificate(response.certificate_pem)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(response.ca_pem))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        fits = certificate.public_key() == ours and uri in names.get_values_for_type(
            x509.UniformResourceIdentifier
        )
        fits = fits and format(certificate.serial_number, "x") == response.identity.serial
        # Also whether its times are any: they are written down only afterwards.
        fits = fits and _moment(response.identity.issue_time) < _moment(response.identity.expire_time)
    except (ValueError, TypeError, OverflowError, InvalidSignature, x509.ExtensionNotFound):
        fits = False
    if not fits:
        raise DataCorrupt(
            "the server answered with a certificate that is not for this machine's key and name",
            next_step="Check that it is the right server and that both run the same version of Podium.",
        )


def _reached_at(machines_address: str, server: str) -> str:
    """The port for machines on the host by which the server is known here, unless it names one itself."""
    host, _, port = machines_address.rpartition(":")
    return f"{server.rpartition(':')[0]}:{port}" if host in _EVERY_INTERFACE else machines_address


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


def public_certificate(identity: MachineIdentity) -> dict[str, str]:
    """What the certificate itself says, for people: serial, fingerprint, validity.

    Raises:
        IdentityUnusable: it cannot be read.
    """
    try:
        certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
    except ValueError as error:
        raise IdentityUnusable(f"{identity.folder / CERTIFICATE_FILE} is damaged", field="identity") from error
    public = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    key = load_key(identity.key_pem, str(identity.folder / KEY_FILE)).public_key()
    ours = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if ours != public:
        raise IdentityUnusable(
            f"the key in {identity.folder} does not belong to the certificate", field="identity"
        )
    return {
        "serial": format(certificate.serial_number, "x"),
        "sha256": certificate.fingerprint(hashes.SHA256()).hex(),
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
    }
