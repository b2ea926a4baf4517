"""Show why a passage was found: a short stretch of it around the most of the query's words."""

from collections.abc import Sequence

from tools.text.tokens import lower

_SNIPPET_CHARS = 160


def snippet(text: str, terms: Sequence[str], *, max_chars: int = _SNIPPET_CHARS) -> str:
    """At most `max_chars` characters of `text` that hold the most of `terms`, with … where it was cut."""
    if len(text) <= max_chars:
        return " ".join(text.split())
    lowered = lower(text)
    places = sorted(
        (place, place + len(term)) for term in terms if (place := lowered.find(term)) >= 0
    ) or [(0, 0)]  # fmt: skip
    best = max(
        places, key=lambda first: (sum(first[0] <= a and b <= first[0] + max_chars for a, b in places), -first[0])
    )
    start = max(0, min(best[0] - max_chars // 4, len(text) - max_chars))
    end = start + max_chars
    if start > 0:
        start = _word_edge(text, start)
    shown = " ".join(text[start:end].split())
    return f"{'…' if start > 0 else ''}{shown}{'…' if end < len(text) else ''}"


def _word_edge(text: str, position: int) -> int:
    """The next start of a word, if one is near; Chinese can be cut anywhere."""
    for near in range(position, min(position + 15, len(text))):
        if text[near].isspace() or not text[near].isascii():
            return near
    return position
