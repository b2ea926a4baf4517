"""Log records as JSON lines that say which trace and task they belong to, and nothing of what tasks are about.

A message of ours has a fixed text and names of ours in it. What an exception says may be what an agent read, so of
exceptions only the class, the code and the places are kept; what another library logs may be a whole message that
it could not read, so of its records only the place is kept.
"""

import errno
import json
import logging
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from podium.errors import PodiumError
from podium.telemetry.redaction import redacted
from podium.telemetry.spans import current, current_task

OURS = frozenset({"agents", "bench", "cloud", "conductor", "edge", "federation", "podium", "tests", "tools"})
_LONGEST_MESSAGE = 4096
_FRAMES = 30
_CAUSES = 8


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message, trace and task, places of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if (context := current()) is not None:
            entry |= {"trace_id": context.trace_id, "span_id": context.span_id}
        if task_id := current_task():
            entry["task_id"] = task_id
        if record.exc_info and record.exc_info[1] is not None:
            entry["error"] = list(described(record.exc_info[1]))
        return json.dumps(entry, ensure_ascii=True)


def log_to(stream: TextIO = sys.stderr, *, level: str) -> None:
    """Send every log record of the process to `stream`.

    Args:
        stream: where lines go.
        level: debug, info, warning or error.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def described(error: BaseException) -> Iterator[dict[str, Any]]:
    """An exception and its causes: what kind each is and where it arose, without what it says."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        frames = traceback.extract_tb(cause.__traceback__)[-_FRAMES:]
        yield {
            "type": _kind(cause),
            "at": [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames],
        }
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _message(record: logging.LogRecord) -> str:
    if record.name.partition(".")[0] not in OURS:
        return f"from {record.module}:{record.lineno}; what other libraries say is not logged"
    return redacted(_safe(record)[:_LONGEST_MESSAGE])


def _safe(record: logging.LogRecord) -> str:
    """The record's text, with the kind of an exception in place of what it says."""
    args = record.args
    if isinstance(args, tuple):
        args = tuple(_kind(arg) if isinstance(arg, BaseException) else arg for arg in args)
    return str(record.msg) % args if args else str(record.msg)


def _kind(error: BaseException) -> str:
    if isinstance(error, PodiumError):
        return f"{type(error).__name__} ({error.code})"
    if isinstance(error, OSError) and error.errno is not None:
        return f"{type(error).__name__} ({errno.errorcode.get(error.errno, error.errno)})"
    return type(error).__name__


def _short(filename: str) -> str:
    return "/".join(Path(filename).parts[-3:])
