"""Draws small pages of known text; the fonts come from packages, so a machine without fonts draws the same."""

import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

Word = tuple[int, int, str]
"""x, y and the text."""

LETTER: tuple[Word, ...] = (
    (60, 50, "Müller & Söhne GmbH"),
    (60, 110, "Rechnung Nr. 2026-0417"),
    (60, 150, "Gesamtbetrag"),
    (420, 150, "1.234,56 €"),
    (60, 190, "Échéance à réception"),
    (60, 230, "¿Número de factura? Mañana"),
    (60, 290, "IBAN DE89 3704 0044 0532 0130 00"),
)
CHINESE: tuple[Word, ...] = ((60, 60, "上海恒远贸易有限公司"), (60, 120, "价税合计"), (400, 120, "¥8,650.20"))


def font(size: int, *, chinese: bool = False) -> ImageFont.FreeTypeFont:
    package, file = (
        ("manimgx_fonts_cjk", "NotoSansCJK-VF.otf.ttc")
        if chinese
        else ("fontpkg_noto_sans", "files/NotoSans[wdth,wght].ttf")
    )
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return ImageFont.truetype(str(Path(spec.origin).parent / file), size)


def page(
    words: Sequence[Word] = LETTER,
    *,
    size: tuple[int, int] = (680, 420),
    text_size: int = 24,
    chinese: bool = False,
) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for x, y, text in words:
        draw.text((x, y), text, fill=(25, 25, 25), font=font(text_size, chinese=chinese))
    return image


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def pdf(*images: Image.Image, dpi: int = 150) -> bytes:
    buffer = io.BytesIO()
    images[0].save(buffer, "PDF", resolution=dpi, save_all=True, append_images=images[1:])
    return buffer.getvalue()
