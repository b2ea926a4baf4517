"""Take spans out of a process without holding it up: a bounded queue, one thread, and places they go to."""

import contextlib
import json
import logging
import queue
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from podium.errors import InvalidRequest
from podium.telemetry.redaction import redacted
from podium.telemetry.spans import FinishedSpan, Value

_LOG = logging.getLogger(__name__)

QUEUED_AT_MOST = 4096
BATCH = 512
_GATHER_S = 0.5
_COMPLAIN_EVERY_S = 300.0


class Destination(Protocol):
    """Where spans go."""

    def write(self, spans: Sequence[FinishedSpan]) -> bool:
        """Deliver spans; False when they were lost. May take a while; raises nothing."""
        ...

    def close(self) -> None:
        """Give up what is under way and release what is held."""
        ...


class SpanExport:
    """Hands spans to destinations on its own thread; what its queue has no room for is dropped, and counted."""

    def __init__(self, destinations: Sequence[Destination], *, queued_at_most: int = QUEUED_AT_MOST) -> None:
        """Start the thread.

        Args:
            destinations: each gets every span.
            queued_at_most: spans that wait to be delivered.
        """
        self._destinations = tuple(destinations)
        self._queue: queue.Queue[FinishedSpan | None] = queue.Queue(queued_at_most)
        self._lock = threading.Lock()
        self._closed = False
        self.exported = 0
        """Spans that every destination has taken."""
        self.dropped = 0
        """Spans that the queue had no room for, or that a destination lost."""
        self._complained = -_COMPLAIN_EVERY_S
        # A daemon, because a collector that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def record(self, span: FinishedSpan) -> None:
        """Take a span; never waits."""
        try:
            if self._closed:
                raise queue.Full
            self._queue.put_nowait(span)
        except queue.Full:
            self._count(dropped=1)

    def close(self, *, within: timedelta = timedelta(seconds=2)) -> None:
        """Deliver what waits and end; what is not delivered in time is dropped."""
        self._closed = True
        ends = time.monotonic() + within.total_seconds()
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=max(0.0, within.total_seconds()))
        self._thread.join(max(0.0, ends - time.monotonic()))
        for destination in self._destinations:
            destination.close()
        if self._thread.is_alive():
            # Closing ended the call that hung; what the thread does not count any more is counted here.
            self._thread.join(0.5)
            self._count(dropped=self._queue.qsize())

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._batch()
            if batch:
                self._deliver(batch)

    def _batch(self) -> tuple[list[FinishedSpan], bool]:
        first = self._queue.get()
        if first is None:
            return [], False
        batch, ends = [first], time.monotonic() + _GATHER_S
        while len(batch) < BATCH:
            try:
                following = self._queue.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                break
            if following is None:
                return batch, False
            batch.append(following)
        return batch, True

    def _deliver(self, batch: Sequence[FinishedSpan]) -> None:
        # Not `all` over a generator: each destination gets them, whatever became of the one before.
        taken = [destination.write(batch) for destination in self._destinations]
        if all(taken):
            self._count(exported=len(batch))
            return
        self._count(dropped=len(batch))
        now = time.monotonic()
        if now - self._complained >= _COMPLAIN_EVERY_S:
            self._complained = now
            _LOG.warning("spans cannot be delivered; %d dropped so far", self.dropped)

    def _count(self, *, exported: int = 0, dropped: int = 0) -> None:
        with self._lock:
            self.exported += exported
            self.dropped += dropped


class SpanFile:
    """Spans as JSON lines in a file; a full one is kept as FILE.1 and begun anew."""

    def __init__(self, path: Path, *, service: str, largest_bytes: int = 16 * 2**20) -> None:
        """Append to `path`.

        Raises:
            InvalidRequest: the file cannot be written.
        """
        self._path, self._service, self._largest_bytes = path, service, largest_bytes
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8"):
                pass
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be written: {error.strerror}", field="traces_file") from error

    def write(self, spans: Sequence[FinishedSpan]) -> bool:
        """See `Destination`."""
        text = "".join(json.dumps(_entry(span, self._service), ensure_ascii=True) + "\n" for span in spans)
        try:
            if self._path.exists() and self._path.stat().st_size + len(text) > self._largest_bytes:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            return False  # a full disk is the server's trouble, and no reason to end over a trace
        return True

    def close(self) -> None:
        """See `Destination`; nothing is held open."""


def told(attributes: dict[str, Value]) -> dict[str, Value]:
    """Attributes as they may leave the process."""
    return {key: redacted(value) if isinstance(value, str) else value for key, value in attributes.items()}


def attributes_of(span: FinishedSpan) -> dict[str, Value]:
    """A span's attributes with its error, as they may leave the process."""
    error = {"error.type": span.error_code} if span.error_code else {}
    return told({**span.attributes, **error})


def service_of(span: FinishedSpan, own: str) -> str:
    """The name of the process whose work a span was."""
    return "podium-device" if span.device_id else own


def _entry(span: FinishedSpan, service: str) -> dict[str, Any]:
    return {
        "trace_id": span.context.trace_id,
        "span_id": span.context.span_id,
        "parent_span_id": span.parent_span_id,
        "name": redacted(span.name),
        "kind": span.kind,
        "service": service_of(span, service),
        "start": _moment(span.start_ns),
        "duration_ms": round((span.end_ns - span.start_ns) / 1e6, 3),
        "error": span.error_code,
        "attributes": attributes_of(span),
    }


def _moment(since_1970_ns: int) -> str:
    return datetime.fromtimestamp(since_1970_ns / 1e9, tz=UTC).isoformat(timespec="microseconds")
