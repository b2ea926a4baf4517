"""PNG and JPEG bytes from outside into pixels, without trusting what the file says about itself.

The size is read from the header and checked before any pixel is allocated; every fault is an `ImageError`.
"""

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from tools.images.errors import ImageBroken, ImageEmpty, ImageTooLarge, ImageUnknownFormat

Pixels = NDArray[np.uint8]
"""Height x width x 3, RGB, 0 to 255."""

_EXIF_ORIENTATION = 0x0112
# What to do to a picture for each EXIF orientation (Exif 2.32, tag 0x0112); 1 is upright.
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow's decoders raise on damaged input.
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, IndexError, KeyError, TypeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """What a device is willing to open."""

    max_bytes: int = 32 * 1024 * 1024
    max_pixels: int = 40_000_000
    """Decoding needs about 4 bytes of memory a pixel."""
    max_pages: int = 20
    pdf_dpi: int = 200


def media_type(data: bytes) -> str:
    """What `data` is by its first bytes: image/png, image/jpeg or application/pdf; the file's name is not asked.

    Raises:
        ImageEmpty: no bytes.
        ImageUnknownFormat: something else.
    """
    if not data:
        raise ImageEmpty("the file is empty")
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    # The PDF specification lets junk stand before the header, and real scanners put it there.
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    raise ImageUnknownFormat(f"the file starts with {data[:8].hex(' ')}, which is no PNG, JPEG or PDF")


def decode_image(data: bytes, limits: ImageLimits | None = None) -> Pixels:
    """Decode a PNG or JPEG: EXIF orientation applied, transparency on white, 8 bits, RGB.

    Of an animated file the first picture is taken.

    Raises:
        ImageEmpty, ImageUnknownFormat, ImageTooLarge, ImageBroken: as their names say.
    """
    limits = limits or ImageLimits()
    kind = media_type(data)
    if kind == "application/pdf":
        raise ImageUnknownFormat("the file is a PDF, not a picture")
    require_size(data, limits)
    opener = PngImageFile if kind == "image/png" else JpegImageFile
    try:
        # The format's own class, not Image.open: its check against bombs is one global number with a warning.
        with opener(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height > limits.max_pixels:
                raise ImageTooLarge(
                    f"the picture claims {width} x {height} pixels, at most {limits.max_pixels} are allowed"
                )
            if width < 1 or height < 1:
                raise ImageBroken(f"the picture claims {width} x {height} pixels")
            image.load()
            return _upright_rgb(image, _orientation(image))
    except _DAMAGE as error:
        raise ImageBroken(f"the picture is damaged or cut off ({error})") from error


def require_size(data: bytes, limits: ImageLimits) -> None:
    """Refuse a file with more bytes than allowed.

    Raises:
        ImageTooLarge: it has more.
    """
    if len(data) > limits.max_bytes:
        raise ImageTooLarge(f"the file has {len(data)} bytes, at most {limits.max_bytes} are allowed")


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_EXIF_ORIENTATION, 1))
    except _DAMAGE:
        # Damaged EXIF says nothing about the pixels; the reader finds the orientation from the text.
        return 1


def _upright_rgb(image: Image.Image, orientation: int) -> Pixels:
    if orientation in _TRANSPOSITIONS:
        image = image.transpose(_TRANSPOSITIONS[orientation])
    if image.mode.startswith("I") or image.mode == "F":
        return _from_deep_grey(np.asarray(image))
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image)
    return np.ascontiguousarray(np.asarray(image.convert("RGB"), dtype=np.uint8))


def _from_deep_grey(values: NDArray[Any]) -> Pixels:
    # 16-bit grey: the upper byte is the picture; anything outside 16 bits is clipped.
    grey = (np.clip(values, 0, 65535).astype(np.uint16) >> 8).astype(np.uint8)
    return np.ascontiguousarray(np.repeat(grey[:, :, None], 3, axis=2))
