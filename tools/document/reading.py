"""What a device sends up instead of a picture: the text lines of each page and where they stand.

All coordinates are pixels in the frame of the page as it was stored (after EXIF orientation; a PDF page as
rendered), so a box can be drawn on what the operator sees. A rotated or skewed page keeps that frame: a
line's quad then starts at the corner where the text starts, and the quad's top edge gives the text's direction.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Box = tuple[int, int, int, int]
"""x, y, width, height in pixels of the stored page; x grows to the right, y downwards."""

Quad = tuple[float, float, float, float, float, float, float, float]
"""x, y of a line's corners: text start top, text end top, text end bottom, text start bottom."""


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
            ReadingFormatError: a field is missing, has another type or another length.
        """
        try:
            return cls(
                name=str(value["name"]),
                sha256=str(value["sha256"]),
                media_type=str(value["media_type"]),
                pages=tuple(_page(page) for page in value["pages"]),
                findings=tuple(
                    PageFinding(
                        code=str(item["code"]),
                        message=str(item["message"]),
                        page=int(item["page"]),
                        box=_box(item["box"]) if item.get("box") is not None else None,
                    )
                    for item in value.get("findings", ())
                ),
                crops=tuple(
                    Crop(
                        sha256=str(item["sha256"]),
                        page=int(item["page"]),
                        box=_box(item["box"]),
                        media_type=str(item["media_type"]),
                    )
                    for item in value.get("crops", ())
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ReadingFormatError(f"not a document reading: {error!r}") from error


def content_hash(data: bytes) -> str:
    """SHA-256 of `data` in hexadecimal, the name of every blob and document."""
    return hashlib.sha256(data).hexdigest()


def _page(value: Mapping[str, Any]) -> Page:
    return Page(
        page=int(value["page"]),
        width=int(value["width"]),
        height=int(value["height"]),
        sharpness=float(value["sharpness"]),
        orientation_degrees=int(value.get("orientation_degrees", 0)),
        skew_degrees=float(value.get("skew_degrees", 0.0)),
        lines=tuple(
            TextLine(text=str(line["text"]), quad=_quad(line["quad"]), confidence=float(line["confidence"]))
            for line in value["lines"]
        ),
    )


def _quad(values: Sequence[float]) -> Quad:
    if len(values) != 8:
        raise ReadingFormatError(f"quad needs 8 numbers, got {len(values)}")
    x0, y0, x1, y1, x2, y2, x3, y3 = (float(value) for value in values)
    return x0, y0, x1, y1, x2, y2, x3, y3


def _box(values: Sequence[int]) -> Box:
    if len(values) != 4:
        raise ReadingFormatError(f"box needs 4 numbers, got {len(values)}")
    x, y, width, height = (int(value) for value in values)
    return x, y, width, height
