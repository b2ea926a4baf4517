"""Who makes the call that is being served."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from cloud.auth.roles import ADMINISTRATOR, CALLER, MACHINE_ROLES, implied
from podium.errors import InternalError

LOCAL_NAME = "local"
"""Everybody's name on a server that was told to serve without credentials."""
ANONYMOUS = "anonymous"
"""Whoever calls what needs no credentials; also the owner of tasks from before callers had names."""
RESERVED_NAMES = frozenset({LOCAL_NAME, ANONYMOUS})
"""Names that no token is issued to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody or something with credentials that were checked."""

    name: str
    """The token's subject, or the name in a machine's certificate."""
    roles: frozenset[str]
    """As the credentials give them; empty for a machine that may call nothing here."""
    kind: Literal["caller", "machine", "local"]
    caller: str
    """Name that tasks and decisions are recorded under. Unique: a machine's is KIND/NAME, and a subject of another
    issuer is external/SUBJECT; no subject of ours has a slash."""
    serial: int | None = None
    """Serial number of a machine's certificate."""
    expire_time: datetime | None = None
    """When the credentials end, and every stream with them; None for none that end."""
    tenant_claim: str = ""
    """Whom the token says that the caller belongs to."""

    @classmethod
    def local(cls, name: str = LOCAL_NAME) -> Self:
        """Whoever is on this machine: the administrator of a server that is theirs alone."""
        return cls(name=name, roles=frozenset({ADMINISTRATOR}), kind="local", caller=name)

    @classmethod
    def anonymous(cls) -> Self:
        """Whoever shows no credentials."""
        return cls(name=ANONYMOUS, roles=frozenset(), kind="caller", caller=ANONYMOUS)

    @classmethod
    def machine(cls, kind: str, name: str, *, serial: int, expire_time: datetime | None) -> Self:
        """An enrolled machine; its role is its kind."""
        return cls(
            name=name,
            roles=MACHINE_ROLES & {kind},
            kind="machine",
            caller=f"{kind}/{name}",
            serial=serial,
            expire_time=expire_time,
        )

    @property
    def tenant(self) -> str:
        """Whom the caller belongs to; they themselves where the credentials say nothing."""
        return self.tenant_claim or self.caller

    @property
    def is_device(self) -> bool:
        """Whether it is an edge device."""
        return self.kind == "machine" and self.caller == f"device/{self.name}"

    @property
    def recorded_roles(self) -> tuple[str, ...]:
        """Roles that are recorded with a task, with those they imply; what a device sends, it asks as a caller."""
        return tuple(sorted(implied(self.roles) | ({CALLER} if self.is_device else set())))


_CURRENT: ContextVar[Principal] = ContextVar("podium_principal")


def current_principal() -> Principal:
    """Who makes the call that is being served; set by the interceptor before a service is called.

    Raises:
        InternalError: no call is being served.
    """
    try:
        return _CURRENT.get()
    except LookupError as error:
        raise InternalError("nobody's call is being served here") from error


def serve_as(principal: Principal) -> None:
    """From now on this task serves a call of `principal`; for the interceptor."""
    _CURRENT.set(principal)
