"""What is recorded about machines, as values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CertificateState(StrEnum):
    """Where a certificate stands."""

    ISSUED = "issued"
    """Sent to the machine, and not yet seen in use: the answer may have been lost on its way."""
    CURRENT = "current"
    """The newest one that was seen in use."""
    SUPERSEDED = "superseded"
    """A newer one is in use."""
    REVOKED = "revoked"
    """Taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCertificate:
    """A certificate as it is recorded."""

    serial: int
    kind: str
    """device, site, worker or agent_host."""
    name: str
    key_sha256: bytes
    """Hash of its public key, by which a repeated request is recognised."""
    sha256: bytes
    """Of the certificate itself."""
    pem: bytes
    issue_time: datetime
    expire_time: datetime
    state: CertificateState
    change_time: datetime
    """When it got into this state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """A machine that was enrolled."""

    kind: str
    name: str
    serial: int
    """Of the newest certificate."""
    enrol_time: datetime
    issue_time: datetime
    expire_time: datetime
    revoke_time: datetime | None
    revoke_reason: str
    contested_time: datetime | None
    contested_reason: str
    last_seen_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """An enrolment token as it is recorded: without its secret."""

    token_id: str
    secret_sha256: bytes
    kind: str
    name: str
    """The only name it is for, or ''."""
    create_time: datetime
    expire_time: datetime
    max_uses: int
    created_by: str
    host_names: tuple[str, ...] = ()
    """For agent hosts: the DNS names and addresses that go into the certificates."""
