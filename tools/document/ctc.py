"""From the recogniser's table of probabilities to text: CTC best-path decoding (Graves et al., 2006).

The recogniser gives, for every 8 pixels of a line 48 pixels high, a probability for each character and for
"nothing here". Equal neighbours are one character. The columns are kept: they say where a character stands,
so that a line can be cut at a wide gap and a space the model let fall between two words can be put back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLANK = 0
_SPACE_BELIEF = 0.05
"""Probability of a space, in the columns between two letters, from which it is put back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyph:
    """One decoded character, the columns it covers and how sure the model is of it."""

    character: str
    start_column: int
    end_column: int
    confidence: float


def decode(probabilities: NDArray[Any], alphabet: Sequence[str]) -> tuple[Glyph, ...]:
    """Decode one line.

    Args:
        probabilities: columns x (1 + characters); class 0 is "nothing here".
        alphabet: the characters of classes 1 and up; the last is the space.

    Returns:
        The characters from left to right, lost spaces put back.
    """
    best = probabilities.argmax(axis=1)
    sure = probabilities[np.arange(len(best)), best]
    space = probabilities[:, len(alphabet)]
    starts = np.flatnonzero(np.diff(best, prepend=-1) != 0)
    ends = np.append(starts[1:], len(best))
    glyphs: list[Glyph] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if best[start] == _BLANK:
            continue
        character = alphabet[best[start] - 1]
        if glyphs and _lost_space(glyphs[-1], character, space[glyphs[-1].end_column : start]):
            glyphs.append(_space(glyphs[-1].end_column, start))
        glyphs.append(
            Glyph(character=character, start_column=start, end_column=end, confidence=float(sure[start:end].max()))
        )
    return tuple(glyphs)


def _lost_space(before: Glyph, character: str, belief: NDArray[Any]) -> bool:
    if not len(belief) or before.character == " " or character == " ":
        return False
    # Only between Latin letters and digits: Chinese writes without spaces, and figures hold points and commas.
    return is_latin(before.character) and is_latin(character) and float(belief.max()) > _SPACE_BELIEF


def _space(start: int, end: int) -> Glyph:
    return Glyph(character=" ", start_column=start, end_column=end, confidence=1.0)


def is_latin(character: str) -> bool:
    """Whether a character is of a script that puts spaces between words: ASCII and the Latin letters."""
    return ord(character) < 0x0250
