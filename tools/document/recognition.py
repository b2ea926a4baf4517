"""Reading one found line, in one way or in several that then vote."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tools.document.ctc import Glyph, confidence
from tools.document.ocr import Corners, PpOcr, cut_line, trimmed
from tools.images.decode import Pixels

_COLUMNS_PER_HEIGHT = 6.0
"""The recogniser's columns are 8 pixels of a line 48 pixels high."""
_TALL = 2.0
_UPRIGHT_ENOUGH = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One way to show a line to the recogniser: cut tighter above and below, stretched or squeezed."""

    trim: float = 0.0
    """Share of the found height cut off on either side.

    Tight lines are read a little better (at 0.08, 5 more of 292 blurred lines come out right), a fifth slower.
    """
    stretch: float = 1.0


QUICK_VIEWS = (View(), View(trim=0.08), View(trim=0.13))
"""For whole pages: the second and third only where the first leaves doubt."""
_SURE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """A line as the recogniser gave it: its corners on the upright page and its glyphs."""

    corners: Corners
    glyphs: tuple[Glyph, ...]
    columns: float
    """Width of the whole line in the recogniser's columns."""
    agreement: float = 1.0
    """Share of the views that gave this text."""


def read_line(
    ocr: PpOcr, picture: Pixels, corners: Corners, views: Sequence[View], *, patient: bool = False
) -> ReadLine:
    """Read the line at `corners` of an upright picture.

    Args:
        ocr: the models.
        picture: the upright page, or a part of it.
        corners: where the line stands.
        views: ways to look at the line; what most of them agree on is taken.
        patient: use every view, also where the first is sure.
    """
    best = _one_way(ocr, picture, corners, views[0])
    if patient or confidence(best.glyphs) < _SURE:
        best = consensus([best, *(_one_way(ocr, picture, corners, view) for view in views[1:])])
    if _is_tall(corners) and confidence(best.glyphs) < _UPRIGHT_ENOUGH:
        # No single figure: text that runs up or down beside the rest.
        sideways = [_one_way(ocr, picture, np.roll(corners, quarter, axis=0), views[0]) for quarter in (1, 3)]
        best = max((best, *sideways), key=lambda reading: confidence(reading.glyphs))
    return best


def consensus(readings: Sequence[ReadLine]) -> ReadLine:
    """The surest of those readings of one line whose text most agree on (spaces are not compared)."""
    texts = [
        "".join(glyph.character for glyph in reading.glyphs if glyph.character != " ") for reading in readings
    ]
    votes = Counter(texts)
    text, best = max(
        zip(texts, readings, strict=True), key=lambda item: (votes[item[0]], confidence(item[1].glyphs))
    )
    return replace(best, agreement=votes[text] / len(readings))


def _one_way(ocr: PpOcr, picture: Pixels, corners: Corners, view: View) -> ReadLine:
    line = _stretched(cut_line(picture, trimmed(corners, view.trim)), view.stretch)
    return ReadLine(
        corners=corners, glyphs=ocr.read(line), columns=_COLUMNS_PER_HEIGHT * line.shape[1] / line.shape[0]
    )


def _stretched(line: Pixels, factor: float) -> Pixels:
    if factor == 1.0:
        return line
    import cv2

    width = max(2, round(line.shape[1] * factor))
    return np.asarray(cv2.resize(line, (width, line.shape[0]), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def _is_tall(corners: Corners) -> bool:
    width, height = np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[3] - corners[0])
    return bool(height >= _TALL * width)
