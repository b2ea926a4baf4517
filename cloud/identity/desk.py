"""Where machines become known: tokens, enrolment, renewal, revocation, and two holders of one certificate.

Blocking and safe to call from threads. What is given out is recorded in the audit ledger before it is given; what
is taken back is taken back first.
"""

import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from agents.audit import AuditEntry, AuditLog
from cloud.identity.authority import Authority, MachinePublicKey, host_names_of
from cloud.identity.records import CertificateState, IssuedCertificate, MachineRecord, TokenRecord
from cloud.identity.requests import (
    certificate_in,
    check_possession,
    check_token,
    checked_host_names,
    checked_name,
    covered_name,
    key_sha256,
    public_key_of,
    told,
)
from cloud.identity.revocation import Revocations
from cloud.identity.store import IdentityStore
from podium.errors import InvalidRequest, LimitExceeded, NotFound, PodiumError, StorageFull
from podium.identity.token import EnrolmentToken
from podium.link.certificates import (
    CertificateRevoked,
    CertificateSuperseded,
    CertificateUnknown,
    EnrolmentTokenInvalid,
    IdentityNameTaken,
    RenewalTooLate,
)

_LOG = logging.getLogger(__name__)

MAX_USES = 10_000
MAX_RENEWALS = 20
"""Of one machine within an hour, or a certificate's lifetime where that is shorter: each stays on record."""
_FORGET_AFTER = timedelta(days=400)
_NOT_REVOKED = "Nothing was taken back: the certificate is still good. Put right what is named, then revoke again."
_NOT_RECORDED = "The certificates are taken back. Put right what is named and revoke again, for the audit ledger."
_GOOD = (CertificateState.ISSUED, CertificateState.CURRENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRules:
    """For how long things are good."""

    lifetime: timedelta = timedelta(days=90)
    """Of a machine's certificate."""
    grace: timedelta = timedelta(days=90)
    """How long after it expired a certificate can still be renewed."""
    token_lifetime: timedelta = timedelta(days=1)
    """Of an enrolment token, when nobody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What a machine is given."""

    certificate_pem: bytes
    machine: MachineRecord
    took_back: bool
    """Whether certificates of an earlier holder of the name were taken back for it."""


class IdentityDesk:
    """Issues and takes back; the services and commands are its callers."""

    def __init__(
        self,
        store: IdentityStore,
        authority: Authority,
        revocations: Revocations,
        audit: AuditLog,
        *,
        clock: Callable[[], datetime],
        rules: IdentityRules,
        front_ca_der: bytes | None = None,
    ) -> None:
        """Open the desk.

        Args:
            store: the record of machines.
            authority: signs.
            revocations: what calls are checked against; kept up to date here.
            audit: the ledger.
            clock: the server's clock.
            rules: for how long things are good.
            front_ca_der: the authority of the port for callers where it is not ours; empty when nobody said
                which that is. None: it is ours.
        """
        self._store = store
        self._authority = authority
        self._revocations = revocations
        self._audit = audit
        self._clock = clock
        self._rules = rules
        self._front_ca_der = authority.der if front_ca_der is None else front_ca_der
        store.forget_certificates(clock() - rules.grace - _FORGET_AFTER)

    @property
    def ca_pem(self) -> bytes:
        """The authority that vouches for machines and for the port that they use."""
        return self._authority.pem

    def invite(
        self,
        kind: str,
        *,
        name: str = "",
        lifetime: timedelta | None = None,
        uses: int = 1,
        host_names: tuple[str, ...] = (),
        by: str,
    ) -> tuple[EnrolmentToken, datetime]:
        """Make an enrolment token, and say when it expires.

        Args:
            kind: what may be enrolled with it.
            name: the only name it is for; any new one when empty. A machine that has the name is replaced.
            lifetime: how long it is good.
            uses: how many machines may be enrolled with it.
            host_names: for agent hosts, the DNS names and addresses that they are reached by.
            by: who makes it.

        Raises:
            InvalidRequest: a name is not one, or the token would be for many machines of one name.
        """
        if name:
            checked_name(name)
        if not 1 <= uses <= MAX_USES:
            raise InvalidRequest(f"a token may be used from 1 to {MAX_USES} times", field="max_uses")
        if name and uses > 1:
            raise InvalidRequest("a token for one name enrols one machine", field="max_uses")
        host_names = checked_host_names(kind, host_names)
        now = self._clock()
        token = EnrolmentToken.make(self._front_ca_der)
        record = TokenRecord(
            token_id=token.token_id,
            secret_sha256=token.secret_sha256,
            kind=kind,
            name=name,
            create_time=now,
            expire_time=now + (lifetime or self._rules.token_lifetime),
            max_uses=uses,
            created_by=by,
            host_names=host_names,
        )
        details = {"kind": kind, "name": name, "uses": uses}
        self._record("invited", token.token_id, by, details | ({"hosts": [*host_names]} if host_names else {}))
        self._store.add_token(record)
        return token, record.expire_time

    def enrol(self, token_text: str, csr_pem: bytes, *, name: str = "", kind: str = "") -> Issued:
        """Exchange a token and a certificate request for a certificate.

        The same key with the same token gets the same certificate again: its answer may have been lost.

        Raises:
            EnrolmentTokenInvalid, EnrolmentTokenExpired, EnrolmentTokenUsed: no good token.
            EnrolmentNotCovered: a token for another kind or name.
            IdentityNameTaken: the name has a machine, and the token is not for exactly this name.
            CertificateRequestInvalid, InvalidRequest: what was sent cannot be used.
        """
        token = EnrolmentToken.parse(token_text)
        key = public_key_of(csr_pem)
        now = self._clock()
        with self._store.transaction():
            found = self._store.token(token.token_id)
            if found is None or not hmac.compare_digest(found[0].secret_sha256, token.secret_sha256):
                raise EnrolmentTokenInvalid("the enrolment token is not one of this server's", field="token")
            record, uses = found
            before = self._store.used_for(token.token_id, key_sha256(key))
            if before is not None and before.state in _GOOD:
                return self._given(before)
            check_token(record, uses, now)
            name = covered_name(record, kind, name)
            taken = self._store.machines(record.kind, name)
            if taken and not record.name:
                raise IdentityNameTaken(f"there is a {record.kind} named {name} already", field="name")
            self._store.put_machine(record.kind, name, now)
            old = self._take_back(record.kind, name, now)
            certificate = self._issue(record.kind, name, key, now, record.host_names)
            self._store.use_token(token.token_id, certificate)
            details = {"name": name, "kind": record.kind, "token": token.token_id, "replaces": len(old)}
            self._record("enrolled", f"{certificate.serial:x}", f"token {token.token_id}", details)
            given = self._given(certificate, took_back=bool(old))
            self._store.when_written(lambda: self._revocations.put([*old, certificate]))
        return given

    def known(self, *, token: str = "", certificate_pem: bytes = b"") -> str:
        """What on record an attempt names, by the token or certificate it brings; '' when nothing is."""
        try:
            if token:
                token_id = EnrolmentToken.parse(token).token_id
                return f"token {token_id}" if self._store.token(token_id) is not None else ""
            serial = certificate_in(certificate_pem).serial_number
        except PodiumError:
            return ""
        return f"certificate {serial:x}" if self._revocations.state(serial) is not None else ""

    def renew(self, certificate_pem: bytes, csr_pem: bytes, signature: bytes) -> Issued:
        """Exchange a certificate, also one that expired not long ago, for a new one.

        Raises:
            CertificateUnknown, PossessionNotProven, CertificateRevoked, RenewalTooLate: it cannot be renewed.
            CertificateSuperseded: a newer one is in use, so somebody holds a copy; it is recorded.
            CertificateRequestInvalid: the request cannot be used.
            LimitExceeded: the machine was given `MAX_RENEWALS` certificates already within a short time.
        """
        shown = certificate_in(certificate_pem)
        record = self._store.certificate(shown.serial_number) if self._authority.issued(shown) else None
        if record is None or record.sha256 != shown.fingerprint(hashes.SHA256()):
            raise CertificateUnknown("this server did not issue the certificate in hand, or lost its records")
        check_possession(shown, signature, csr_pem)
        key = public_key_of(csr_pem)
        now = self._clock()
        who = f"{record.kind} {record.name}"
        with self._store.transaction():
            record = self._store.certificate(record.serial) or record
            if record.state is CertificateState.REVOKED:
                raise CertificateRevoked(f"the certificate of {who} was revoked")
            superseded = record.state is CertificateState.SUPERSEDED
            if not superseded:
                self._check_grace(record, now)
                certificate = self._unused(record, key, now)
                if certificate is None:
                    self._check_renewals(record, now)
                    # The names stay those that an operator gave it.
                    certificate = self._issue(record.kind, record.name, key, now, host_names_of(shown))
                    details = {"name": record.name, "kind": record.kind, "before": f"{record.serial:x}"}
                    self._record("renewed", f"{certificate.serial:x}", f"{record.kind}/{record.name}", details)
                given = self._given(certificate)
                self._store.when_written(partial(self._revocations.add, certificate))
        if superseded:
            self.note_contested(record.kind, record.name, f"certificate {record.serial:x} was renewed before")
            raise CertificateSuperseded(
                f"certificate {record.serial:x} of {who} was renewed before, and the newer one is in use: "
                "there are two holders"
            )
        return given

    def revoke(self, kind: str, name: str, *, reason: str, by: str) -> MachineRecord:
        """Take a machine's certificates back, and tokens that wait for it; the caller ends its live calls.

        Raises:
            NotFound: there is no such machine.
            PodiumError: nothing was taken back, or only the ledger's entry is missing; `next_step` says which.
        """
        try:
            machine = self._taken_back(kind, name, reason)
        except StorageFull as error:
            error.next_step = _NOT_REVOKED
            raise
        try:
            self._record("revoked", f"{machine.serial:x}", by, {"kind": kind, "name": name, "reason": reason})
        except PodiumError as error:
            error.next_step = _NOT_RECORDED
            raise
        _LOG.warning("%s %s was revoked", kind, name)
        return machine

    def _taken_back(self, kind: str, name: str, reason: str) -> MachineRecord:
        now = self._clock()
        with self._store.transaction():
            if not self._store.machines(kind, name):
                raise NotFound(
                    f"there is no {kind} named {name[:80]!r}",
                    next_step="`podium machine list` lists the machines.",
                    field="name",
                )
            old = self._take_back(kind, name, now)
            self._store.revoke_machine(kind, name, reason, now)
            self._store.expire_tokens(kind, name, now)
            # Memory must not know what a restart would forget.
            self._store.when_written(lambda: self._revocations.put(old))
            return self._store.machines(kind, name)[0]

    def note_contested(self, kind: str, name: str, reason: str) -> None:
        """Record that a certificate seems to have two holders. Which is the right one, a person must decide."""
        if not self._store.machines(kind, name):
            return  # without certificates a name is only what somebody said
        now = self._clock()
        self._store.contest(kind, name, reason, now)
        # Two holders that take turns would fill the ledger.
        key = f"{kind}/{name}/{now:%Y%m%dT%H%M}"
        self._record("contested", key, f"{kind}/{name}", {"kind": kind, "name": name, "reason": reason})
        _LOG.warning("two holders of the certificate of %s %s: %s", kind, name, reason)

    def machines(self, kind: str = "") -> list[MachineRecord]:
        """The machines on record, with when each was last seen."""
        return [
            replace(machine, last_seen_time=seen)
            if (seen := self._revocations.last_seen(machine.kind, machine.name)) is not None
            else machine
            for machine in self._store.machines(kind)
        ]

    def _take_back(self, kind: str, name: str, now: datetime) -> list[IssuedCertificate]:
        old = [
            certificate
            for certificate in self._store.certificates_of(kind, name)
            if certificate.state is not CertificateState.REVOKED
        ]
        self._store.set_states([certificate.serial for certificate in old], CertificateState.REVOKED, now)
        return [replace(certificate, state=CertificateState.REVOKED, change_time=now) for certificate in old]

    def _issue(
        self, kind: str, name: str, key: MachinePublicKey, now: datetime, host_names: tuple[str, ...]
    ) -> IssuedCertificate:
        signed = self._authority.machine_certificate(
            kind, name, key, now=now, lifetime=self._rules.lifetime, host_names=host_names
        )
        certificate = _as_record(signed, kind, name, key, now)
        self._store.add_certificate(certificate)
        return certificate

    def _given(self, certificate: IssuedCertificate, *, took_back: bool = False) -> Issued:
        machine = replace(
            self._store.machines(certificate.kind, certificate.name)[0],
            serial=certificate.serial,
            issue_time=certificate.issue_time,
            expire_time=certificate.expire_time,
        )
        return Issued(certificate_pem=certificate.pem, machine=machine, took_back=took_back)

    def _unused(self, record: IssuedCertificate, key: MachinePublicKey, now: datetime) -> IssuedCertificate | None:
        """One that this key was issued and did not use yet: the answer was lost."""
        for certificate in self._store.certificates_of(record.kind, record.name):
            waits = certificate.state is CertificateState.ISSUED and certificate.serial != record.serial
            if waits and certificate.key_sha256 == key_sha256(key) and now < certificate.expire_time:
                return certificate
        return None

    def _check_grace(self, record: IssuedCertificate, now: datetime) -> None:
        end = record.expire_time + self._rules.grace
        if now >= end:
            raise RenewalTooLate(
                f"the certificate of {record.kind} {record.name} expired at {told(record.expire_time)}, could be "
                f"renewed until {told(end)}; the server's clock says {told(now)}"
            )

    def _check_renewals(self, record: IssuedCertificate, now: datetime) -> None:
        within = min(self._rules.lifetime, timedelta(hours=1))
        given = self._store.certificates_of(record.kind, record.name)
        if sum(abs(now - certificate.issue_time) < within for certificate in given) > MAX_RENEWALS:
            raise LimitExceeded(
                f"{record.kind} {record.name} was given {MAX_RENEWALS} certificates within {within}",
                next_step="Look why the machine renews so often; it is given the next one after that time.",
                retry_after=within,
            )

    def _record(self, what: str, key: str, by: str, details: Mapping[str, Any]) -> None:
        entry = AuditEntry(
            key=f"identity/{what}/{key}",
            at=self._clock(),
            task_id="",
            caller=by,
            action=f"identity.{what}",
            details=details,
        )
        self._audit.append(entry)


def _as_record(
    signed: x509.Certificate, kind: str, name: str, key: MachinePublicKey, now: datetime
) -> IssuedCertificate:
    return IssuedCertificate(
        serial=signed.serial_number,
        kind=kind,
        name=name,
        key_sha256=key_sha256(key),
        sha256=signed.fingerprint(hashes.SHA256()),
        pem=signed.public_bytes(serialization.Encoding.PEM),
        issue_time=now,
        expire_time=signed.not_valid_after_utc,
        state=CertificateState.ISSUED,
        change_time=now,
    )
