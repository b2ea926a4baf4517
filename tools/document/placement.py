"""Where the upright picture that is read lies on the page as it was stored."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.document.ocr import Corners
from tools.images.decode import Pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A picture to read, and the 3 x 3 projective matrix from its pixels to those of the stored page."""

    picture: Pixels
    matrix: NDArray[np.float64]

    def stored(self, corners: Corners) -> Corners:
        """Corners on the picture as corners on the stored page."""
        points = np.hstack([corners.astype(np.float64), np.ones((len(corners), 1))]) @ self.matrix.T
        return np.asarray(points[:, :2] / points[:, 2:], dtype=np.float32)


def turned(
    picture: Pixels, turn_degrees: int, *, scale: float = 1.0, offset: tuple[int, int] = (0, 0)
) -> Placement:
    """Turn a picture upright.

    Args:
        picture: the page as stored, or a part of it.
        turn_degrees: how far its text was turned clockwise: 0, 90, 180 or 270.
        scale: how much larger the picture is than that part of the stored page.
        offset: x, y of the picture's upper left corner on the stored page.
    """
    height, width = picture.shape[:2]
    # Upright x, y to stored x, y, by how often the picture is turned back a quarter.
    back: dict[int, list[list[float]]] = {
        0: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        90: [[0, -1, width], [1, 0, 0], [0, 0, 1]],
        180: [[-1, 0, width], [0, -1, height], [0, 0, 1]],
        270: [[0, 1, 0], [-1, 0, height], [0, 0, 1]],
    }
    place: NDArray[Any] = np.array([[1 / scale, 0, offset[0]], [0, 1 / scale, offset[1]], [0, 0, 1]])
    upright = np.ascontiguousarray(np.rot90(picture, turn_degrees // 90))
    return Placement(picture=upright, matrix=place @ np.array(back[turn_degrees], dtype=np.float64))
