"""What an agent function is told besides its inputs."""

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium.v1 import agent_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """One call, as the function sees it."""

    task_id: str
    step: int
    attempt: int
    """From 1."""
    idempotency_key: str
    """Names the effect of a write; '' for a call that writes nothing."""
    as_of: datetime | None
    """The moment that relative dates refer to, in UTC."""
    caller: str
    diagnosis: tuple[str, ...]
    """Why the attempt before this one failed."""
    document_sha256: str
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for the answer any more, never for a write; a long function looks now and then."""
    ends_at_s: float
    """When the time is up, by `time.monotonic`."""

    @property
    def seconds_left(self) -> float:
        """How long the caller still waits; 0 when the time is up."""
        return max(0.0, self.ends_at_s - time.monotonic())

    @classmethod
    def of(cls, message: agent_pb2.InvocationContext, *, ends_at_s: float) -> "CallContext":
        """As it travelled.

        Args:
            message: what was sent.
            ends_at_s: when the time is up, by `time.monotonic`.
        """
        return cls(
            task_id=message.task_id,
            step=message.step,
            attempt=message.attempt,
            idempotency_key=message.idempotency_key,
            as_of=message.as_of.ToDatetime(UTC) if message.HasField("as_of") else None,
            caller=message.caller,
            diagnosis=tuple(message.diagnosis),
            document_sha256=message.document_sha256,
            ends_at_s=ends_at_s,
        )
