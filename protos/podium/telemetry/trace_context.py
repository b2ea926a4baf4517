"""Where a piece of work belongs in a trace, as W3C Trace Context (level 1) writes it."""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

TRACEPARENT = "traceparent"
"""Name of the metadata entry or header."""
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?")
_LONGEST = 512
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


@dataclass(frozen=True, slots=True)
class TraceContext:
    """One span's place: the trace, and the span that new spans are children of."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""

    @property
    def traceparent(self) -> str:
        """As it travels. Always marked as recorded: whether it is, each process decides for itself."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def child(self) -> "TraceContext":
        """A new span of the same trace."""
        return TraceContext(self.trace_id, new_span_id())


def parsed(traceparent: object) -> TraceContext | None:
    """The place that a traceparent names; None for anything that is none, which is to be taken as not given.

    A later version of the format is read as far as this one knows it, as the standard asks.
    """
    if not isinstance(traceparent, str) or len(traceparent) > _LONGEST:
        return None
    match = _FORM.fullmatch(traceparent)
    if match is None:
        return None
    version, trace_id, span_id, _flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest is not None) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return TraceContext(trace_id, span_id)


def of_metadata(metadata: Iterable[tuple[str, str | bytes]] | None) -> TraceContext | None:
    """The place that a call's metadata names; None when it names none, or several."""
    found = [value for key, value in metadata or () if key == TRACEPARENT]
    return parsed(found[0]) if len(found) == 1 else None


def new_trace() -> TraceContext:
    """The first span of a new trace."""
    return TraceContext(secrets.token_hex(16), new_span_id())


def new_span_id() -> str:
    """16 hexadecimal digits, not all zero."""
    return f"{secrets.randbits(64) or 1:016x}"
