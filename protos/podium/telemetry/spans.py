"""Say what work is being done, and for how long: spans of a trace, with attributes from a closed list.

Nothing here needs an SDK. Without `record_spans_with` a span costs two context variables and passes its parent's
place on, so that a trace goes through a process that exports nothing. What was asked, read or answered never
becomes an attribute: only the keys below are taken, each in its form, and everything else is left out.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from typing import Literal

from podium.errors import PodiumError
from podium.telemetry.trace_context import TRACEPARENT, TraceContext, new_trace

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Value = str | int | float | bool

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,99}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")

ATTRIBUTES: Mapping[str, re.Pattern[str] | type] = {
    "podium.task.id": _ID,
    "podium.task.status": _WORD,
    "podium.plan.version": int,
    "podium.planner": _WORD,
    "podium.steps": int,
    "podium.step": int,
    "podium.step.attempt": int,
    "podium.step.outcome": _WORD,
    "podium.agent": _NAME,
    "podium.agent.version": _ID,
    "podium.engine": _WORD,
    "podium.device.id": _ID,
    "podium.duplicate": bool,
    "rpc.system": _WORD,
    "rpc.method": _NAME,
    "rpc.response.status_code": _WORD,
    "error.type": _WORD,
}
"""Every attribute a span may have, with the form or type of its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSpan:
    """A span that is over."""

    name: str
    kind: Kind
    context: TraceContext
    parent_span_id: str
    """'' for the first span of a trace."""
    start_ns: int
    """Since 1970."""
    end_ns: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error_code: str = ""
    """'' when it went well."""
    device_id: str = ""
    """The device whose work it was, when a device told us of it."""


Recorder = Callable[[FinishedSpan], None]
_recorder: Recorder | None = None
_current: ContextVar[TraceContext | None] = ContextVar("podium_trace", default=None)
_task: ContextVar[str] = ContextVar("podium_task", default="")


class Span:
    """A span that is going on."""

    __slots__ = ("_attributes", "_error_code", "context", "parent_span_id")

    def __init__(self, context: TraceContext, parent_span_id: str, attributes: Mapping[str, Value] | None) -> None:
        self.context = context
        self.parent_span_id = parent_span_id
        self._attributes: dict[str, Value] = dict(attributes or {})
        self._error_code = ""

    def set(self, key: str, value: Value) -> None:
        """Add an attribute; one that is not in `ATTRIBUTES`, or not of its form, is left out at the end."""
        self._attributes[key] = value

    def failed(self, code: str) -> None:
        """Mark it as failed.

        Args:
            code: of an error of `podium.errors`, or a class's name; never a message.
        """
        self._error_code = code

    def ended_by(self, error: BaseException) -> None:
        """Mark it as failed with an error, unless it is marked already."""
        if not self._error_code:
            self.failed(error.code if isinstance(error, PodiumError) else type(error).__name__)

    def finished(self, name: str, kind: Kind, start_ns: int, end_ns: int) -> FinishedSpan:
        """What is recorded of it."""
        return FinishedSpan(
            name=name,
            kind=kind,
            context=self.context,
            parent_span_id=self.parent_span_id,
            start_ns=start_ns,
            end_ns=max(start_ns, end_ns),
            attributes=allowed(self._attributes),
            error_code=self._error_code if _WORD.fullmatch(self._error_code) or not self._error_code else "OTHER",
        )


def record_spans_with(recorder: Recorder | None) -> None:
    """Give every span that ends in this process to `recorder`, from any thread; None stops that."""
    global _recorder
    _recorder = recorder


def recording() -> bool:
    """Whether spans of this process go anywhere."""
    return _recorder is not None


def record(span: FinishedSpan) -> None:
    """Record a span that was not timed by `span`: of a task that ended, or of a device."""
    if _recorder is not None:
        device_id = span.device_id and named(span.device_id)
        code = span.error_code if not span.error_code or _WORD.fullmatch(span.error_code) else "OTHER"
        _recorder(replace(span, attributes=allowed(span.attributes), device_id=device_id, error_code=code))


def current() -> TraceContext | None:
    """Where the work at hand belongs."""
    return _current.get()


def outgoing() -> Mapping[str, str]:
    """The headers that let another process go on with the trace; none when the work at hand is in no trace."""
    context = _current.get()
    return {} if context is None else {TRACEPARENT: context.traceparent}


def current_task() -> str:
    """The id of the task that is being worked on here, or ''."""
    return _task.get()


@contextmanager
def span(
    name: str,
    *,
    kind: Kind = "internal",
    parent: TraceContext | None = None,
    attributes: Mapping[str, Value] | None = None,
    always: bool = False,
) -> Iterator[Span]:
    """Do what is inside as one span; an error that leaves it is noted with its code, and passes.

    Args:
        name: what is done, of a fixed vocabulary.
        kind: how it stands to other processes.
        parent: where it belongs; where the work at hand does, when None.
        attributes: of `ATTRIBUTES`.
        always: make a place of its own even if nothing records it here, because somebody else will.
    """
    above = parent or _current.get()
    recorder = _recorder
    if above is None:
        context, parent_span_id = new_trace(), ""
    elif recorder is None and not always:
        context, parent_span_id = above, ""
    else:
        context, parent_span_id = above.child(), above.span_id
    live = Span(context, parent_span_id, attributes)
    token: Token[TraceContext | None] = _current.set(context)
    if recorder is None:
        try:
            yield live
        finally:
            _leave(token)
        return
    start_ns, begun = time.time_ns(), time.perf_counter_ns()
    try:
        yield live
    except BaseException as error:
        live.ended_by(error)
        raise
    finally:
        _leave(token)
        recorder(live.finished(name, kind, start_ns, start_ns + time.perf_counter_ns() - begun))


def _leave(token: "Token[TraceContext | None]") -> None:
    try:
        _current.reset(token)
    except ValueError:
        # A generator that is closed by another task ends in that one's context, where there is nothing to reset.
        _current.set(None)


@contextmanager
def working_on(task_id: str, context: TraceContext | None) -> Iterator[None]:
    """Work inside belongs to a task of Podium; see `podium.telemetry.tasks.on_task`."""
    task_token, token = _task.set(task_id), _current.set(context)
    try:
        yield
    finally:
        _task.reset(task_token)
        _current.reset(token)


def named(text: str) -> str:
    """A name as log lines may give it; what has not the form of one is not repeated."""
    return text if _ID.fullmatch(text) else "(not a name)"


def allowed(attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    """The attributes of `ATTRIBUTES` whose values have their form."""
    return {key: value for key, value in attributes.items() if _has_form(value, ATTRIBUTES.get(key))}


def _has_form(value: Value, form: "re.Pattern[str] | type | None") -> bool:
    if form is None:
        return False
    if isinstance(form, type):
        return type(value) is form
    return isinstance(value, str) and form.fullmatch(value) is not None
