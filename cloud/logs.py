"""The server's log: one JSON object a line on stderr. It names tasks and devices, never what they say."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON with time, level, logger, message and, for errors, the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        entry = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
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
