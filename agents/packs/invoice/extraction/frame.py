"""The page set upright: every OCR line in a frame whose x axis is the text's direction.

Fields are found by how labels and values stand to each other, which must not depend on how the page lay on the
scanner. Coordinates here are pixels of the stored page, turned by the median angle of its lines; pages lie below
one another. `Segment.box_of` leads back to the stored page.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agents.packs.invoice.extraction.folding import Folded, fold, is_wide
from tools.document.reading import Box, DocumentReading, Page, TextLine

_NARROW = frozenset("iljI.,:;'|!()[] 1tfr-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One OCR line, upright: x grows along the text, y downwards."""

    index: int
    page: int
    line: TextLine
    folded: Folded
    x0: float
    y0: float
    x1: float
    y1: float
    edges: tuple[float, ...]
    """Share of the line's width at which each character starts, one more at the end."""

    @property
    def text(self) -> str:
        """The text as the OCR read it."""
        return self.line.text

    @property
    def height(self) -> float:
        """Height of the line, pixels."""
        return self.y1 - self.y0

    @property
    def middle(self) -> float:
        """The y of the line's middle."""
        return (self.y0 + self.y1) / 2

    def x_of(self, position: int) -> float:
        """The x at which the character at `position` starts."""
        return self.x0 + (self.x1 - self.x0) * self.edges[position]

    def box_of(self, start: int, end: int) -> Box:
        """The upright box, in the stored page, around characters `start` to `end`."""
        ax, ay, bx, by, cx, cy, dx, dy = self.line.quad
        near, far = self.edges[start], self.edges[end]
        xs = [ax + (bx - ax) * near, ax + (bx - ax) * far, dx + (cx - dx) * near, dx + (cx - dx) * far]
        ys = [ay + (by - ay) * near, ay + (by - ay) * far, dy + (cy - dy) * near, dy + (cy - dy) * far]
        left, top = max(0, math.floor(min(xs))), max(0, math.floor(min(ys)))
        return left, top, math.ceil(max(xs)) - left, math.ceil(max(ys)) - top


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Some characters of one segment."""

    segment: Segment
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters as the OCR read them."""
        return self.segment.text[self.start : self.end]

    @property
    def x0(self) -> float:
        """Left edge, upright."""
        return self.segment.x_of(self.start)

    @property
    def x1(self) -> float:
        """Right edge, upright."""
        return self.segment.x_of(self.end)

    @property
    def box(self) -> Box:
        """The box in the stored page."""
        return self.segment.box_of(self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All segments of a document and the measure of its print."""

    segments: tuple[Segment, ...]
    unit: float
    """Median height of a line, pixels; distances are counted in it."""
    rows: tuple[tuple[Segment, ...], ...]
    """Segments that stand side by side, left to right; rows from top to bottom."""
    row_of: tuple[int, ...]
    """Row number of each segment."""

    @property
    def top(self) -> float:
        """The y of the first line."""
        return min((segment.y0 for segment in self.segments), default=0.0)

    @property
    def bottom(self) -> float:
        """The y of the last line's foot."""
        return max((segment.y1 for segment in self.segments), default=1.0)


def lone_segment(text: str) -> Segment:
    """A segment for a text without a page, to run the finders on it."""
    line = TextLine(text=text, quad=(0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0), confidence=1.0)
    return Segment(
        index=0, page=1, line=line, folded=fold(text), x0=0.0, y0=0.0, x1=1.0, y1=1.0, edges=_edges(text)
    )


def lay_out(reading: DocumentReading) -> Sheet:
    """Set the pages of `reading` upright, one below the other."""
    segments: list[Segment] = []
    offset = 0.0
    for page in reading.pages:
        placed = _upright(page, offset, len(segments))
        segments.extend(placed)
        offset = max((segment.y1 for segment in placed), default=offset) + 10_000.0
    unit = statistics.median([segment.height for segment in segments]) if segments else 1.0
    rows = _rows(segments)
    row_of = [0] * len(segments)
    for number, row in enumerate(rows):
        for segment in row:
            row_of[segment.index] = number
    return Sheet(segments=tuple(segments), unit=max(unit, 1.0), rows=rows, row_of=tuple(row_of))


def _upright(page: Page, offset: float, first: int) -> list[Segment]:
    lines = [line for line in page.lines if line.text.strip()]
    angle = _median_angle(lines)
    cos, sin = math.cos(angle), math.sin(angle)
    placed: list[tuple[TextLine, float, float, float, float]] = []
    for line in lines:
        corners = list(zip(line.quad[0::2], line.quad[1::2], strict=True))
        xs = [x * cos + y * sin for x, y in corners]
        ys = [y * cos - x * sin for x, y in corners]
        # The mean of the two ends keeps a slightly tilted line from looking taller than it is.
        top, foot = sorted(((ys[0] + ys[1]) / 2, (ys[2] + ys[3]) / 2))
        placed.append((line, min(xs), top, max(xs), foot))
    if not placed:
        return []
    left, top_most = min(item[1] for item in placed), min(item[2] for item in placed)
    return [
        Segment(
            index=first + index,
            page=page.page,
            line=line,
            folded=fold(line.text),
            x0=x0 - left,
            y0=y0 - top_most + offset,
            x1=x1 - left,
            y1=max(y1, y0 + 1.0) - top_most + offset,
            edges=_edges(line.text),
        )
        for index, (line, x0, y0, x1, y1) in enumerate(placed)
    ]


def _median_angle(lines: Sequence[TextLine]) -> float:
    """The direction most of the text runs in, radians; long lines know it best."""
    if not lines:
        return 0.0
    angles = [(line.angle_degrees, _length(line)) for line in lines]
    # Measure from the commonest quarter turn: the median of -179 and 179 must not be 0.
    quarters = [round(angle / 90) % 4 for angle, _ in angles]
    turn = max(
        range(4),
        key=lambda quarter: sum(
            length for (_, length), own in zip(angles, quarters, strict=True) if own == quarter
        ),
    )
    # A line's angle is known the better the longer it is.
    offsets = sorted(
        ((angle - 90 * turn + 180) % 360 - 180, length * length)
        for (angle, length), own in zip(angles, quarters, strict=True)
        if own == turn
    )
    half, reached = sum(weight for _, weight in offsets) / 2, 0.0
    for offset, weight in offsets:
        reached += weight
        if reached >= half:
            return math.radians(90 * turn + offset)
    return math.radians(90 * turn)


def _length(line: TextLine) -> float:
    return math.hypot(line.quad[2] - line.quad[0], line.quad[3] - line.quad[1])


def _edges(text: str) -> tuple[float, ...]:
    widths = [2.0 if is_wide(char) else 0.55 if char in _NARROW else 1.0 for char in text]
    whole = sum(widths) or 1.0
    edges, reached = [0.0], 0.0
    for width in widths:
        reached += width
        edges.append(reached / whole)
    return tuple(edges)


def _rows(segments: Sequence[Segment]) -> tuple[tuple[Segment, ...], ...]:
    rows: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda item: item.middle):
        home = next((row for row in rows[-4:] if _beside(row, segment)), None)
        if home is None:
            rows.append([segment])
        else:
            home.append(segment)
    return tuple(tuple(sorted(row, key=lambda item: item.x0)) for row in rows)


def _beside(row: Sequence[Segment], segment: Segment) -> bool:
    """True when `segment` continues the row: half of the smaller height is shared with its nearest neighbour."""
    nearest = min(row, key=lambda item: min(abs(item.x1 - segment.x0), abs(segment.x1 - item.x0)))
    return overlap(nearest.y0, nearest.y1, segment.y0, segment.y1) > 0.5 and all(
        min(item.x1, segment.x1) - max(item.x0, segment.x0) < 0.3 * min(item.x1 - item.x0, segment.x1 - segment.x0)
        for item in row
    )


def overlap(a0: float, a1: float, b0: float, b1: float) -> float:
    """Shared length of two ranges, as a share of the shorter one; negative when they are apart."""
    return (min(a1, b1) - max(a0, b0)) / max(min(a1 - a0, b1 - b0), 1e-6)
