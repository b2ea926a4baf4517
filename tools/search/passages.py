"""Cut a document into passages that fit an embedder, at paragraph and sentence ends where there are any."""

import re
from dataclasses import dataclass

PASSAGE_CHARS = 400
"""Longest passage: about 100 English words, or 400 Chinese characters."""

_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；]|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part [start, end) of a document's text."""

    start: int
    end: int
    text: str


def split_passages(text: str, *, max_chars: int = PASSAGE_CHARS) -> tuple[Passage, ...]:
    """All passages of `text` in order; together they hold everything but white space at their edges."""
    passages: list[Passage] = []
    start = 0
    while start < len(text):
        end = _cut(text, start, max_chars)
        part = text[start:end]
        stripped = part.strip()
        if stripped:
            first = start + len(part) - len(part.lstrip())
            passages.append(Passage(start=first, end=first + len(stripped), text=stripped))
        start = end
    return tuple(passages)


def _cut(text: str, start: int, max_chars: int) -> int:
    """The end of the passage that starts at `start`."""
    paragraph = text.find("\n\n", start)
    limit = min(len(text), start + max_chars)
    if start < paragraph <= limit:
        return paragraph + 2
    if limit == len(text):
        return limit
    ends = [match.end() for match in _SENTENCE_END.finditer(text, start, limit)]
    if ends and ends[-1] > start + max_chars // 3:
        return ends[-1]
    space = text.rfind(" ", start + max_chars // 3, limit)
    return space + 1 if space > start else limit
