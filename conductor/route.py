"""Which planners were asked for a plan, how sure each was, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from podium.v1 import plan_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteEntry:
    """One planner that was asked."""

    planner: str
    """rules, policy, llm, revision, conductor or person."""
    taken: bool
    """Whether its plan came into force."""
    reason: str
    """Why it was taken or not, in words."""
    confidence: float | None = None
    """How sure it was of its plan, in [0, 1]; None when it had none."""
    threshold: float | None = None
    """How sure it had to be; None where no threshold applies."""

    def to_proto(self) -> plan_pb2.PlanRoute:
        """The entry as it travels."""
        return plan_pb2.PlanRoute(
            planner=self.planner,
            confidence=self.confidence,
            threshold=self.threshold,
            taken=self.taken,
            reason=self.reason,
        )

    @classmethod
    def from_proto(cls, message: plan_pb2.PlanRoute) -> "RouteEntry":
        """Read an entry from the wire."""
        return cls(
            planner=message.planner,
            confidence=message.confidence if message.HasField("confidence") else None,
            threshold=message.threshold if message.HasField("threshold") else None,
            taken=message.taken,
            reason=message.reason,
        )

    def to_json(self) -> dict[str, Any]:
        """The entry as commands print it."""
        return {
            "planner": self.planner,
            "confidence": self.confidence,
            "threshold": self.threshold,
            "taken": self.taken,
            "reason": self.reason,
        }

    @property
    def words(self) -> str:
        """One line: `policy (0.55 sure, 0.80 needed): a person is asked`."""
        sure = f"{self.confidence:.2f} sure" if self.confidence is not None else ""
        needed = f"{self.threshold:.2f} needed" if self.threshold is not None else ""
        figures = ", ".join(part for part in (sure, needed) if part)
        return f"{self.planner}{f' ({figures})' if figures else ''}: {self.reason}"


def route_of(messages: Iterable[plan_pb2.PlanRoute]) -> tuple[RouteEntry, ...]:
    """The entries of a message, in order."""
    return tuple(map(RouteEntry.from_proto, messages))
