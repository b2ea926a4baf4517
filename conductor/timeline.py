"""What ran when, and what waited for whom: data for a picture, and a plain one for terminals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from conductor.progress import TaskState
from conductor.state import apply, moment
from podium.v1 import event_pb2

Kind = Literal["step", "device", "question", "review"]
Outcome = Literal["succeeded", "failed", "open"]
_MARKS = {"succeeded": "█", "failed": "▒", "open": "░"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that took time."""

    kind: Kind
    """A step at work, or a wait for a device, the caller or a person."""
    uid: str
    index: int
    name: str
    """The agent, or who was waited for."""
    attempt: int
    start: datetime
    end: datetime
    outcome: Outcome
    code: str = ""
    """Error code of an attempt that failed."""
    after: tuple[str, ...] = ()
    """`uid` of the steps whose outputs it needed."""
    lane: int = 0
    """Row in a picture: spans of one lane do not overlap."""


@dataclass(slots=True, kw_only=True)
class _Open:
    kind: Kind
    uid: str
    index: int
    name: str
    attempt: int
    start: datetime
    after: tuple[str, ...] = ()


def timeline(events: Iterable[event_pb2.Event]) -> tuple[Span, ...]:
    """The spans of a task's log, in order of their start, each with its lane.

    Raises:
        DataCorrupt: the log is out of order.
    """
    state = TaskState()
    running: dict[tuple[Kind, str], _Open] = {}
    spans: list[Span] = []
    now: datetime | None = None
    for event in events:
        state = apply(state, event)
        now = moment(event.header.time)
        _follow(state, event, now, running, spans)
    if now is not None:
        spans.extend(_closed(span, now, "failed" if state.ended else "open") for span in running.values())
    return _with_lanes(spans)


def _follow(
    state: TaskState,
    event: event_pb2.Event,
    now: datetime,
    running: dict[tuple[Kind, str], _Open],
    spans: list[Span],
) -> None:
    index = event.header.step if event.header.HasField("step") else -1
    step = state.steps[index] if 0 <= index < len(state.steps) else None
    uid, attempt = (step.uid, step.attempts) if step is not None else ("", 0)

    kind = event.WhichOneof("payload") or ""
    for closes, outcome in _CLOSES.get(kind, ()):
        key = (closes, "" if closes == "question" else uid)
        if (span := running.pop(key, None)) is not None:
            code = event.step_failed.error.code if kind == "step_failed" else ""
            spans.append(_closed(span, now, outcome, code))
    if (opens := _OPENS.get(kind)) is not None:
        key = (opens, "" if opens == "question" else uid)
        name = _name(event, opens)
        after = _needed(state, index) if opens == "step" else ()
        running[key] = _Open(kind=opens, uid=uid, index=index, name=name, attempt=attempt, start=now, after=after)


_OPENS: Mapping[str, Kind] = {
    "step_started": "step",
    "device_awaited": "device",
    "question_asked": "question",
    "review_requested": "review",
}
_CLOSES: Mapping[str, tuple[tuple[Kind, Outcome], ...]] = {
    "step_started": (("step", "failed"),),  # an attempt that the process did not survive
    "step_succeeded": (("step", "succeeded"),),
    "step_failed": (("step", "failed"),),
    "device_returned": (("device", "succeeded"),),
    "input_provided": (("question", "succeeded"),),
    "review_requested": (("device", "failed"),),
    "review_resolved": (("review", "succeeded"),),
}


def _needed(state: TaskState, index: int) -> tuple[str, ...]:
    if state.plan is None:
        return ()
    return tuple(state.steps[needed].uid for needed in state.plan.steps[index].depends_on)


def _name(event: event_pb2.Event, kind: Kind) -> str:
    match kind:
        case "step":
            return event.step_started.agent
        case "device":
            return f"device {event.device_awaited.device_id}"
        case "question":
            return "the caller"
        case "review":
            return "a person"


def render(spans: Sequence[Span], *, width: int = 60) -> str:
    """A plain picture of spans: one line each, bars on a common time axis of `width` characters."""
    if not spans:
        return "nothing has run yet"
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    total = max((last - first).total_seconds(), 1e-6)
    label = label_width(spans)
    lines = []
    for span in spans:
        left = int((span.start - first).total_seconds() / total * (width - 1))
        right = int((span.end - first).total_seconds() / total * (width - 1))
        bar = " " * left + _MARKS[span.outcome] * max(1, right - left + 1)
        seconds = (span.end - span.start).total_seconds()
        lines.append(f"{_label(span):<{label}} |{bar[:width]:<{width}}| {_seconds(seconds):>8}  {span.outcome}")
    lines.append(f"{'':<{label}} |{'0 s':<{width // 2}}{_seconds(total):>{width - width // 2}}|")
    return "\n".join(lines)


def label_width(spans: Iterable[Span]) -> int:
    """Characters that the names before the bars take."""
    return max((len(_label(span)) for span in spans), default=0)


def _closed(span: _Open, now: datetime, outcome: Outcome, code: str = "") -> Span:
    return Span(
        kind=span.kind,
        uid=span.uid,
        index=span.index,
        name=span.name,
        attempt=span.attempt,
        start=span.start,
        end=max(now, span.start),
        outcome=outcome,
        code=code,
        after=span.after,
    )


def _with_lanes(spans: Iterable[Span]) -> tuple[Span, ...]:
    lanes: list[Span] = []
    """The last span of each lane."""
    placed: list[Span] = []
    for span in sorted(spans, key=lambda item: (item.start, item.index)):
        # Two spans that begin together run together, however short they are.
        free = (number for number, last in enumerate(lanes) if last.end <= span.start and last.start < span.start)
        lane = next(free, len(lanes))
        placed.append(replace(span, lane=lane))
        lanes[lane : lane + 1] = [placed[-1]]
    return tuple(placed)


def _label(span: Span) -> str:
    again = f" (attempt {span.attempt})" if span.kind == "step" and span.attempt > 1 else ""
    return f"{span.index}: {span.name}{again}" if span.kind == "step" else f"   waits for {span.name}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
