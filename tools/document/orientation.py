"""Which way up is the page? Found from its text, because scanners and phones often say nothing or the wrong thing.

Three kinds of evidence, cheapest first: boxes taller than wide mean sideways text; the classifier says whether a
line stands on its head; where it hesitates, a few lines are read both ways and the surer reading wins.
"""

import math
from collections.abc import Sequence

import numpy as np

from tools.document.ctc import legibility
from tools.document.ocr import Corners, PpOcr, cut_line
from tools.images.decode import Pixels

_JUDGES = 8
_READERS = 4
_SURE = 0.15
_MIN_ASPECT = 2.0


def page_turn(ocr: PpOcr, picture: Pixels, corners: Sequence[Corners]) -> int:
    """How far the page was turned clockwise: 0, 90, 180 or 270 degrees.

    Args:
        ocr: the models.
        picture: the page as stored.
        corners: the lines found on it.
    """
    if not corners:
        return 0
    sideways = _is_sideways(corners)
    lines = [cut_line(picture, np.roll(box, 1, axis=0) if sideways else box) for box in _judges(corners, sideways)]
    # Rolled by one corner, a sideways box reads upwards; such a page was turned by 270 degrees.
    upright, head_down = (90, 270) if sideways else (0, 180)
    if sideways:
        lines = [np.ascontiguousarray(np.rot90(line, 2)) for line in lines]
    doubt = float(np.mean(ocr.upside_down(lines)))
    if doubt < _SURE:
        return upright
    readers = lines[:_READERS]
    as_is = sum(legibility(ocr.read(line)) for line in readers)
    turned = sum(legibility(ocr.read(np.ascontiguousarray(np.rot90(line, 2)))) for line in readers)
    return upright if as_is >= turned else head_down


def skew(corners: Sequence[Corners]) -> float:
    """Angle of the text on an upright page in degrees, clockwise: the lines' median, long ones counting more."""
    angles, weights = [], []
    for box in corners:
        width = float(np.linalg.norm(box[1] - box[0]))
        if width >= _MIN_ASPECT * float(np.linalg.norm(box[3] - box[0])):
            direction = box[1] - box[0]
            angles.append(math.degrees(math.atan2(direction[1], direction[0])))
            weights.append(width)
    if not angles:
        return 0.0
    order = np.argsort(angles)
    half = np.cumsum(np.array(weights)[order]) >= sum(weights) / 2
    return float(np.array(angles)[order][int(np.argmax(half))])


def _is_sideways(corners: Sequence[Corners]) -> bool:
    across = down = 0.0
    for box in corners:
        width, height = float(np.linalg.norm(box[1] - box[0])), float(np.linalg.norm(box[3] - box[0]))
        if width >= _MIN_ASPECT * height:
            across += width
        elif height >= _MIN_ASPECT * width:
            down += height
    return down > across


def _judges(corners: Sequence[Corners], sideways: bool) -> list[Corners]:
    def aspect(box: Corners) -> float:
        width, height = float(np.linalg.norm(box[1] - box[0])), float(np.linalg.norm(box[3] - box[0]))
        return (height / max(width, 1.0)) if sideways else (width / max(height, 1.0))

    # The classifier sees four line heights; lines of four to ten are judged best.
    return sorted(corners, key=lambda box: abs(math.log(max(aspect(box), 0.1) / 6.0)))[:_JUDGES]
