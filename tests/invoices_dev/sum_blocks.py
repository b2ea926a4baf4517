"""Blocks with the sums: net, tax, total, one function for each way to set them."""

import random

from tests.invoices_dev.canvas import WIDTH, Canvas
from tests.invoices_dev.content import Invoice

_PLACES = {
    "right_columns": (760, WIDTH - 90),
    "boxed": (740, WIDTH - 100),
    "left_columns": (90, 620),
    "in_table": (90, WIDTH - 90),
    "receipt": (80, WIDTH - 80),
}


def totals(canvas: Canvas, rng: random.Random, invoice: Invoice, style: str, y: int) -> int:
    colon = rng.choice(["：" if invoice.lang == "zh" else ":", ""])
    if style == "totals_row":
        return _row(canvas, invoice, y)
    if style == "cards":
        return _card(canvas, invoice, colon, y)
    if style == "tax_table" and len(invoice.totals) == 3 and invoice.truth["tax"].strip("0.-"):
        return _tax_table(canvas, invoice, y)
    if style in {"inline_left", "inline_right"}:
        return _inline(canvas, rng, invoice, style, colon, y)
    return _columns(canvas, rng, invoice, style, colon, y)


def _row(canvas: Canvas, invoice: Invoice, y: int) -> int:
    step = 1080 // len(invoice.totals)
    for i, (name, value) in enumerate(invoice.totals):
        canvas.text(90 + i * step, y, name, scale=0.85, bold=True)
        canvas.text(90 + i * step, y + canvas.leading + 4, value, bold=i == len(invoice.totals) - 1)
    return y + canvas.leading * 2 + 24


def _card(canvas: Canvas, invoice: Invoice, colon: str, y: int) -> int:
    name, value = next(pair for pair in invoice.totals if pair[0] == invoice.label["total"])
    for other in (pair for pair in invoice.totals if pair[0] != name):
        canvas.text(800, y, other[0] + colon)
        y = canvas.text(WIDTH - 90, y, other[1], align="right")
    canvas.box(780, y, WIDTH - 80, y + canvas.leading * 3)
    canvas.text(800, y + 8, name, scale=0.9)
    canvas.text(800, y + 8 + canvas.leading, value, scale=1.4, bold=True)
    return y + canvas.leading * 3 + 24


def _tax_table(canvas: Canvas, invoice: Invoice, y: int) -> int:
    heads = [invoice.label["net"], invoice.label["tax"], invoice.label["total"]]
    for i, (name, (_, value)) in enumerate(zip(heads, invoice.totals, strict=True)):
        canvas.text(560 + i * 300, y, name, align="right", scale=0.9)
        canvas.text(560 + i * 300, y + canvas.leading, value, align="right", bold=i == 2)
    return y + canvas.leading * 2 + 24


def _inline(canvas: Canvas, rng: random.Random, invoice: Invoice, style: str, colon: str, y: int) -> int:
    x, align = (80, "left") if style == "inline_left" else (WIDTH - 90, "right")
    for name, value in invoice.totals:
        bold = name == invoice.label["total"] and rng.random() < 0.8
        y = canvas.text(x, y, f"{name}{colon or ':'} {value}", bold=bold, align=align)
    return y + 20


def _columns(canvas: Canvas, rng: random.Random, invoice: Invoice, style: str, colon: str, y: int) -> int:
    x_label, x_value = _PLACES.get(style, (700, WIDTH - 90))
    label_right = style == "right_columns" and rng.random() < 0.3
    top = y - 8
    for name, value in invoice.totals:
        last = name == invoice.label["total"]
        scale = 1.25 if last and rng.random() < 0.4 else 1.0
        bold = last and rng.random() < 0.8
        x, align = (1000 if scale == 1.0 else 960, "right") if label_right else (x_label, "left")
        canvas.text(x, y, name + colon, bold=bold, scale=scale, align=align)
        y = canvas.text(x_value, y, value, align="right", bold=bold, scale=scale) + 4
        if style in {"in_table", "boxed"}:
            canvas.rule(x_label - 10, y - 4, WIDTH - 80, y - 4)
    if style == "boxed":
        canvas.box(x_label - 10, top, WIDTH - 80, y)
    return y + 20
