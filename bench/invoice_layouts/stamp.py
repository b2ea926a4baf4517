"""Puts a rubber stamp with a date on a blank place of a page: a date that is not the invoice's."""

import datetime as dt
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from bench.invoice_layouts.invoice import Invoice
from bench.invoice_layouts.sheet import Colour, Sheet
from bench.invoice_layouts.typefaces import CJK, load

_INKS: tuple[Colour, ...] = ((34, 62, 150), (176, 30, 44), (60, 60, 66))
_WIDTH, _HEIGHT = 132.0, 52.0
_STEP = 8
_DARK = 245


def stamp(sheet: Sheet, inv: Invoice, rng: Random) -> bool:
    """Stamp the page where nothing is printed; returns False where there is no such place."""
    spot = _blank_place(sheet, rng)
    if spot is None:
        return False
    scale = sheet.scale
    picture = Image.new("L", (round(_WIDTH * scale), round(_HEIGHT * scale)), 0)
    pen = ImageDraw.Draw(picture)
    pen.rectangle(
        [2 * scale, 2 * scale, (_WIDTH - 2) * scale, (_HEIGHT - 2) * scale], outline=255, width=round(1.6 * scale)
    )
    if rng.random() < 0.7:
        first = inv.word("received_stamp")
        second = inv.notation.date(inv.date + dt.timedelta(days=rng.randrange(3, 12)))
    else:
        first, second = inv.word("paid_stamp"), inv.person
    for text, y in ((first, 22), (second, 41)):
        family = CJK if inv.language == "zh" else sheet.faces.body
        size = min(13.0, 150 / max(len(text), 1))
        font = load(family, round(size * scale, 1), bold=True)
        pen.text((_WIDTH / 2 * scale, y * scale), text, font=font, fill=255, anchor="ms")
    turned = picture.rotate(rng.uniform(-7, 7), resample=Image.Resampling.BICUBIC, expand=True)
    ink = Image.new("RGB", turned.size, rng.choice(_INKS))
    sheet.image.paste(ink, spot, turned.point(lambda value: int(value * 0.8)))
    return True


def _blank_place(sheet: Sheet, rng: Random) -> tuple[int, int] | None:
    """The left upper corner, in pixels, of a random place without ink that takes the turned stamp."""
    grey = np.asarray(sheet.image.convert("L").reduce(_STEP))
    dark = np.pad((grey < _DARK).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    width = int((_WIDTH + 16) * sheet.scale / _STEP) + 1
    height = int((_HEIGHT + 26) * sheet.scale / _STEP) + 1
    if dark.shape[0] <= height or dark.shape[1] <= width:
        return None
    inked = dark[height:, width:] - dark[:-height, width:] - dark[height:, :-width] + dark[:-height, :-width]
    margin = int(20 * sheet.scale / _STEP)
    rows, columns = np.nonzero(inked[margin:-margin, margin:-margin] == 0)
    if not len(rows):
        return None
    index = rng.randrange(len(rows))
    return int(columns[index] + margin) * _STEP, int(rows[index] + margin) * _STEP
