"""PP-OCR on a small device: find the lines of text on a picture, read them, tell upside-down from upright.

Only the three model files of the installed package `rapidocr` are used, each by its reviewed hash; the package's
own code, which can download, is never imported.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.document import ctc
from tools.images.decode import Pixels
from tools.models.pinned import PinnedModels
from tools.onnx.model import OnnxModel

Corners = NDArray[np.float32]
"""4 x 2: x, y of text start top, text end top, text end bottom, text start bottom."""

_LINE_HEIGHT = 48
_COLUMN_PIXELS = 8
_CLASSIFIER_WIDTH = 192
_MAX_LINE_WIDTH = 3200
_SIDE_MULTIPLE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSetting:
    """How eagerly text is looked for (the names are those of the DB detector, Liao et al., 2020)."""

    long_side: int = 1280
    """The picture is scaled so that its longer side has this many pixels, but never more than doubled."""
    threshold: float = 0.3
    box_threshold: float = 0.5
    unclip_ratio: float = 1.6
    min_side: float = 3.0


class PpOcr:
    """The three models, loaded once; safe to use from several threads."""

    def __init__(self, *, threads: int = 1, models: PinnedModels | None = None) -> None:
        """Load the detector, the recogniser and the classifier.

        Raises:
            ModelError: a model is not installed or not the reviewed one.
            OnnxLoadError: the runtime cannot load it.
        """
        self._detector = OnnxModel("ppocr-det", models=models, threads=threads)
        self._recogniser = OnnxModel("ppocr-rec", models=models, threads=threads)
        self._classifier = OnnxModel("ppocr-cls", models=models, threads=threads)
        # The dictionary travels inside the recogniser; the model's last class is the space, which is not in it.
        self._alphabet = (*self._recogniser.metadata["character"].splitlines(), " ")

    def detect(self, picture: Pixels, setting: DetectionSetting) -> list[Corners]:
        """Find lines of text; corners in pixels of `picture`, in no particular order.

        Upside-down and vertical text is found too, with corners as if it were upright or, when the box is taller
        than wide, as they stand on the picture.
        """
        import cv2

        height, width = picture.shape[:2]
        scale = min(2.0, setting.long_side / max(height, width))
        scaled_width, scaled_height = _multiple(width * scale), _multiple(height * scale)
        interpolation = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        scaled = np.asarray(
            cv2.resize(picture, (scaled_width, scaled_height), interpolation=interpolation), np.uint8
        )
        output = self._detector.run({self._detector.input_names[0]: _network_input(scaled)})
        heat = output[self._detector.output_names[0]][0, 0]
        factors = np.array([width / scaled_width, height / scaled_height], dtype=np.float32)
        mask = cv2.dilate((heat > setting.threshold).astype(np.uint8), np.ones((2, 2), np.uint8))
        outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        found = []
        for outline in outlines:
            corners = _grown_box(outline, heat, setting)
            if corners is not None:
                found.append((corners * factors).astype(np.float32))
        return found

    def read(self, line: Pixels) -> tuple[ctc.Glyph, ...]:
        """Read one upright line of text; columns of the glyphs are 8 pixels of the line at 48 pixels height."""
        if min(line.shape[:2]) < 2:
            return ()
        scaled = _scaled_line(line, _MAX_LINE_WIDTH)
        padding = -scaled.shape[1] % _COLUMN_PIXELS
        table = np.pad(_network_input(scaled), ((0, 0), (0, 0), (0, 0), (0, padding)))
        output = self._recogniser.run({self._recogniser.input_names[0]: table})
        return ctc.decode(output[self._recogniser.output_names[0]][0], self._alphabet)

    def upside_down(self, lines: Sequence[Pixels]) -> list[float]:
        """For each line picture the probability that it stands on its head."""
        if not lines:
            return []
        table = np.zeros((len(lines), 3, _LINE_HEIGHT, _CLASSIFIER_WIDTH), dtype=np.float32)
        for index, line in enumerate(lines):
            scaled = _scaled_line(line, _CLASSIFIER_WIDTH)
            table[index, :, :, : scaled.shape[1]] = _network_input(scaled)[0]
        output = self._classifier.run({self._classifier.input_names[0]: table})
        return [float(row[1]) for row in output[self._classifier.output_names[0]]]


def trimmed(corners: Corners, share: float) -> Corners:
    """The corners without `share` of the box's height above and below."""
    start, end = corners[3] - corners[0], corners[2] - corners[1]
    steps = np.array([start, end, -end, -start], dtype=np.float32)
    return np.asarray(corners + share * steps, dtype=np.float32)


