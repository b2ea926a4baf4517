"""PDF pages: drawn at the asked resolution, and every fault a typed error."""

import io

import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageDraw

from tools.images.decode import ImageLimits
from tools.images.errors import (
    ImageBroken,
    ImageTooLarge,
    ImageUnknownFormat,
    PdfEncrypted,
    PdfTooManyPages,
    PdfWithoutPages,
)
from tools.images.pdf import PdfFile


def pdf(pages: int = 1, size: tuple[int, int] = (400, 600)) -> bytes:
    images = []
    for _ in range(pages):
        image = Image.new("L", size, "white")
        ImageDraw.Draw(image).rectangle((100, 200, 199, 299), fill="black")
        images.append(image)
    buffer = io.BytesIO()
    images[0].save(buffer, "PDF", resolution=100, save_all=True, append_images=images[1:])
    return buffer.getvalue()


def written(objects: list[bytes], trailer: bytes) -> bytes:
    out, offsets = b"%PDF-1.4\n", []
    for index, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (index, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return out + b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        trailer,
        start,
    )


def test_a_page_is_drawn_at_the_resolution_of_the_limits() -> None:
    with PdfFile(pdf()) as file:
        pixels, dpi = file.render(1)
    assert file.page_count == 1
    assert dpi == 200
    assert pixels.shape == (1200, 800, 3)
    assert pixels.dtype == np.uint8
    assert pixels[450, 300].max() < 60
    assert pixels[100, 100].min() > 200


def test_a_part_is_drawn_larger_and_shows_the_same_place() -> None:
    with PdfFile(pdf()) as file:
        part, dpi = file.render(1, dpi=400, box=(200, 400, 200, 200))
        beside, _ = file.render(1, dpi=400, box=(420, 400, 100, 200))
    assert dpi == 400
    assert part.shape == (400, 400, 3)
    assert part[20:-20, 20:-20].max() < 60
    assert beside.min() > 200


def test_a_poster_is_drawn_smaller_instead_of_refused() -> None:
    with PdfFile(pdf(), ImageLimits(max_pixels=100_000)) as file:
        pixels, dpi = file.render(1)
        with pytest.raises(ImageTooLarge):
            file.render(1, dpi=dpi * 20, box=(0, 0, 200, 300))
    assert dpi < 200
    assert pixels.shape[0] * pixels.shape[1] <= 100_000


def test_a_pdf_without_a_page() -> None:
    empty = written([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"], b"")
    with pytest.raises(PdfWithoutPages):
        PdfFile(empty)
    saved = io.BytesIO()
    pypdfium2.PdfDocument.new().save(saved)
    with pytest.raises(PdfWithoutPages):
        PdfFile(saved.getvalue())


def test_a_pdf_with_a_password() -> None:
    lock = b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"ab" * 32, b"cd" * 32)
    locked = written(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>", lock],
        b"/Encrypt 3 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]",
    )
    with pytest.raises(PdfEncrypted):
        PdfFile(locked)


def test_broken_foreign_and_too_long() -> None:
    with pytest.raises(ImageBroken):
        PdfFile(b"%PDF-1.7\n" + bytes(200))
    with pytest.raises(ImageUnknownFormat):
        PdfFile(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(PdfTooManyPages, match="has 3 pages, at most 2"):
        PdfFile(pdf(3), ImageLimits(max_pages=2))
    with pytest.raises(ImageTooLarge):
        PdfFile(pdf(), ImageLimits(max_bytes=100))
    with PdfFile(pdf()) as file, pytest.raises(ImageBroken):
        file.render(2)
