"""What can be wrong with a machine's certificate, one error each, with what to do about it.

They lie here, without any cryptography, because the server raises them and a running device must know them.
"""

from grpc import StatusCode

from podium.errors import (
    Conflict,
    InvalidRequest,
    PermissionDenied,
    PodiumError,
    ServerUnavailable,
    Unauthenticated,
)

_ENROL_AGAIN = (
    "An operator makes a token for this name (`podium machine invite --name NAME`); enrol again with it "
    "(`podium enroll`)."
)


class EnrolmentTokenInvalid(Unauthenticated):
    """An enrolment token is not one that this server made, or was copied wrongly."""

    code = "ENROLMENT_TOKEN_INVALID"
    advice = "Copy the whole token as `podium machine invite` printed it, or have a new one made."


class EnrolmentTokenExpired(Unauthenticated):
    """An enrolment token was good, and its time is over."""

    code = "ENROLMENT_TOKEN_EXPIRED"
    advice = "Have a new token made with `podium machine invite`."


class EnrolmentTokenUsed(Unauthenticated):
    """An enrolment token was used as often as it may be."""

    code = "ENROLMENT_TOKEN_USED"
    advice = (
        "Have a new token made with `podium machine invite`. If you did not use this one yourself, somebody else "
        "did: look at `podium machine list` and revoke what does not belong there."
    )


class EnrolmentNotCovered(PermissionDenied):
    """An enrolment token is good, but not for this kind of machine or this name."""

    code = "ENROLMENT_NOT_COVERED"
    advice = "Use the kind and name in the message, or have a token for the right ones made."


class IdentityNameTaken(Conflict):
    """A machine of this kind has the name already."""

    code = "IDENTITY_NAME_TAKEN"
    status = StatusCode.ALREADY_EXISTS
    advice = (
        "Choose another name; to put this machine in the other's place, have a token for exactly this name made "
        "(`podium machine invite --name NAME`)."
    )


class CertificateRequestInvalid(InvalidRequest):
    """A certificate request cannot be read, is not signed by its own key, or has a key that is not taken."""

    code = "CERTIFICATE_REQUEST_INVALID"
    advice = "Send a PKCS#10 request in PEM form with an EC P-256 or P-384 key; `podium enroll` makes one."


class MachinesNotServed(Conflict):
    """The server has no port for machines, so there is nothing to enrol for."""

    code = "MACHINES_NOT_SERVED"
    advice = "Serve with TLS and leave `listen_machines` at its default, then enrol again with the same token."


class CertificateRevoked(Unauthenticated):
    """A machine's certificate was taken back."""

    code = "CERTIFICATE_REVOKED"
    advice = f"Ask the operator why. {_ENROL_AGAIN}"


class CertificateSuperseded(Unauthenticated):
    """A newer certificate of the same machine is in use, so this one is no longer good."""

    code = "CERTIFICATE_SUPERSEDED"
    advice = (
        "Read the identity's files again: they may have been renewed. If these are the newest, somebody else "
        f"holds a copy: the operator revokes the machine. {_ENROL_AGAIN}"
    )


class CertificateUnknown(Unauthenticated):
    """A certificate is not one of this server's: another authority made it, or the server lost its records."""

    code = "CERTIFICATE_UNKNOWN"
    advice = f"Check that the machine speaks to the server that it was enrolled with. {_ENROL_AGAIN}"


class CertificateExpired(Unauthenticated):
    """A machine's certificate is past its time; renewal gives it a new one by itself."""

    code = "CERTIFICATE_EXPIRED"
    retryable = True
    advice = (
        "It is renewed by itself; `podium identity renew` does so at once. Check the clocks if it comes again."
    )


class RenewalTooLate(Unauthenticated):
    """A certificate expired so long ago that it can no longer be renewed."""

    code = "RENEWAL_TOO_LATE"
    advice = f"Check the server's clock, which the message quotes. If it is right: {_ENROL_AGAIN}"


class PossessionNotProven(Unauthenticated):
    """A renewal is not signed with the key of the certificate that it shows."""

    code = "POSSESSION_NOT_PROVEN"
    advice = f"The files of the identity do not belong together. {_ENROL_AGAIN}"


class RenewalFailed(ServerUnavailable):
    """The process that renews a certificate could not do it; it is tried again."""

    code = "RENEWAL_FAILED"
    advice = "Run `podium identity renew --dir DIR` by hand: it says what is in the way."


class CertificateRefused(ServerUnavailable):
    """The server's port for machines hung up on this machine during the TLS handshake.

    That is all a client sees when its certificate has expired, was revoked by its authority or is of another
    authority; a server that is just stopping looks the same.
    """

    code = "CERTIFICATE_REFUSED"
    advice = (
        "Renewal asks the server why, and mends it where that is safe; `podium identity renew --dir DIR` does so "
        "at once."
    )


class ServerNotTrusted(ServerUnavailable):
    """The certificate of a server is not of the authority that it should be of; nothing was sent to it."""

    code = "SERVER_NOT_TRUSTED"
    advice = (
        "Give that server's own ca.pem, from tls/ of its data directory; an enrolled machine whose server made a "
        "new authority enrols again."
    )

    @classmethod
    def at(cls, target: str, error: PodiumError) -> "ServerNotTrusted":
        """What TLS found wrong, in words of ours.

        Args:
            target: HOST:PORT.
            error: what gRPC said.
        """
        evidence = [error.message]
        if "certificate has expired" in error.message or "not yet valid" in error.message:
            return cls(
                f"the certificate of {target} is past or before its time by this machine's clock",
                next_step="Set this machine's clock; if it is right, have the server's certificate renewed.",
                evidence=evidence,
            )
        if "Hostname mismatch" in error.message or "Hostname Verification" in error.message:
            return cls(
                f"the certificate of {target} is for other names",
                next_step="Use a name in it, or add this one to `server_names` of the server and restart it.",
                evidence=evidence,
            )
        return cls(
            f"the certificate of {target} is not vouched for by the authority that was given", evidence=evidence
        )


FINAL = (
    CertificateRevoked,
    CertificateSuperseded,
    CertificateUnknown,
    PossessionNotProven,
)
"""Errors that asking again does not mend: only a new enrolment does."""
