"""The pages of a scanned file as pictures, drawn when they are needed: the file's bytes are all that is kept."""

from collections.abc import Iterator

import numpy as np

from tools.document.reading import Box
from tools.images.decode import ImageLimits, Pixels, decode_image, media_type, require_size
from tools.images.pdf import PdfFile


class ScannedFile:
    """A PNG, JPEG or PDF; gives its pages at the stored resolution, or a part of one enlarged."""

    def __init__(self, data: bytes, limits: ImageLimits | None = None) -> None:
        """Look at the file's first bytes.

        Raises:
            ImageEmpty, ImageUnknownFormat, ImageTooLarge: see `tools.images.errors`.
        """
        self.limits = limits or ImageLimits()
        self.media_type = media_type(data)
        require_size(data, self.limits)
        self._data = data

    def pages(self) -> Iterator[Pixels]:
        """Every page in turn, one in memory at a time.

        Raises:
            ImageError: a page, or the file, cannot be opened.
        """
        if self.media_type != "application/pdf":
            yield decode_image(self._data, self.limits)
            return
        with PdfFile(self._data, self.limits) as document:
            for number in range(1, document.page_count + 1):
                yield document.render(number)[0]

    def part(self, page: int, box: Box, scale: float) -> tuple[Pixels, Box, float]:
        """The part `box` of a page, `scale` times enlarged: a PDF is drawn again, a picture is interpolated.

        A part that would have more pixels than the limits allow is enlarged less.

        Returns:
            The pixels, the box they show (cut to the page), and how much larger they really are.

        Raises:
            ValueError: there is no such page, or the box lies outside it.
            ImageError: the page cannot be opened.
        """
        import cv2

        if self.media_type == "application/pdf":
            with PdfFile(self._data, self.limits) as document:
                whole, dpi = document.render(page)
                cut = _inside(box, whole)
                pixels, _ = document.render(page, dpi=dpi * self._fitting(cut, scale), box=cut)
            return pixels, cut, pixels.shape[1] / cut[2]
        if page != 1:
            raise ValueError(f"a picture has one page, not page {page}")
        whole = decode_image(self._data, self.limits)
        x, y, width, height = cut = _inside(box, whole)
        part, scale = whole[y : y + height, x : x + width], self._fitting(cut, scale)
        enlarged = cv2.resize(part, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        return np.asarray(enlarged, dtype=np.uint8), cut, scale

    def _fitting(self, cut: Box, scale: float) -> float:
        return float(min(scale, (0.99 * self.limits.max_pixels / (cut[2] * cut[3])) ** 0.5))


def _inside(box: Box, picture: Pixels) -> Box:
    height, width = picture.shape[:2]
    left, top = max(0, box[0]), max(0, box[1])
    right, bottom = min(width, box[0] + box[2]), min(height, box[1] + box[3])
    if right - left < 2 or bottom - top < 2:
        raise ValueError(f"box {box} does not lie on the page of {width} x {height} pixels")
    return left, top, right - left, bottom - top
