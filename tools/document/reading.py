"""What a device sends up instead of a picture: the text lines of each page and where they stand.

All coordinates are pixels in the frame of the page as it was stored (after EXIF orientation; a PDF page as
rendered), so a box can be drawn on what the operator sees. A rotated or skewed page keeps that frame: a
line's quad then starts at the corner where the text starts, and the quad's top edge gives the text's direction.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Box = tuple[int, int, int, int]
"""x, y, width, height in pixels of the stored page; x grows to the right, y downwards."""

Quad = tuple[float, float, float, float, float, float, float, float]
"""x, y of a line's corners: text start top, text end top, text end bottom, text start bottom."""


_FARTHEST = 1_000_000
"""No page has so many pixels along a side; a coordinate past it is no place."""


class ReadingFormatError(ValueError):
    """A page reading that does not have the documented form; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """One line of text as the OCR read it, with its place and the OCR's confidence in [0, 1]."""

    text: str
    quad: Quad
    confidence: float

    @property
    def box(self) -> Box:
        """The smallest upright box around the line."""
        xs, ys = self.quad[0::2], self.quad[1::2]
        left, top = math.floor(min(xs)), math.floor(min(ys))
        return left, top, math.ceil(max(xs)) - left, math.ceil(max(ys)) - top

    @property
    def angle_degrees(self) -> float:
        """Direction of the text, clockwise from the page's x axis, in (-180, 180]."""
        x0, y0, x1, y1 = self.quad[:4]
        return math.degrees(math.atan2(y1 - y0, x1 - x0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFinding:
    """Something wrong with the page as a picture, e.g. ``page_blurred`` or ``page_blank``."""

    code: str
    message: str
    page: int
    box: Box | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crop:
    """A small picture of one doubtful line, for a person to look at; its bytes travel as a blob."""

    sha256: str
    page: int
    box: Box
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its size, how well it can be read, and its lines in reading order."""

    page: int
    """Number of the page, from 1."""
    width: int
    height: int
    lines: tuple[TextLine, ...]
    sharpness: float
    """Variance of the Laplacian at a normalised size; below about 100 text is blurred."""
    orientation_degrees: int = 0
    """How far the page was turned: 0, 90, 180 or 270, clockwise."""
    skew_degrees: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReading:
    """Everything a device tells the cloud about one scanned document."""

    name: str
    sha256: str
    """Hash of the file that stays on the device; ties the answer to it."""
    media_type: str
    pages: tuple[Page, ...]
    findings: tuple[PageFinding, ...] = ()
    crops: tuple[Crop, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The reading as JSON-ready values (see `from_json`)."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "media_type": self.media_type,
            "pages": [
                {
                    "page": page.page,
                    "width": page.width,
                    "height": page.height,
                    "sharpness": round(page.sharpness, 2),
                    "orientation_degrees": page.orientation_degrees,
                    "skew_degrees": round(page.skew_degrees, 2),
                    "lines": [
                        {
                            "text": line.text,
                            "quad": [round(value, 1) for value in line.quad],
                            "confidence": round(line.confidence, 4),
                        }
                        for line in page.lines
                    ],
                }
                for page in self.pages
            ],
            "findings": [
                {
                    "code": finding.code,
                    "message": finding.message,
                    "page": finding.page,
                    "box": list(finding.box) if finding.box else None,
                }
                for finding in self.findings
            ],
            "crops": [
                {"sha256": crop.sha256, "page": crop.page, "box": list(crop.box), "media_type": crop.media_type}
                for crop in self.crops
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DocumentReading":
        """Read what `to_json` wrote.

        Raises:
            ReadingFormatError: a field is missing, has another type, length or number than a page can have.
        """
        try:
            return cls(
                name=_text(value["name"], 500),
                sha256=_sha256(value["sha256"]),
                media_type=_text(value["media_type"], 100),
                pages=tuple(
                    _page(page, number) for number, page in enumerate(_some(value["pages"], 100), start=1)
                ),
                findings=tuple(
                    PageFinding(
                        code=_code(item["code"]),
                        message=_text(item["message"], 4000),
                        page=_whole(item["page"], 1, 1000),
                        box=_box(item["box"]) if item.get("box") is not None else None,
                    )
                    for item in _some(value.get("findings", []), 1000)
                ),
                crops=tuple(
                    Crop(
                        sha256=_sha256(item["sha256"]),
                        page=_whole(item["page"], 1, 1000),
                        box=_box(item["box"]),
                        media_type=_text(item["media_type"], 100),
                    )
                    for item in _some(value.get("crops", []), 1000)
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ReadingFormatError(f"not a document reading: {error!r}") from error


def content_hash(data: bytes) -> str:
    """SHA-256 of `data` in hexadecimal, the name of every blob and document."""
    return hashlib.sha256(data).hexdigest()


def _page(value: Mapping[str, Any], number: int) -> Page:
    if value["page"] != number:
        raise ReadingFormatError(f"page {number} says that it is page {value['page']!r}")
    return Page(
        page=number,
        width=_whole(value["width"], 1, _FARTHEST),
        height=_whole(value["height"], 1, _FARTHEST),
        sharpness=_number(value["sharpness"], 0, 1e12),
        orientation_degrees=_whole(value.get("orientation_degrees", 0), 0, 270),
        skew_degrees=_number(value.get("skew_degrees", 0.0), -360, 360),
        lines=tuple(
            TextLine(
                text=_text(line["text"], 4000),
                quad=_quad(line["quad"]),
                confidence=_number(line["confidence"], 0, 1),
            )
            for line in _some(value["lines"], 2000)
        ),
    )


def _quad(values: Sequence[float]) -> Quad:
    if len(values) != 8:
        raise ReadingFormatError(f"quad needs 8 numbers, got {len(values)}")
    x0, y0, x1, y1, x2, y2, x3, y3 = (_number(value, -_FARTHEST, _FARTHEST) for value in values)
    return x0, y0, x1, y1, x2, y2, x3, y3


def _box(values: Sequence[int]) -> Box:
    if len(values) != 4:
        raise ReadingFormatError(f"box needs 4 numbers, got {len(values)}")
    x, y, width, height = (_whole(value, -_FARTHEST, _FARTHEST) for value in values)
    return x, y, width, height


def _some(values: Any, at_most: int) -> list[Any]:
    if not isinstance(values, list) or len(values) > at_most:
        raise ReadingFormatError(f"a list of at most {at_most} was expected")
    return values


def _text(value: Any, at_most: int) -> str:
    if not isinstance(value, str) or len(value) > at_most:
        raise ReadingFormatError(f"text of at most {at_most} characters was expected, not {str(value)[:80]!r}")
    return value


def _code(value: Any) -> str:
    if re.fullmatch("[a-z][a-z0-9_]*", _text(value, 100)) is None:
        raise ReadingFormatError(f"{str(value)[:80]!r} is not the code of a finding")
    return str(value)


def _sha256(value: Any) -> str:
    if not isinstance(value, str) or re.fullmatch("[0-9a-f]{64}", value) is None:
        raise ReadingFormatError(f"{str(value)[:80]!r} is not a SHA-256")
    return value


def _number(value: Any, least: float, most: float) -> float:
    # Written so that NaN, which compares with nothing, is refused too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ReadingFormatError(f"a number from {least:g} to {most:g} was expected, not {str(value)[:80]}")
    return float(value)


def _whole(value: Any, least: int, most: int) -> int:
    number = _number(value, least, most)
    if number != int(number):
        raise ReadingFormatError(f"a whole number was expected, not {number}")
    return int(number)
