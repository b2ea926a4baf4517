"""Blocks with number, dates and the like, one function for each way to set labels and values."""

import random
from collections.abc import Callable

from tests.invoices_dev.canvas import WIDTH, Canvas
from tests.invoices_dev.content import Invoice

Pairs = list[tuple[str, str]]


def meta_pairs(rng: random.Random, invoice: Invoice) -> list[tuple[str, str]]:
    label = invoice.label
    pairs = [(label["number"], invoice.number), (label["date"], invoice.dates["date"])]
    extra = []
    if rng.random() < 0.75:
        extra.append((label["due"], invoice.dates["due"]))
    else:
        invoice.truth["due_date"] = ""
    for key, value in (
        ("order", invoice.ids["order"]),
        ("customer", invoice.ids["customer"]),
        ("delivery", invoice.dates["delivery"]),
        ("orderdate", invoice.dates["orderdate"]),
        ("note", invoice.ids["note"]),
        ("terms", invoice.terms),
    ):
        if rng.random() < 0.35:
            extra.append((label[key], value))
    if invoice.currency_mark:
        extra.append((label["currency"], invoice.currency_mark))
    rng.shuffle(extra)
    if rng.random() < 0.3:
        pairs.reverse()
    pairs = pairs + extra
    if rng.random() < 0.3:
        rng.shuffle(pairs)
    return pairs


def meta(canvas: Canvas, rng: random.Random, invoice: Invoice, style: str, y: int) -> int:
    colons = ["：", "：", ":", ""] if invoice.lang == "zh" else [":", ":", "", " :"]
    return _BLOCKS[style](canvas, rng, invoice, meta_pairs(rng, invoice), rng.choice(colons), y)


def _inline(x: int, gap: str = " ") -> Callable[..., int]:
    def block(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
        for name, value in pairs:
            y = canvas.text(x, y, f"{name}{colon or ':'}{gap}{value}")
        return y + 20

    return block


def _columns(x: int, span: int, *, may_align_right: bool = False) -> Callable[..., int]:
    def block(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
        bold, right = rng.random() < 0.4, may_align_right and rng.random() < 0.5
        for name, value in pairs:
            canvas.text(x, y, name + colon, bold=bold)
            y = (
                canvas.text(x + span, y, value, align="right")
                if right
                else canvas.text(x + span * 6 // 10, y, value)
            )
        return y + 20

    return block


def _rows(look: str) -> Callable[..., int]:
    def block(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
        per_row = 4 if max(canvas.width(text) for pair in pairs for text in pair) < 260 else 3
        bold = rng.random() < 0.4
        for start in range(0, len(pairs), per_row):
            part = pairs[start : start + per_row]
            step = 1080 // (per_row if look == "cards" else len(part))
            if look == "shaded":
                canvas.box(80, y - 6, WIDTH - 80, y + canvas.leading, fill="#e8e8e8")
            for i, (name, value) in enumerate(part):
                x = 90 + i * step
                canvas.text(x, y, name, bold=bold, scale=0.9)
                canvas.text(x, y + int(canvas.leading * 1.1) + 4, value, bold=look == "cards")
                if look == "cards":
                    canvas.box(x - 10, y - 8, x + step - 24, y + canvas.leading * 2 + 12)
            y += canvas.leading * 2 + 30
        return y + 10

    return block


def _above(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
    top, lowest = y, y
    half = (len(pairs) + 1) // 2
    for column, part in enumerate((pairs[:half], pairs[half:])):
        y = top
        for name, value in part:
            y = canvas.text(80 + column * 560, y, name, scale=0.8, ink="#555")
            y = canvas.text(80 + column * 560, y - 3, value) + 8
        lowest = max(lowest, y)
    return lowest + 10


def _dense(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
    line = ""
    for name, value in pairs:
        part = f"{name}{colon or ':'} {value}"
        if line and canvas.width(line + "   " + part) > 1060:
            y = canvas.text(80, y, line)
            line = part
        else:
            line = f"{line}   {part}" if line else part
    return canvas.text(80, y, line) + 20


def _sentence(canvas: Canvas, rng: random.Random, invoice: Invoice, pairs: Pairs, colon: str, y: int) -> int:
    named = dict(pairs)
    number, date = invoice.label["number"], invoice.label["date"]
    y = canvas.text(80, y, f"{number} {named.pop(number)}", scale=1.2, bold=True)
    spoken = date.lower() if invoice.lang == "en" else date
    y = canvas.text(80, y, f"{invoice.supplier_address[-1]}, {spoken} {named.pop(date)}")
    for name, value in named.items():
        y = canvas.text(80, y, f"{name}{colon or ':'} {value}", scale=0.9)
    return y + 20


_BLOCKS: dict[str, Callable[..., int]] = {
    "inline": _inline(700),
    "inline_left": _inline(80),
    "merged": _inline(80, gap=""),
    "columns": _columns(660, 500, may_align_right=True),
    "columns_left": _columns(80, 360),
    "wide_columns": _columns(80, 820),
    "header_row": _rows("shaded"),
    "band": _rows("plain"),
    "cards": _rows("cards"),
    "label_above": _above,
    "dense": _dense,
    "sentence": _sentence,
}
