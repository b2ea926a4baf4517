"""Bearer tokens of people and applications: JWTs that this server signs, and those of one other issuer.

Ours are signed with ES256 by a key that never leaves the data directory. A caller's tokens are taken back
together: what was issued up to then is refused (`cloud.auth.revoked_tokens`). Only asymmetric algorithms are
accepted, whatever a token's header says, so that nobody signs with a public key as if it were a password.
"""

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from cloud.auth.files import read_secret, write_secret
from cloud.auth.principal import RESERVED_NAMES, Principal
from cloud.auth.revoked_tokens import RevokedTokens
from cloud.auth.roles import PERSON_ROLES
from podium.errors import DataCorrupt, InvalidRequest, Unauthenticated

ISSUER = "podium"
KEY_FILE = "tokens.key"
LEEWAY = timedelta(seconds=60)
"""By how much the clocks of two machines may differ."""
DEFAULT_LIFETIME = timedelta(days=30)
LONGEST_LIFETIME = timedelta(days=366)
MAX_TOKEN_CHARACTERS = 8192
_OURS = ("ES256",)
_ASYMMETRIC = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", "Ed25519")
_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_MAX_SUBJECT_CHARACTERS = 200
_LAST_YEAR = 9998
"""Of a claim: sums with moments of the last one would be no moments."""


class TokenKeyUnusable(DataCorrupt):
    """The key that signs callers' tokens cannot be used."""

    code = "TOKEN_KEY_UNUSABLE"
    advice = "Restore tokens.key from a backup, or remove it: a new one is made, and callers need new tokens."


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherIssuer:
    """Who else may issue tokens, e.g. a company's single sign-on."""

    issuer: str
    """The claim `iss` of its tokens."""
    audience: str
    """What its tokens must name in `aud`: this server, as the issuer knows it."""
    roles_claim: str
    """The claim with the roles: a list of names or a text with names between blanks."""
    keys: KeySet


def other_issuer(jwks_file: Path, *, issuer: str, audience: str, roles_claim: str) -> OtherIssuer:
    """Another issuer by the file of its public keys (JWKS).

    Raises:
        InvalidRequest: the file cannot be read or holds keys that are no public keys.
    """
    try:
        entries = json.loads(jwks_file.read_text(encoding="utf-8"))["keys"]
        kinds = {str(entry["kty"]) for entry in entries}
        keys = KeySet.import_key_set({"keys": entries})
    except (OSError, ValueError, KeyError, TypeError, JoseError) as error:
        raise InvalidRequest(
            f"{jwks_file} is no readable set of public keys (JWKS): {type(error).__name__}", field="jwt_jwks"
        ) from error
    if not entries or not kinds <= {"EC", "RSA", "OKP"} or any("d" in entry for entry in entries):
        raise InvalidRequest(
            f"{jwks_file} must hold public keys of the kinds EC, RSA or OKP and nothing else", field="jwt_jwks"
        )
    return OtherIssuer(issuer=issuer, audience=audience, roles_claim=roles_claim, keys=keys)


