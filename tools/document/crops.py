"""Small pictures of doubtful lines: what a person needs to see when the OCR was not sure, and no more."""

import io

from PIL import Image

from tools.document.reading import Crop, Page, TextLine, content_hash
from tools.images.decode import Pixels

DOUBTFUL_BELOW = 0.9
_MARGIN = 4
_MAX_SIDE = 900
_MAX_BYTES = 48 * 1024
_MAX_CROPS = 40
"""Per page: on a page where more is doubtful the page itself is the problem."""
_LARGEST_SHARE = 0.25
"""Of the page. A larger piece is no line but the picture, e.g. a photo taken for text, and the picture stays."""


def doubtful_crops(picture: Pixels, page: Page) -> tuple[tuple[Crop, bytes], ...]:
    """A grey PNG for each line of the page the OCR was less than 90 % sure of, least sure first.

    At most 40 a page; each at most 48 KiB, made smaller until it is, and none of a quarter of the page or more.
    """
    largest = _LARGEST_SHARE * page.width * page.height
    doubtful = sorted(
        (line for line in page.lines if line.confidence < DOUBTFUL_BELOW and line.box[2] * line.box[3] < largest),
        key=lambda line: line.confidence,
    )
    return tuple(_crop(picture, page.page, line) for line in doubtful[:_MAX_CROPS])


def _crop(picture: Pixels, page: int, line: TextLine) -> tuple[Crop, bytes]:
    height, width = picture.shape[:2]
    x, y, box_width, box_height = line.box
    left, top = max(0, x - _MARGIN), max(0, y - _MARGIN)
    right, bottom = min(width, x + box_width + _MARGIN), min(height, y + box_height + _MARGIN)
    image = Image.fromarray(picture[top:bottom, left:right]).convert("L")
    image.thumbnail((_MAX_SIDE, _MAX_SIDE))
    data = _png(image)
    while len(data) > _MAX_BYTES:
        image = image.resize((max(1, image.width * 3 // 4), max(1, image.height * 3 // 4)))
        data = _png(image)
    return Crop(sha256=content_hash(data), page=page, box=(left, top, right - left, bottom - top)), data


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
