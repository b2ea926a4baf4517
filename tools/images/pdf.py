"""Pages of a PDF into pixels, by PDFium.

The text layer of a PDF is not read on purpose: it can say something else than the page a person sees.
"""

import re
import threading
from types import TracebackType
from typing import Any

import numpy as np

from tools.images.decode import ImageLimits, Pixels, media_type, require_size
from tools.images.errors import (
    ImageBroken,
    ImageError,
    ImageTooLarge,
    ImageUnknownFormat,
    PdfEncrypted,
    PdfTooManyPages,
    PdfWithoutPages,
)

_POINTS_PER_INCH = 72
# PDFium is not thread-safe anywhere, not even with one document per thread.
_pdfium = threading.RLock()


class PdfFile:
    """An open PDF; `render` gives a page, or a part of one, at any resolution. Close it, or use `with`."""

    def __init__(self, data: bytes, limits: ImageLimits | None = None) -> None:
        """Open `data`.

        Raises:
            ImageEmpty, ImageUnknownFormat, ImageTooLarge, ImageBroken: as their names say.
            PdfEncrypted, PdfWithoutPages, PdfTooManyPages: as their names say.
        """
        self._limits = limits or ImageLimits()
        if media_type(data) != "application/pdf":
            raise ImageUnknownFormat("the file is no PDF")
        require_size(data, self._limits)
        import pypdfium2  # 20 MB: only a process that reads PDFs pays for it

        self._error: type[Exception] = pypdfium2.PdfiumError
        with _pdfium:
            try:
                self._document: Any = pypdfium2.PdfDocument(data)
                self.page_count = len(self._document)
            except self._error as error:
                raise _opening_error(data, error) from error
        if self.page_count < 1:
            self.close()
            raise PdfWithoutPages("the PDF has no page")
        if self.page_count > self._limits.max_pages:
            self.close()
            raise PdfTooManyPages(
                f"the PDF has {self.page_count} pages, at most {self._limits.max_pages} are read"
            )

    def render(
        self, page: int, *, dpi: float | None = None, box: tuple[int, int, int, int] | None = None
    ) -> tuple[Pixels, float]:
        """Draw page number `page` (from 1), or the part `box` of it, on white.

        Args:
            page: the page's number, from 1.
            dpi: resolution; the limits' `pdf_dpi` unless given. Lowered for a page too large for the pixel limit.
            box: x, y, width, height in pixels of the page as drawn at `pdf_dpi` (lowered as said above).

        Returns:
            The pixels, and the resolution they were drawn at.

        Raises:
            ImageBroken: the page cannot be drawn or has no size.
            ImageTooLarge: the part asked for would need more pixels than allowed.
        """
        with _pdfium:
            try:
                leaf = self._document[page - 1]
                width_points, height_points = leaf.get_size()
                stored_dpi = self._fitting_dpi(width_points, height_points, page)
                used_dpi = stored_dpi if dpi is None or (box is None and dpi > stored_dpi) else dpi
                margins = _margins(box, stored_dpi, width_points, height_points)
                visible = (width_points - margins[0] - margins[2]) * (height_points - margins[1] - margins[3])
                if visible * (used_dpi / _POINTS_PER_INCH) ** 2 > self._limits.max_pixels:
                    raise ImageTooLarge(f"page {page}: the part asked for is too large at {used_dpi:.0f} dpi")
                bitmap = leaf.render(scale=used_dpi / _POINTS_PER_INCH, crop=margins, rev_byteorder=True)
                pixels = np.array(bitmap.to_numpy()[:, :, :3], dtype=np.uint8, order="C")
                bitmap.close()
                leaf.close()
            except (self._error, IndexError, ValueError) as error:
                raise ImageBroken(f"page {page} of the PDF cannot be drawn ({error})") from error
        return pixels, used_dpi

    def _fitting_dpi(self, width_points: float, height_points: float, page: int) -> float:
        if width_points < 1 or height_points < 1:
            raise ImageBroken(f"page {page} of the PDF has no size")
        inches_squared = width_points * height_points / _POINTS_PER_INCH**2
        return float(min(self._limits.pdf_dpi, (0.99 * self._limits.max_pixels / inches_squared) ** 0.5))

    def close(self) -> None:
        """Give the document's memory back."""
        with _pdfium:
            self._document.close()

    def __enter__(self) -> "PdfFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opening_error(data: bytes, error: Exception) -> ImageError:
    # PDFium's error codes (fpdfview.h): 0 success, 3 format, 4 password, 5 security handler.
    code = getattr(error, "err_code", None)
    if code in (4, 5):
        return PdfEncrypted("the PDF needs a password")
    # A PDF without pages fails to load, with a code that depends on who wrote it; only its page tree tells.
    if code == 0 or (re.search(rb"/Count\s+0\b", data) and not re.search(rb"/Type\s*/Page\b", data)):
        return PdfWithoutPages("the PDF has no page")
    return ImageBroken(f"the PDF cannot be opened ({error})")


def _margins(
    box: tuple[int, int, int, int] | None, dpi: float, width_points: float, height_points: float
) -> tuple[float, ...]:
    # PDFium cuts margins off in points: left, bottom, right, top.
    if box is None:
        return 0.0, 0.0, 0.0, 0.0
    points = _POINTS_PER_INCH / dpi
    x, y, width, height = (value * points for value in box)
    return max(0.0, x), max(0.0, height_points - y - height), max(0.0, width_points - x - width), max(0.0, y)