class Tokens:
    """Issues, checks and takes back bearer tokens."""

    def __init__(
        self,
        key: ECKey,
        revoked: RevokedTokens,
        *,
        clock: Callable[[], datetime],
        other: OtherIssuer | None = None,
    ) -> None:
        """Use `open`."""
        self._key = key
        self._revoked = revoked
        self._clock = clock
        self._other = other

    @classmethod
    def open(cls, data: Path, *, clock: Callable[[], datetime], other: OtherIssuer | None = None) -> "Tokens":
        """The tokens of a data directory, whose key is made when there is none.

        Args:
            data: the data directory, which the caller has locked.
            clock: the present moment in UTC.
            other: whose tokens are accepted besides.

        Raises:
            TokenKeyUnusable: the key is damaged.
            SecretExposed: others than its owner may read it.
        """
        path = data / KEY_FILE
        pem = read_secret(path)
        if pem is None:
            key = ECKey.generate_key("P-256")
            write_secret(path, key.as_pem(private=True))
        else:
            try:
                key = ECKey.import_key(pem)
                whole = key.is_private and key.curve_name == "P-256"
            except (JoseError, ValueError, TypeError) as error:
                # The cause is not told: it may quote the file.
                raise TokenKeyUnusable(f"{path} holds no key: {type(error).__name__}") from None
            if not whole:
                raise TokenKeyUnusable(f"{path} holds no private key of the curve P-256")
        return cls(key, RevokedTokens.open(data), clock=clock, other=other)

    def issue(
        self,
        subject: str,
        roles: Collection[str],
        *,
        lifetime: timedelta = DEFAULT_LIFETIME,
        tenant: str = "",
    ) -> tuple[str, datetime]:
        """A token and when it expires. It is not kept: whoever asked is the only one to have it.

        Args:
            subject: who it is for.
            roles: what they may do.
            lifetime: how long it is good.
            tenant: whom they belong to; they themselves when empty.

        Raises:
            InvalidRequest: a subject, role, lifetime or tenant that tokens cannot have.
        """
        checked_subject(subject)
        unknown = sorted(set(roles) - PERSON_ROLES)
        if unknown or not roles:
            raise InvalidRequest(
                f"there is no role {unknown[0]!r} for tokens" if unknown else "a token needs a role",
                next_step=f"Use one or more of {', '.join(sorted(PERSON_ROLES))}; machines are enrolled instead.",
                field="roles",
            )
        if not timedelta(seconds=1) <= lifetime <= LONGEST_LIFETIME:
            raise InvalidRequest(f"a token lives from 1 s to {LONGEST_LIFETIME.days} days", field="lifetime")
        if tenant and not _SUBJECT.fullmatch(tenant):
            raise InvalidRequest(
                f"{tenant[:100]!r} cannot be a tenant",
                next_step="Use up to 100 letters, digits and . _ @ + -.",
                field="tenant",
            )
        now = self._clock()
        expires = now + lifetime
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": ISSUER,
            "sub": subject,
            "roles": sorted(set(roles)),
            "epoch": self._revoked.epoch(subject),
            "iat": now.timestamp(),
            "exp": expires.timestamp(),
            "jti": secrets.token_hex(16),
        } | ({"tenant": tenant} if tenant else {})
        return jwt.encode({"alg": "ES256"}, claims, self._key, algorithms=_OURS), expires

    def revoke(self, subject: str) -> datetime:
        """Refuse from now on what was issued to a subject up to now; on disk when this returns.

        Args:
            subject: of a token of ours, or external/SUBJECT for one of the other issuer.

        Raises:
            InvalidRequest: no subject that a token can have.
        """
        if not (self._other is not None and subject.startswith("external/") and _usable(subject)):
            checked_subject(subject)
        now = self._clock()
        self._revoked.add(subject, now)
        return now

    def check(self, token: str) -> Principal:
        """Who a token speaks for.

        Raises:
            Unauthenticated: it is forged, expired, taken back, or for somebody else. The token is not quoted.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise Unauthenticated(f"the token is longer than {MAX_TOKEN_CHARACTERS} characters")
        other = self._other
        if other is not None and _claimed_issuer(token) == other.issuer:
            claims = _signed_claims(token, other.keys, _ASYMMETRIC)
            subject = claims.get("sub")
            if not isinstance(subject, str) or not _usable(subject):
                raise Unauthenticated("the token names no subject that can be used")
            caller, roles, audience = f"external/{subject}", _roles(claims.get(other.roles_claim)), other.audience
            taken_back = self._revoked.covers(caller, _moment(claims, "iat", required=False))
        else:
            claims = _signed_claims(token, self._key, _OURS)
            subject, roles, audience = str(claims.get("sub", "")), _roles(claims.get("roles")), ISSUER
            if claims.get("iss") != ISSUER or not _SUBJECT.fullmatch(subject):
                raise Unauthenticated("the token is not one of this server's")
            caller = subject
            taken_back = claims.get("epoch") != self._revoked.epoch(caller)
        self._check_times(claims)
        if taken_back:
            raise Unauthenticated(
                f"the tokens of {caller} were taken back", next_step="Ask the administrator for a new one."
            )
        named = claims.get("aud")
        if audience not in (named if isinstance(named, list) else [named]):
            raise Unauthenticated("the token is for another server: its audience is not this one")
        expires = _moment(claims, "exp", required=True) or self._clock()
        return Principal(
            name=subject,
            roles=roles & PERSON_ROLES,
            kind="caller",
            caller=caller,
            expire_time=expires + LEEWAY,
            tenant_claim=_tenant(claims.get("tenant")),
        )

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._clock()
        issued = _moment(claims, "iat", required=False)
        expires = _moment(claims, "exp", required=True)
        not_before = _moment(claims, "nbf", required=False)
        if expires is not None and now >= expires + LEEWAY:
            raise Unauthenticated(
                f"the token expired at {expires:%Y-%m-%d %H:%M:%S} UTC",
                next_step="Ask the administrator for a new one: `podium token issue`.",
            )
        for moment in (issued, not_before):
            if moment is not None and moment > now + LEEWAY:
                raise Unauthenticated(
                    "the token is of a moment yet to come",
                    next_step="Compare the clocks of the machine that issued it and of this server.",
                )


def checked_subject(subject: str) -> str:
    """A name that a token can be issued to.

    Raises:
        InvalidRequest: it cannot; the message says what can.
    """
    if not _SUBJECT.fullmatch(subject) or subject in RESERVED_NAMES:
        raise InvalidRequest(
            f"{subject[:100]!r} cannot be the subject of a token",
            next_step="Use up to 100 letters, digits and . _ @ + -; not local and not anonymous.",
            field="subject",
        )
    return subject


def _signed_claims(token: str, key: ECKey | KeySet, algorithms: Iterable[str]) -> dict[str, Any]:
    try:
        return jwt.decode(token, key, algorithms=list(algorithms)).claims
    except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
        # Neither the token nor what the library says of it goes along: it may quote the token.
        raise Unauthenticated(f"the token is not good: {type(error).__name__}") from None


def _claimed_issuer(token: str) -> object:
    """What an unchecked token says of its issuer; only chooses the keys that it is then checked with."""
    try:
        claims = json.loads(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return claims.get("iss") if isinstance(claims, dict) else None


def _usable(foreign_subject: str) -> bool:
    return 0 < len(foreign_subject) <= _MAX_SUBJECT_CHARACTERS and foreign_subject.isprintable()


def _tenant(value: object) -> str:
    """The claim `tenant`; '' when there is none.

    Raises:
        Unauthenticated: it is no tenant's name.
    """
    if value is None:
        return ""
    if not isinstance(value, str) or not _SUBJECT.fullmatch(value):
        raise Unauthenticated("the token's claim tenant is no name that can be used")
    return value


def _roles(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()


def _moment(claims: Mapping[str, Any], name: str, *, required: bool) -> datetime | None:
    value = claims.get(name)
    if value is None and not required:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            moment = datetime.fromtimestamp(value, tz=UTC)
        except (ValueError, OverflowError, OSError):
            moment = None
        if moment is not None and moment.year <= _LAST_YEAR:
            return moment
    raise Unauthenticated(f"the token's claim {name} is no moment")
