"""Text made comparable: full-width forms, case and accents folded away, with the way back to the original.

OCR drops accents and spaces and mixes full-width and half-width forms, so nothing downstream compares raw text.
"""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_REPLACED = {
    "°": "o",
    "№": "no",
    "’": "'",
    "‘": "'",
    "´": "'",
    "`": "'",
    "–": "-",
    "—": "-",
    "−": "-",
    "‐": "-",
    "‑": "-",
    "·": " ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A text folded twice: `plain` keeps spaces and punctuation, `compact` only letters, digits, # and %."""

    original: str
    plain: str
    plain_at: tuple[int, ...]
    """Position in `original` of each character of `plain`."""
    compact: str
    compact_at: tuple[int, ...]
    """Position in `original` of each character of `compact`."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of `original` behind `plain[start:end]`."""
        return self.plain_at[start], self.plain_at[end - 1] + 1


def fold(text: str) -> Folded:
    """Fold `text`; characters are never reordered, so every span can be mapped back."""
    plain: list[str] = []
    plain_at: list[int] = []
    for position, char in enumerate(text):
        for piece in _fold_char(char):
            plain.append(piece)
            plain_at.append(position)
    kept = [index for index, piece in enumerate(plain) if piece.isalnum() or piece in "#%"]
    return Folded(
        original=text,
        plain="".join(plain),
        plain_at=tuple(plain_at),
        compact="".join(plain[index] for index in kept),
        compact_at=tuple(plain_at[index] for index in kept),
    )


def compacted(text: str) -> str:
    """Only what `fold` keeps as compact text; for comparing two texts."""
    return fold(text).compact


@lru_cache(maxsize=20_000)
def _fold_char(char: str) -> str:
    if char in _REPLACED:
        return _REPLACED[char]
    spread = unicodedata.normalize("NFKD", char)
    bare = "".join(piece for piece in spread if not unicodedata.combining(piece))
    return "".join(_REPLACED.get(piece, piece) for piece in bare.casefold()) or " "


def is_wide(char: str) -> bool:
    """True for characters that take the width of two, such as Chinese ones."""
    return unicodedata.east_asian_width(char) in {"W", "F"}
