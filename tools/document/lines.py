"""From what the recogniser saw to lines of text: wide gaps cut, habits of the model undone, reading order."""

import math
from collections.abc import Iterable, Sequence
from statistics import median

import numpy as np

from tools.document.ctc import Glyph, confidence
from tools.document.ocr import Corners
from tools.document.reading import Quad, TextLine
from tools.document.recognition import ReadLine

_GAP_COLUMNS = 12
"""Empty columns from which a line is cut in two: two line heights, i.e. a gap between table columns."""
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0xFFE5: 0xA5, 0xFFE1: 0xA3}
_PUNCTUATION = _FULL_WIDTH | {ord("。"): ord("."), ord("、"): ord(","), ord("〈"): ord("<"), ord("〉"): ord(">")}


def text_lines(read: ReadLine) -> list[TextLine]:
    """Cut a line at its wide gaps and give each part its text, place and confidence.

    A part without any text but spaces is left out.
    """
    parts = []
    for glyphs in _parts(read.glyphs):
        text = plain_punctuation("".join(glyph.character for glyph in glyphs))
        first, last = glyphs[0].start_column, glyphs[-1].end_column
        whole = len(glyphs) == len(read.glyphs)
        start, end = (0.0, 1.0) if whole else (max(0.0, (first - 1) / read.columns), (last + 1) / read.columns)
        parts.append(
            TextLine(
                text=text,
                quad=_part_quad(read.corners, start, min(1.0, end)),
                confidence=confidence(glyphs) * read.agreement,
            )
        )
    return parts


def plain_punctuation(text: str) -> str:
    """Replace the full-width signs the recogniser likes by plain ones; in Chinese text they stay as they are.

    In a line with Chinese in it only signs between Latin characters are replaced.
    """
    if not any(_is_cjk(character) for character in text):
        return text.translate(_PUNCTUATION)
    replaced = list(text)
    for index, character in enumerate(text):
        around = text[max(0, index - 1) : index] + text[index + 1 : index + 2]
        if ord(character) in _FULL_WIDTH and len(around) == 2 and not any(_is_cjk(other) for other in around):
            replaced[index] = chr(_FULL_WIDTH[ord(character)])
    return "".join(replaced)


def reading_order(lines: Sequence[tuple[Corners, TextLine]], skew_degrees: float) -> list[TextLine]:
    """Sort lines from top to bottom and, where they stand side by side, from left to right.

    Args:
        lines: corners on the upright page, and the line.
        skew_degrees: the page's skew, so that a row stays a row on a page scanned askew.
    """
    if not lines:
        return []
    turn = math.radians(-skew_degrees)
    placed = []
    for corners, line in lines:
        x, y = (float(value) for value in corners.mean(axis=0))
        left = float(corners[:, 0].min())
        height = float(np.linalg.norm(corners[3] - corners[0]))
        placed.append((x * math.sin(turn) + y * math.cos(turn), left, height, line))
    placed.sort(key=lambda item: item[0])
    rows: list[list[tuple[float, float, float, TextLine]]] = []
    for item in placed:
        row = rows[-1] if rows else None
        if row and item[0] - median(other[0] for other in row) < 0.4 * min(item[2], row[-1][2]):
            row.append(item)
        else:
            rows.append([item])
    return [item[3] for row in rows for item in sorted(row, key=lambda item: item[1])]


def quad(corners: Corners) -> Quad:
    """Corners as the flat tuple that travels."""
    x0, y0, x1, y1, x2, y2, x3, y3 = (float(value) for value in corners.reshape(8))
    return x0, y0, x1, y1, x2, y2, x3, y3


def _parts(glyphs: Sequence[Glyph]) -> Iterable[list[Glyph]]:
    part: list[Glyph] = []
    for glyph in glyphs:
        if glyph.character.isspace():
            if part:
                part.append(glyph)
            continue
        visible = [other for other in part if not other.character.isspace()]
        if visible and glyph.start_column - visible[-1].end_column >= _GAP_COLUMNS:
            yield part[: part.index(visible[-1]) + 1]
            part = []
        part.append(glyph)
    while part and part[-1].character.isspace():
        part.pop()
    if part:
        yield part


def _part_quad(corners: Corners, start: float, end: float) -> Quad:
    top_start, top_end, bottom_end, bottom_start = corners
    return quad(
        np.array(
            [
                top_start + (top_end - top_start) * start,
                top_start + (top_end - top_start) * end,
                bottom_start + (bottom_end - bottom_start) * end,
                bottom_start + (bottom_end - bottom_start) * start,
            ],
            dtype=np.float32,
        )
    )


def _is_cjk(character: str) -> bool:
    return "⺀" <= character <= "鿿" and character not in "　、。〈〉"
