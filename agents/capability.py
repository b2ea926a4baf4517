"""Short-lived, signed permission to run one statement with one set of parameters in one task.

The security agent issues a token after it has checked the statement; the executor runs nothing without one.
Tokens are JWTs signed with HS256 (RFC 7519, RFC 7515).
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from agents.canonical import sha256_of
from podium.errors import CapabilityDenied, CapabilityExpired, DataCorrupt
from tools.ledger.errors import storage_error

_ALGORITHM = "HS256"
_KEY_BYTES = 32
_ISSUER = "podium/security"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a token permits; a token is good for exactly this and nothing near it."""

    task_id: str
    audience: str
    """The agent that may use it."""
    scope: str
    """What may be done, e.g. `sql:read`."""
    subject: str
    """The caller on whose behalf."""
    sql_sha256: str
    parameters_sha256: str

    @classmethod
    def for_query(
        cls, sql: str, parameters: Mapping[str, Any], *, task_id: str, audience: str, scope: str, subject: str
    ) -> "Grant":
        """The grant to run a statement with its parameters (in JSON form)."""
        return cls(
            task_id=task_id,
            audience=audience,
            scope=scope,
            subject=subject,
            sql_sha256=hashlib.sha256(sql.encode("utf-8")).hexdigest(),
            parameters_sha256=sha256_of(parameters),
        )

    def claims(self) -> dict[str, str]:
        """The grant as JWT claims."""
        return {
            "sub": self.subject,
            "aud": self.audience,
            "task": self.task_id,
            "scope": self.scope,
            "sql_sha256": self.sql_sha256,
            "parameters_sha256": self.parameters_sha256,
        }


class CapabilityAuthority:
    """Signs and verifies capability tokens with one key of this installation."""

    RESOURCE: ClassVar[str] = "capabilities"
    """Its name among the resources."""

    def __init__(
        self, key: bytes, *, clock: Callable[[], datetime], lifetime: timedelta = timedelta(minutes=15)
    ) -> None:
        """Use a key.

        Args:
            key: At least 32 random bytes.
            clock: The present moment, with its time zone. Not the moment a task refers to: that stands still.
            lifetime: How long a token is good. A task whose token expired while the server was away has its
                statements checked anew.
        """
        self._key = OctKey.import_key(key)
        self._clock = clock
        self._lifetime = lifetime

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], datetime]) -> "CapabilityAuthority":
        """Use the key in a file, made with mode 0600 at first use; tokens so survive a restart.

        Raises:
            DataCorrupt: the file does not hold a key.
            StorageFull, InternalError: it cannot be made or read.
        """
        try:
            key = _key_in(path)
        except OSError as error:
            raise storage_error(error, path) from error
        if len(key) != _KEY_BYTES:
            raise DataCorrupt(
                f"{path} holds {len(key)} bytes, a key has {_KEY_BYTES}",
                next_step="Delete the file and start again; tokens in flight are asked for anew.",
            )
        return cls(key, clock=clock)

    def issue(self, grant: Grant) -> tuple[str, datetime]:
        """A token for the grant, and the moment it expires."""
        now = self._clock()
        expires = now + self._lifetime
        claims = {
            **grant.claims(),
            "iss": _ISSUER,
            "iat": int(now.timestamp()),
            "exp": int(expires.timestamp()),
            "jti": secrets.token_hex(8),
        }
        return jwt.encode({"alg": _ALGORITHM}, claims, self._key), expires

    def demand(self, token: str, grant: Grant) -> None:
        """Return only if the token permits exactly this grant now.

        Raises:
            CapabilityExpired: its time is over.
            CapabilityDenied: it is not a token of this installation, or is for something else; the message names
                the first claim that differs, never the token.
        """
        try:
            claims = jwt.decode(token, self._key, algorithms=[_ALGORITHM]).claims
        except (JoseError, ValueError) as error:
            raise CapabilityDenied(f"the capability token is not genuine: {type(error).__name__}") from error
        if claims.get("iss") != _ISSUER:
            raise CapabilityDenied("the capability token was not issued by the security agent")
        if not isinstance(claims.get("exp"), int) or self._clock().timestamp() >= claims["exp"]:
            raise CapabilityExpired("the capability token has expired")
        for name, expected in grant.claims().items():
            if claims.get(name) != expected:
                raise CapabilityDenied(f"the capability token is for another {_CLAIM_NAMES.get(name, name)}")


_CLAIM_NAMES: Mapping[str, str] = {
    "sub": "caller",
    "aud": "agent",
    "sql_sha256": "statement",
    "parameters_sha256": "set of parameters",
}


def _key_in(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    if not path.exists():
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            # link, not rename: of two processes that start at once the first one's key stays.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_bytes()
