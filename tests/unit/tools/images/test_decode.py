"""Pictures from outside: every kind of pixel comes out right, every kind of damage is a typed error."""

import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

from tools.images.decode import ImageLimits, decode_image, media_type
from tools.images.errors import ImageBroken, ImageEmpty, ImageError, ImageTooLarge, ImageUnknownFormat


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_claiming(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(9)))
        + chunk(b"IEND", b"")
    )


def corner(image: Image.Image, kind: str = "PNG", **options: object) -> list[int]:
    return decode_image(encoded(image, kind, **options))[0, 0].tolist()


def test_rgb_survives_and_is_writable_contiguous_bytes() -> None:
    pixels = decode_image(encoded(Image.new("RGB", (4, 3), (10, 20, 30))))
    assert pixels.shape == (3, 4, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags["C_CONTIGUOUS"]
    assert pixels[0, 0].tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("L", (3, 3), 77), [77, 77, 77]),
        (Image.new("1", (3, 3), 1), [255, 255, 255]),
        (Image.new("RGBA", (3, 3), (0, 0, 0, 0)), [255, 255, 255]),
        (Image.new("RGBA", (3, 3), (9, 8, 7, 255)), [9, 8, 7]),
        (Image.new("LA", (3, 3), (0, 0)), [255, 255, 255]),
        (Image.new("RGB", (3, 3), (200, 0, 0)).quantize(4), [200, 0, 0]),
        (Image.fromarray(np.full((3, 3), 0x8000, dtype=np.uint16)), [128, 128, 128]),
    ],
    ids=["grey", "bits", "transparent", "opaque", "grey-alpha", "palette", "16-bit"],
)
def test_every_kind_of_png_becomes_rgb_on_white(image: Image.Image, expected: list[int]) -> None:
    assert corner(image) == expected


def test_transparent_palette_colour_is_paper() -> None:
    image = Image.new("RGB", (3, 3), (5, 5, 5)).quantize(2)
    assert corner(image, transparency=0) == [255, 255, 255]


def test_cmyk_jpeg_becomes_rgb() -> None:
    red, green, blue = corner(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95)
    assert red > 220
    assert green < 40
    assert blue < 40


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(orientation: int) -> None:
    upright = np.zeros((16, 32, 3), dtype=np.uint8)
    upright[:8, :16] = 255
    # How a camera held so would have stored the upright picture: the inverse of what the tag asks for.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: np.rot90(upright, 2).transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = decode_image(encoded(Image.fromarray(np.ascontiguousarray(stored)), "PNG", exif=exif))
    assert np.array_equal(pixels, upright)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_nonsense_exif_is_ignored() -> None:
    data = encoded(Image.new("RGB", (8, 8), "white"), "JPEG", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff")
    assert decode_image(data).shape == (8, 8, 3)


def test_a_bomb_is_refused_before_anything_is_allocated() -> None:
    data = png_claiming(30_000, 30_000)
    tracemalloc.start()
    with pytest.raises(ImageTooLarge, match="30000 x 30000") as caught:
        decode_image(data)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert caught.value.code == "IMAGE_TOO_LARGE"


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(ImageTooLarge, match="at most 10 are allowed"):
        decode_image(encoded(Image.new("L", (9, 9))), ImageLimits(max_bytes=10))


def test_zero_bytes_and_foreign_formats() -> None:
    with pytest.raises(ImageEmpty):
        decode_image(b"")
    for data in (b"GIF89a" + bytes(20), b"hello", bytes(100), b"%PDF-1.7 a document"):
        with pytest.raises(ImageUnknownFormat):
            decode_image(data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_a_file_cut_off_anywhere_is_broken(kind: str, share: float) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    with pytest.raises(ImageBroken):
        decode_image(data[: int(len(data) * share)])


def test_damage_never_raises_anything_else() -> None:
    rng = np.random.default_rng(7)
    noise = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
    refused = 0
    for kind in ("PNG", "JPEG"):
        whole = encoded(Image.fromarray(noise), kind)
        for _ in range(150):
            data = bytearray(whole)
            for place in rng.integers(2, len(data), 4):
                data[place] = rng.integers(0, 256)
            try:
                decode_image(bytes(data), ImageLimits(max_pixels=100_000))
            except ImageError:
                refused += 1
    assert refused > 50


def test_the_name_of_a_file_is_never_asked() -> None:
    assert media_type(encoded(Image.new("L", (2, 2)), "JPEG")) == "image/jpeg"
    assert media_type(b"junk before\n%PDF-1.4") == "application/pdf"
