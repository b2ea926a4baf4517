"""From what a call brings along to who calls: a bearer token, or the certificate of an enrolled machine."""

import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from cryptography import x509

from cloud.auth.principal import Principal
from cloud.auth.tokens import Tokens
from podium.errors import Unauthenticated

_MACHINE = re.compile(r"podium://(device|site|worker|agent_host)/([A-Za-z0-9][A-Za-z0-9._-]{0,99})")
_CERTIFICATE = "x509_pem_cert"

Metadata = Iterable[tuple[str, str | bytes]]
AuthContext = Mapping[str, Iterable[bytes]]


def no_machines(serial: int) -> None:
    """For a server that enrols no machines."""
    raise Unauthenticated("this server takes no machines")


class Authentication:
    """Says who calls, or refuses. Nothing that it raises quotes a secret."""

    def __init__(
        self,
        tokens: Tokens | None,
        *,
        check_machine: Callable[[int], None] = no_machines,
        insecure: bool = False,
        private_token: str = "",
    ) -> None:
        """Decide what is accepted.

        Args:
            tokens: checks bearer tokens; None accepts none.
            check_machine: raises `Unauthenticated` when the certificate of a serial number is no longer good.
            insecure: everybody is the local administrator; only for loopback, when asked for by name.
            private_token: accepted besides: whoever has it is the administrator of this process's own server.
        """
        self._tokens = tokens
        self._check_machine = check_machine
        self._insecure = insecure
        self._private_token = private_token.encode()

    def principal(self, metadata: Metadata, auth_context: AuthContext) -> Principal:
        """Who calls.

        Args:
            metadata: of the call.
            auth_context: of its connection, as gRPC gives it.

        Raises:
            Unauthenticated: nobody who may be believed.
        """
        if self._insecure:
            return Principal.local()
        certificates = tuple(auth_context.get(_CERTIFICATE, ()))
        if certificates:
            return self._machine(certificates[0])
        return self._bearer(_bearer_token(metadata))

    def _bearer(self, token: str) -> Principal:
        if self._private_token and hmac.compare_digest(token.encode(), self._private_token):
            return Principal.local(OPERATOR_SUBJECT)
        if self._tokens is None:
            raise Unauthenticated("the token is not good")
        return self._tokens.check(token)

    def _machine(self, pem: bytes) -> Principal:
        principal = _principal_of(pem)
        if principal.serial is not None:
            self._check_machine(principal.serial)
        return principal


OPERATOR_SUBJECT = "operator"
"""Whose token lies in the data directory: whoever may read that directory runs the server."""


def _bearer_token(metadata: Metadata) -> str:
    values = [value for name, value in metadata if name == "authorization"]
    if not values:
        raise Unauthenticated("the call brings no credentials along")
    if len(values) > 1:
        raise Unauthenticated("the call brings more than one authorization along")
    scheme, _, token = str(values[0]).partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("the authorization of the call is not of the form: Bearer TOKEN")
    return token.strip()


@lru_cache(maxsize=4096)
def _principal_of(pem: bytes) -> Principal:
    """Whom a certificate names. TLS has checked its signature and time; revocation is looked up at every call.

    Raises:
        Unauthenticated: it names no machine of ours.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        uris = extension.value.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension) as error:
        raise Unauthenticated("the certificate names no machine") from error
    matches = [_MACHINE.fullmatch(uri) for uri in uris]
    if len(matches) != 1 or matches[0] is None:
        raise Unauthenticated("the certificate names no machine of the form podium://KIND/NAME")
    kind, name = matches[0].groups()
    return Principal.machine(
        kind, name, serial=certificate.serial_number, expire_time=certificate.not_valid_after_utc
    )
