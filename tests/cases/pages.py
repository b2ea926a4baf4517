"""Small pages drawn at test time, and readings of pages as a device would send them."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from bench.invoice_layouts.typefaces import CJK, load
from tests.integration.server import PACKS

ROOT = Path(__file__).parents[2]
INVOICE = (
    "Harbour Tools Ltd",
    "INVOICE",
    "Invoice number: {number}",
    "Invoice date: 2026-03-17",
    "Due date: 2026-04-16",
    "Net amount: 1,000.00 EUR",
    "VAT 20%: 200.00 EUR",
    "Total due: 1,200.00 EUR",
)


def png_of_lines(lines: Sequence[str], *, size_px: int = 30, width: int = 900) -> bytes:
    """A page with these lines of text, one below the other; small, so that it is read in about a second."""
    step = size_px * 2
    page = Image.new("RGB", (width, step * (len(lines) + 1)), "white")
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        chinese = any(ord(character) > 0x2E80 for character in line)
        font = load(CJK if chinese else "lato", size_px, bold=False)
        pen.text((40, step * number + step // 2), line, font=font, fill="black")
    buffer = io.BytesIO()
    page.save(buffer, "PNG")
    return buffer.getvalue()


def small_invoice(number: str) -> bytes:
    """An invoice of eight lines with this number."""
    return png_of_lines([line.format(number=number) for line in INVOICE])


def reading_of_lines(lines: Sequence[str], *, sha256: str = "0" * 64) -> dict[str, Any]:
    """What a device would send of such a page: every line read well."""
    placed = [
        {
            "text": line,
            "quad": [
                40,
                60 * n + 30,
                40 + 15 * len(line),
                60 * n + 30,
                40 + 15 * len(line),
                60 * n + 62,
                40,
                60 * n + 62,
            ],
            "confidence": 0.99,
        }
        for n, line in enumerate(lines)
    ]
    page = {
        "page": 1,
        "width": 2400,
        "height": 60 * (len(lines) + 1),
        "sharpness": 500.0,
        "orientation_degrees": 0,
        "skew_degrees": 0.0,
        "lines": placed,
    }
    return {
        "name": "invoice.png",
        "sha256": sha256,
        "media_type": "image/png",
        "pages": [page],
        "findings": [],
        "crops": [],
    }


@contextmanager
def all_packs(folder: Path) -> Iterator[Path]:
    """A folder with the packs that ship, the pack `relay` of the server's tests, and the pack `hostile`."""
    folder.mkdir()
    for pack in (
        ROOT / "agents/packs/sales",
        ROOT / "agents/packs/invoice",
        PACKS / "relay",
        Path(__file__).parent / "packs/hostile",
    ):
        (folder / pack.name).symlink_to(pack)
    yield folder
