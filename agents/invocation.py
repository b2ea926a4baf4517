"""One call of an agent: what it is given, where it runs, and the port its engines implement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from agents.spec import AgentSpec
from podium.errors import InternalError

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asked, with the roles that permissions are checked against."""

    name: str
    roles: frozenset[str] = frozenset({"caller"})


@dataclass(frozen=True, slots=True)
class Resources:
    """What agents share, by name: the warehouse, the embedder, the document index, the signing key."""

    entries: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, name: str, kind: type[R]) -> R:
        """The resource of that name.

        Raises:
            InternalError: there is none, or it is of another type.
        """
        entry = self.entries.get(name)
        if not isinstance(entry, kind):
            raise InternalError(f"resource {name!r} of type {kind.__name__} is not configured")
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What an agent knows besides its inputs."""

    task_id: str
    step: int
    attempt: int
    """From 1."""
    idempotency_key: str
    """Names the effect of a write: task/step."""
    now: datetime
    """The moment relative dates refer to, with its time zone."""
    caller: Caller
    trace_id: str = ""
    request: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The normalised request."""
    device_id: str = ""
    document_sha256: str = ""
    diagnosis: tuple[str, ...] = ()
    """Why the attempt before this one failed."""
    turns_left: int | None = None
    """Rounds that hand-overs leave for this call, where they set a limit: an engine that talks to its agent in
    several rounds gives up after as many, with `agents.contract.HandoverBroken`."""
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call: the agent, its inputs (already valid against its input schema) and its context."""

    spec: AgentSpec
    inputs: Mapping[str, Any]
    context: AgentContext
    time_limit: timedelta


class Engine(Protocol):
    """Runs agents of one kind."""

    async def invoke(self, invocation: Invocation) -> Any:
        """The agent's raw output, not yet checked.

        Raises:
            AgentTimeout: it did not answer within `invocation.time_limit`.
            AgentCrashed: it raised an error of its own.
            DeviceOffline: it runs on a device that is not connected.
        """
        ...
