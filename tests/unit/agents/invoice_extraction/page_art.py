"""Readings drawn as text: a column is ten pixels, a row thirty; two spaces or more part two OCR lines."""

import math
import re
import unicodedata

from tools.document.reading import DocumentReading, Page, Quad, TextLine

COLUMN, ROW, HEIGHT = 10, 30, 20


def _cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1 for char in text)


def reading(*arts: str, confidence: float = 0.99, turn_degrees: float = 0.0) -> DocumentReading:
    """One page for each drawing; `turn_degrees` turns the pages clockwise about their corner."""
    pages = []
    for number, art in enumerate(arts, 1):
        lines = []
        for row, content in enumerate(art.strip("\n").split("\n")):
            for match in re.finditer(r"\S+(?: \S+)*", content):
                x = 100 + _cells(content[: match.start()]) * COLUMN
                width = _cells(match.group()) * COLUMN
                lines.append(
                    TextLine(
                        text=match.group(),
                        quad=_quad(x, 100 + row * ROW, width, turn_degrees),
                        confidence=confidence,
                    )
                )
        pages.append(Page(page=number, width=2600, height=3400, lines=tuple(lines), sharpness=500.0))
    return DocumentReading(name="art", sha256="0" * 64, media_type="image/png", pages=tuple(pages))


def _quad(x: float, y: float, width: float, turn_degrees: float) -> Quad:
    angle = math.radians(turn_degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    corners = ((x, y), (x + width, y), (x + width, y + HEIGHT), (x, y + HEIGHT))
    # Turned about a point far inside, so that the coordinates stay positive.
    values = [
        value
        for px, py in corners
        for value in (1300 + (px - 1300) * cos - (py - 1300) * sin, 1300 + (px - 1300) * sin + (py - 1300) * cos)
    ]
    return (values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7])
