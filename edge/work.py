"""When this device was at work on something, and where that is in a trace: it travels with what came of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from podium.telemetry import TraceContext
from podium.v1 import edge_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work of this device."""

    start: datetime
    """By this device's clock."""
    duration: timedelta
    """By a clock that never jumps."""

    def to_message(self, clock_offset: timedelta) -> edge_pb2.WorkTime:
        """As it travels, by the cloud's clock.

        Args:
            clock_offset: the cloud's clock minus this one, as far as is known.
        """
        message = edge_pb2.WorkTime()
        message.start_time.FromDatetime(self.start + clock_offset)
        message.duration.FromTimedelta(self.duration)
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedWork:
    """The work that a trace begins with."""

    place: TraceContext
    work: Work
