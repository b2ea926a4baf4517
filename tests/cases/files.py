"""Files that nobody should send, each with the code that it must be refused by."""

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "agents" / "packs" / "invoice" / "samples"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, rows: bytes) -> bytes:
    """A black-and-white PNG that claims to be so large, with whatever rows are given."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def gigantic_png() -> bytes:
    """900 megapixels in about 100 kB, all of them there: a decoder that trusts it needs gigabytes."""
    side = 30_000
    return png_of(side, side, bytes(1 + side // 8) * side)


def pdf_without_pages() -> bytes:
    objects = (b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>")
    data, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj" % number + content + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    tail = b"trailer<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(data)
    return data + b"xref\n0 3\n0000000000 65535 f \n" + table + tail


def bad_files() -> Mapping[str, tuple[bytes, str]]:
    """Name of each bad file, its bytes and the code of the refusal."""
    png, jpeg = (SAMPLES / "clean.png").read_bytes(), (SAMPLES / "faulty.jpg").read_bytes()
    pdf = (SAMPLES / "two_pages.pdf").read_bytes()
    return {
        "cut.png": (png[: len(png) // 2], "IMAGE_BROKEN"),
        "head.png": (png[:20], "IMAGE_BROKEN"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "IMAGE_BROKEN"),
        "cut.pdf": (pdf[:200], "IMAGE_BROKEN"),
        "gigantic.png": (gigantic_png(), "IMAGE_TOO_LARGE"),
        "nothing-wide.png": (png_of(0, 10, b""), "IMAGE_BROKEN"),
        "no-page.pdf": (pdf_without_pages(), "PDF_WITHOUT_PAGES"),
        "prose.png": (b"This is not a picture at all.", "IMAGE_UNKNOWN_FORMAT"),
    }
