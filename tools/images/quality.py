"""Is a page sharp, and is there anything on it? Measured on the pixels, before any text is read.

Sharpness is the variance of the Laplacian (Pech-Pacheco et al., 2000) at a normalised size, taken only where
there is ink: a page with three lines of text is as sharp as a full one.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tools.images.decode import Pixels

_LONG_SIDE = 1600
_TILE = 32
_SMALLEST = _TILE + 4
"""A tile and the rim that smoothing and the Laplacian eat."""
_INK_CONTRAST = 50
"""Brightest minus darkest value from which a tile counts as inked."""
_FAINT_CONTRAST = 24
_MARGIN = 0.03
"""Share of each side left out when looking for ink: scanner shadows live there."""

BLURRED_BELOW = 100.0
"""Sharpness under which text is too soft to be read reliably: 9-point Latin text blurred by about 0.8 points
(standard deviation), Chinese by about 0.65."""
_SCALE = 1.6
"""Puts that limit at 100."""


def sharpness(pixels: Pixels) -> float:
    """How sharp the inked parts of a page are; about 0 for none or all blurred, over 1000 for crisp text."""
    grey = _smoothed(_normalised_grey(pixels))
    laplacian = -4 * grey[1:-1, 1:-1] + grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    variance = _tiles(laplacian).var(axis=(1, 2))
    contrast = _contrast(_tiles(grey[1:-1, 1:-1]))
    # Grain is everywhere, ink is not: what the plainest tiles show is the camera's noise, and no sharpness.
    plain = contrast <= np.percentile(contrast, 10)
    noise, grain = float(np.median(variance[plain])), float(np.median(contrast[plain]))
    inked = contrast > _INK_CONTRAST + grain
    if not inked.any():
        return 0.0
    # Among inked tiles the sharper ones: the edges of photos and shadows are soft on a sharp page too.
    return max(0.0, _SCALE * (float(np.percentile(variance[inked], 75)) - noise))


def is_blank(pixels: Pixels) -> bool:
    """Whether nothing is printed on the page, shadows at its edges aside."""
    grey = _normalised_grey(pixels)
    height, width = grey.shape
    top, left = int(height * _MARGIN), int(width * _MARGIN)
    contrast = _contrast(_tiles(grey[top : height - top, left : width - left]))
    return not bool((contrast > _FAINT_CONTRAST).any())


def _smoothed(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    # Binomial 3 x 3: takes nine tenths of a camera's grain out of the Laplacian, which would pass for sharpness.
    rows = (grey[:-2] + 2 * grey[1:-1] + grey[2:]) / 4
    return np.asarray((rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4, dtype=np.float32)


def _normalised_grey(pixels: Pixels) -> NDArray[np.float32]:
    image = Image.fromarray(pixels).convert("L")
    scale = _LONG_SIDE / max(image.size)
    if scale < 1:
        size = max(_SMALLEST, round(image.width * scale)), max(_SMALLEST, round(image.height * scale))
        image = image.resize(size, Image.Resampling.BOX)
    grey = np.asarray(image, dtype=np.float32)
    missing = max(0, _SMALLEST - grey.shape[0]), max(0, _SMALLEST - grey.shape[1])
    return np.pad(grey, ((0, missing[0]), (0, missing[1])), mode="edge") if any(missing) else grey


def _tiles(values: NDArray[np.float32]) -> NDArray[np.float32]:
    rows, columns = values.shape[0] // _TILE, values.shape[1] // _TILE
    cut = values[: rows * _TILE, : columns * _TILE].reshape(rows, _TILE, columns, _TILE)
    return cut.swapaxes(1, 2).reshape(-1, _TILE, _TILE)


def _contrast(tiles: NDArray[np.float32]) -> NDArray[np.float32]:
    # Percentiles instead of extremes: single grains of noise are no ink.
    low, high = np.percentile(tiles, (2, 98), axis=(1, 2))
    return np.asarray(high - low, dtype=np.float32)
