"""A sheet of paper to print on: text, rules and boxes placed in points, with a record of where each field went."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from PIL import Image, ImageDraw

from bench.invoice_layouts.typefaces import CJK, Faces, is_cjk, load

Colour = tuple[int, int, int]
PixelBox = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""

INK: Colour = (24, 24, 28)
GREY: Colour = (96, 98, 104)
PALE: Colour = (200, 203, 208)
WHITE: Colour = (255, 255, 255)

_SMALLEST_SHRINK = 0.6
_SMALLEST_FIELD_SHRINK = 0.75
"""A value that is asked for stays large enough to read, even if it runs over."""
_POINTS_PER_INCH = 72


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text and, where it prints a value that is asked for, the name of that field."""

    text: str
    field: str | None = None


Content = str | Run | Sequence[Run]


def runs_of(content: Content) -> list[Run]:
    """The content as a list of runs."""
    if isinstance(content, str):
        return [Run(content)]
    return [content] if isinstance(content, Run) else list(content)


class Sheet:
    """One page under the print head; x grows to the right, y downwards, in points; text stands on the line y."""

    def __init__(self, *, width: float, height: float, dpi: int, faces: Faces) -> None:
        self.width, self.height, self.dpi, self.faces = width, height, dpi, faces
        self.scale = dpi / _POINTS_PER_INCH
        self.image = Image.new("RGB", (round(width * self.scale), round(height * self.scale)), WHITE)
        self.boxes: dict[str, list[PixelBox]] = {}
        self._pen = ImageDraw.Draw(self.image)

    def measure(self, content: Content, *, size: float = 9, bold: bool = False, face: str = "body") -> float:
        """Width in points that `write` would use."""
        return (
            sum(
                load(family, self._px(size), bold=bold).getlength(piece)
                for run in runs_of(content)
                for family, piece in self._pieces(run.text, face)
            )
            / self.scale
        )

    def write(
        self,
        x: float,
        y: float,
        content: Content,
        *,
        size: float = 9,
        bold: bool = False,
        colour: Colour = INK,
        align: str = "left",
        face: str = "body",
        limit: float | None = None,
    ) -> float:
        """Print one line of text and return its width in points.

        Args:
            x: left edge, centre or right edge, as `align` says.
            y: baseline.
            content: the text.
            size: type size in points.
            bold: heavy weight.
            colour: of the ink.
            align: ``left``, ``center`` or ``right``.
            face: role of the typeface, ``body``, ``heading`` or ``mono``.
            limit: width the line must fit in; it is set smaller, and at worst cut, to fit.
        """
        runs = runs_of(content)
        if limit is not None:
            runs, size = self._fit(runs, size, limit, bold=bold, face=face)
        width = self.measure(runs, size=size, bold=bold, face=face)
        left = x - {"left": 0.0, "center": width / 2, "right": width}[align]
        cursor = left * self.scale
        baseline = y * self.scale
        for run in runs:
            extent: list[PixelBox] = []
            for family, piece in self._pieces(run.text, face):
                font = load(family, self._px(size), bold=bold)
                self._pen.text((cursor, baseline), piece, font=font, fill=colour, anchor="ls")
                extent.append(self._pen.textbbox((cursor, baseline), piece, font=font, anchor="ls"))
                cursor += font.getlength(piece)
            if run.field and extent:
                self.boxes.setdefault(run.field, []).append(_union(extent))
        return width

    def paragraph(
        self,
        x: float,
        y: float,
        text: str,
        *,
        width: float,
        size: float = 9,
        colour: Colour = INK,
        leading: float = 1.35,
    ) -> float:
        """Print text over several lines no wider than `width`; returns the baseline after the last line."""
        for line in self._wrap(text, width, size):
            self.write(x, y, line, size=size, colour=colour)
            y += size * leading
        return y

    def rule(
        self, x0: float, y0: float, x1: float, y1: float, *, thick: float = 0.6, colour: Colour = INK
    ) -> None:
        """Draw a straight line, `thick` points wide."""
        ends = [(x0 * self.scale, y0 * self.scale), (x1 * self.scale, y1 * self.scale)]
        self._pen.line(ends, fill=colour, width=max(1, round(thick * self.scale)))

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: Colour | None = None,
        edge: Colour | None = None,
        thick: float = 0.6,
        radius: float = 0,
    ) -> None:
        """Draw a rectangle, its top left corner at x, y."""
        corners = [value * self.scale for value in (x, y, x + width, y + height)]
        thickness = max(1, round(thick * self.scale))
        self._pen.rounded_rectangle(corners, radius * self.scale, fill=fill, outline=edge, width=thickness)

    def shape(self, points: Iterable[tuple[float, float]], *, fill: Colour) -> None:
        """Fill a polygon."""
        self._pen.polygon([(x * self.scale, y * self.scale) for x, y in points], fill=fill)

    def disc(self, x: float, y: float, radius: float, *, fill: Colour) -> None:
        """Fill a circle around x, y."""
        self._pen.ellipse(
            [value * self.scale for value in (x - radius, y - radius, x + radius, y + radius)], fill=fill
        )

    def cut(self, y: float) -> None:
        """Cut the paper off at y, as a till does."""
        self.height = y
        self.image = self.image.crop((0, 0, self.image.width, round(y * self.scale)))
        self._pen = ImageDraw.Draw(self.image)

    def _px(self, size: float) -> float:
        return round(size * self.scale, 1)

    def _pieces(self, text: str, face: str) -> list[tuple[str, str]]:
        family = self.faces.family(face)
        return [(CJK if wide else family, "".join(piece)) for wide, piece in groupby(text, key=is_cjk)]

    def _fit(
        self, runs: list[Run], size: float, limit: float, *, bold: bool, face: str
    ) -> tuple[list[Run], float]:
        width = self.measure(runs, size=size, bold=bold, face=face)
        if width <= limit:
            return runs, size
        asked = any(run.field for run in runs)
        size *= max(_SMALLEST_FIELD_SHRINK if asked else _SMALLEST_SHRINK, limit / width)
        while len(runs) == 1 and runs[0].field is None and len(runs[0].text) > 4:
            if self.measure(runs, size=size, bold=bold, face=face) <= limit + 1:
                break
            runs = [Run(runs[0].text[:-2].rstrip() + ".")]
        return runs, size

    def _wrap(self, text: str, width: float, size: float) -> list[str]:
        spaced = " " in text.strip() and not any(is_cjk(character) for character in text)
        words, glue = (text.split(), " ") if spaced else (list(text), "")
        lines, line = [], ""
        for word in words:
            longer = f"{line}{glue}{word}" if line else word
            if line and self.measure(longer, size=size) > width:
                lines.append(line)
                longer = word
            line = longer
        return [*lines, line]


def _union(boxes: Sequence[PixelBox]) -> PixelBox:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
