"""`IdentityService`: certificates for machines, tokens for callers, and taking both back."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import grpc

from agents.audit import AuditEntry, AuditLog
from cloud.auth.principal import current_principal
from cloud.auth.tokens import DEFAULT_LIFETIME, LONGEST_LIFETIME, Tokens
from cloud.identity.attempts import AttemptLimiter
from cloud.identity.desk import IdentityDesk, Issued
from cloud.identity.records import MachineRecord
from cloud.identity.revocation import Revocations
from cloud.services.fields import checked_duration, checked_text
from cloud.services.live import LiveCalls
from conductor.journal import timestamp_of
from podium.errors import Conflict, InvalidRequest, PermissionDenied, PodiumError, Unauthenticated
from podium.identity.enrolling import KINDS
from podium.link.certificates import MachinesNotServed
from podium.v1 import identity_pb2, identity_pb2_grpc

MAX_REASON_CHARACTERS = 1_000
LONGEST_TOKEN_LIFETIME = timedelta(days=366)

Context = grpc.aio.ServicerContext[Any, Any]


class IdentityService(identity_pb2_grpc.IdentityServiceServicer):
    """See `podium/v1/identity.proto`."""

    def __init__(
        self,
        desk: IdentityDesk,
        revocations: Revocations,
        *,
        tokens: Tokens,
        live: LiveCalls,
        audit: AuditLog,
        attempts: AttemptLimiter,
        clock: Callable[[], datetime],
        machines_address: Callable[[], str],
    ) -> None:
        """Serve.

        Args:
            desk: issues and takes back.
            revocations: ends the live calls of who was revoked.
            tokens: of callers.
            live: the calls that are being served.
            audit: where tokens are recorded; the desk records machines.
            attempts: slows down who is refused.
            clock: the server's clock.
            machines_address: HOST:PORT that machines are told to use; '' when the server takes none.
        """
        self._desk = desk
        self._revocations = revocations
        self._tokens = tokens
        self._live = live
        self._audit = audit
        self._attempts = attempts
        self._clock = clock
        self._machines_address = machines_address

    async def Enroll(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.EnrollRequest, context: Context
    ) -> identity_pb2.EnrollResponse:
        """Turn a one-time token and a certificate request into a certificate."""
        kind = _kind(request.kind) if request.kind else ""
        with self._attempt(context, await asyncio.to_thread(self._desk.known, token=request.token)):
            address = self._machines_address()
            if not address:
                raise MachinesNotServed("this server takes no machines")  # before the token is used up
            issued = await asyncio.to_thread(
                self._desk.enrol, request.token, request.csr_pem, name=request.name, kind=kind
            )
        if issued.took_back:
            self._revocations.tell(issued.machine.kind, issued.machine.name)
        return identity_pb2.EnrollResponse(
            certificate_pem=issued.certificate_pem,
            ca_pem=self._desk.ca_pem,
            identity=_identity(issued.machine),
            machines_address=address,
        )

    async def Renew(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.RenewRequest, context: Context
    ) -> identity_pb2.RenewResponse:
        """Give a machine a new certificate for the one that it proves to hold."""
        known = await asyncio.to_thread(self._desk.known, certificate_pem=request.certificate_pem)
        with self._attempt(context, known):
            issued: Issued = await asyncio.to_thread(
                self._desk.renew, request.certificate_pem, request.csr_pem, request.signature
            )
        return identity_pb2.RenewResponse(
            certificate_pem=issued.certificate_pem,
            ca_pem=self._desk.ca_pem,
            identity=_identity(issued.machine),
            machines_address=self._machines_address(),
        )

    async def CreateEnrolmentToken(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.CreateEnrolmentTokenRequest, context: Context
    ) -> identity_pb2.CreateEnrolmentTokenResponse:
        """Make an enrolment token; it is shown once."""
        lifetime = None
        if request.HasField("lifetime"):
            lifetime = checked_duration(request.lifetime, "lifetime", longest=LONGEST_TOKEN_LIFETIME)
        token, expires = await asyncio.to_thread(
            self._desk.invite,
            _kind(request.kind),
            name=request.name,
            lifetime=lifetime,
            uses=request.max_uses or 1,
            host_names=tuple(request.host_names),
            by=current_principal().caller,
        )
        return identity_pb2.CreateEnrolmentTokenResponse(token=token.text, expire_time=timestamp_of(expires))

    async def ListIdentities(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.ListIdentitiesRequest, context: Context
    ) -> identity_pb2.ListIdentitiesResponse:
        """Machines by kind and name, also revoked ones."""
        kind = _kind(request.kind) if request.kind else ""
        machines = await asyncio.to_thread(self._desk.machines, kind)
        return identity_pb2.ListIdentitiesResponse(identities=map(_identity, machines))

    async def RevokeIdentity(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.RevokeIdentityRequest, context: Context
    ) -> identity_pb2.RevokeIdentityResponse:
        """Take a machine's certificates back and end its live calls."""
        reason = checked_text(request.reason, "reason", max_characters=MAX_REASON_CHARACTERS)
        kind, by = _kind(request.kind), current_principal().caller
        try:
            machine = await asyncio.to_thread(self._desk.revoke, kind, request.name, reason=reason, by=by)
        finally:
            # Also when only the ledger was full: what is taken back is taken back. But a machine whose certificate
            # is still good, since the disk was full, must not be told that it is not: it would not come back.
            good = self._revocations.holds_good(kind, request.name)
            ended = 0 if good else self._revocations.tell(kind, request.name)
        return identity_pb2.RevokeIdentityResponse(identity=_identity(machine), ended_calls=ended)

    async def IssueCallerToken(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.IssueCallerTokenRequest, context: Context
    ) -> identity_pb2.IssueCallerTokenResponse:
        """Make a bearer token; it is shown once and not stored."""
        lifetime = DEFAULT_LIFETIME
        if request.HasField("lifetime"):
            lifetime = checked_duration(request.lifetime, "lifetime", longest=LONGEST_LIFETIME)
        token, expires = self._tokens.issue(
            request.subject, request.roles, lifetime=lifetime, tenant=request.tenant
        )
        details = {"subject": request.subject, "roles": sorted(request.roles), "expires": expires.isoformat()}
        if request.tenant:
            details["tenant"] = request.tenant
        await self._record("token_issued", request.subject, details)
        return identity_pb2.IssueCallerTokenResponse(token=token, expire_time=timestamp_of(expires))

    async def RevokeCallerTokens(  # noqa: N802 - gRPC's name
        self, request: identity_pb2.RevokeCallerTokensRequest, context: Context
    ) -> identity_pb2.RevokeCallerTokensResponse:
        """Refuse every token that a caller was issued up to now, and end its live calls."""
        reason = checked_text(request.reason, "reason", max_characters=MAX_REASON_CHARACTERS)
        moment = await asyncio.to_thread(self._tokens.revoke, request.subject)
        failure = Unauthenticated(
            f"the tokens of {request.subject} were taken back", next_step="Ask the administrator for a new one."
        )
        ended = self._live.end("caller", request.subject, failure=failure)
        try:
            await self._record("tokens_revoked", request.subject, {"subject": request.subject, "reason": reason})
        except PodiumError as error:
            error.next_step = "The tokens are taken back. Put right what is named, revoke again for the ledger."
            raise
        return identity_pb2.RevokeCallerTokensResponse(revoke_time=timestamp_of(moment), ended_calls=ended)

    @contextmanager
    def _attempt(self, context: Context, known: str) -> Iterator[None]:
        """Count what is refused; these calls are open to everybody."""
        peer = context.peer()
        self._attempts.check(peer, known)
        try:
            yield
        except (Unauthenticated, PermissionDenied, InvalidRequest, Conflict):
            self._attempts.refused(peer, known)
            raise

    async def _record(self, what: str, subject: str, details: dict[str, Any]) -> None:
        now = self._clock()
        entry = AuditEntry(
            key=f"identity/{what}/{subject}/{now.isoformat()}",
            at=now,
            task_id="",
            caller=current_principal().caller,
            action=f"identity.{what}",
            details=details,
        )
        await asyncio.to_thread(self._audit.append, entry)


def _kind(number: int) -> str:
    for name, known in KINDS.items():
        if int(known) == number:
            return name
    raise InvalidRequest(f"kind is missing; there are {', '.join(KINDS)}", field="kind")


def _identity(machine: MachineRecord) -> identity_pb2.Identity:
    """A machine as it travels."""
    message = identity_pb2.Identity(
        kind=KINDS[machine.kind],
        name=machine.name,
        serial=format(machine.serial, "x"),
        enrol_time=timestamp_of(machine.enrol_time),
        issue_time=timestamp_of(machine.issue_time),
        expire_time=timestamp_of(machine.expire_time),
        revoke_reason=machine.revoke_reason,
    )
    for field, moment in (
        ("revoke_time", machine.revoke_time),
        ("contested_time", machine.contested_time),
        ("last_seen_time", machine.last_seen_time),
    ):
        if moment is not None:
            getattr(message, field).CopyFrom(timestamp_of(moment))
    return message
