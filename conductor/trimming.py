"""A view of a large JSON value that rules can afford to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_TEXT_CHARS = 4096
MAX_ENTRIES = 2000


def trimmed(value: Any) -> Any:
    """The value with texts cut to 4,096 characters and lists to 2,000 entries.

    A page's crops and boxes travel in the request; a rule that picks a plan has no use for them, and CEL copies
    every value it is given.
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else value[:MAX_TEXT_CHARS]
    if isinstance(value, dict | Mapping):
        return {name: trimmed(item) for name, item in value.items()}
    if isinstance(value, list | Sequence) and not isinstance(value, bytes):
        return [trimmed(item) for item in value[:MAX_ENTRIES]]
    return value