def cut_line(picture: Pixels, corners: Corners) -> Pixels:
    """Cut one line out of a picture and straighten it; its first corner becomes the upper left one."""
    import cv2

    width = round(float(max(np.linalg.norm(corners[1] - corners[0]), np.linalg.norm(corners[2] - corners[3]))))
    height = round(float(max(np.linalg.norm(corners[3] - corners[0]), np.linalg.norm(corners[2] - corners[1]))))
    width, height = max(2, width), max(2, height)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    matrix = cv2.getPerspectiveTransform(corners.astype(np.float32), target)
    line = cv2.warpPerspective(
        picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(line, dtype=np.uint8)


def _grown_box(outline: Any, heat: NDArray[Any], setting: DetectionSetting) -> Corners | None:
    # The network marks a shrunken core of each line. The box around the core grows by area * ratio / perimeter,
    # the inverse of the shrinking (Liao et al., 2020, section 3.4); grown, a rectangle stays a rectangle.
    import cv2

    (centre_x, centre_y), (side_a, side_b), angle = cv2.minAreaRect(outline)
    if min(side_a, side_b) < setting.min_side - 1:
        return None
    if _mean_inside(heat, cv2.boxPoints(((centre_x, centre_y), (side_a, side_b), angle))) < setting.box_threshold:
        return None
    growth = side_a * side_b * setting.unclip_ratio / (2 * (side_a + side_b))
    grown = cv2.boxPoints(((centre_x, centre_y), (side_a + 2 * growth, side_b + 2 * growth), angle))
    return _ordered(grown)


def _mean_inside(heat: NDArray[Any], corners: NDArray[Any]) -> float:
    import cv2

    rows, columns = heat.shape
    left, top = np.clip(np.floor(corners.min(axis=0)).astype(int), 0, (columns - 1, rows - 1))
    right, bottom = np.clip(np.ceil(corners.max(axis=0)).astype(int), 0, (columns - 1, rows - 1))
    mask = np.zeros((bottom - top + 1, right - left + 1), dtype=np.uint8)
    cv2.fillPoly(mask, [(corners - (left, top)).astype(np.int32)], 1)
    return float(cv2.mean(heat[top : bottom + 1, left : right + 1], mask)[0])


def _ordered(corners: NDArray[Any]) -> Corners:
    # Clockwise from the upper left corner of the box as it stands (y grows downwards).
    centre = corners.mean(axis=0)
    angles = np.arctan2(corners[:, 1] - centre[1], corners[:, 0] - centre[0])
    clockwise = corners[np.argsort(angles)]
    first = int(np.argmin(clockwise.sum(axis=1)))
    return np.roll(clockwise, -first, axis=0).astype(np.float32)


def _scaled_line(line: Pixels, max_width: int) -> Pixels:
    import cv2

    height, width = line.shape[:2]
    scaled_width = max(_COLUMN_PIXELS, min(max_width, math.ceil(width * _LINE_HEIGHT / height)))
    interpolation = cv2.INTER_AREA if height > _LINE_HEIGHT else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(line, (scaled_width, _LINE_HEIGHT), interpolation=interpolation), dtype=np.uint8)


def _network_input(picture: Pixels) -> NDArray[np.float32]:
    # The models were trained on blue-green-red pictures scaled to [-1, 1].
    planes = np.empty((1, 3, *picture.shape[:2]), dtype=np.float32)
    for channel in range(3):
        np.multiply(picture[:, :, 2 - channel], 1 / 127.5, out=planes[0, channel], casting="unsafe")
    planes -= 1.0
    return planes


def _multiple(side: float) -> int:
    return max(_SIDE_MULTIPLE, round(side / _SIDE_MULTIPLE) * _SIDE_MULTIPLE)
