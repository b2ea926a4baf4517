"""The parts that invoices are put together from: reference blocks, addresses, totals, bank details, logos."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from bench.invoice_layouts.invoice import Invoice, Party
from bench.invoice_layouts.sheet import GREY, INK, PALE, WHITE, Colour, Content, Run, Sheet, runs_of

Pair = tuple[str, Content]
"""A label and what stands beside it."""

ACCENTS: tuple[Colour, ...] = (
    (20, 60, 110),
    (0, 98, 102),
    (140, 28, 36),
    (52, 84, 46),
    (70, 50, 120),
    (196, 84, 12),
    (40, 44, 52),
    (0, 82, 160),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalRow:
    """One row of the block that adds the invoice up."""

    label: Content
    value: Content
    strong: bool = False


def references(inv: Invoice, rng: Random, *, few: bool = False) -> list[Pair]:
    """Number, date and due date among the references that businesses print around them."""
    pairs: list[Pair] = [
        (inv.word("number"), Run(inv.number, "number")),
        (inv.word("date"), inv.day(inv.date, "date")),
    ]
    if rng.random() < 0.2:
        pairs.reverse()
    distractors: list[Pair] = [
        (inv.word("order"), inv.order),
        (inv.word("order_date"), inv.day(inv.order_date)),
        (inv.word("delivery_date"), inv.day(inv.delivery_date)),
        (inv.word("delivery_note"), inv.delivery_note),
        (inv.word("customer"), inv.customer),
        (inv.word("project"), inv.project),
        (inv.word("contact"), inv.person),
    ]
    chosen = rng.sample(distractors, rng.randint(1, 2) if few else rng.randint(2, 4))
    before = [pair for pair in chosen if rng.random() < 0.35]
    after = [pair for pair in chosen if pair not in before]
    return [*before, *pairs, due_pair(inv), *after]


def due_pair(inv: Invoice) -> Pair:
    """When to pay: the date where it is printed, the terms otherwise."""
    if inv.due:
        return inv.word("due"), inv.day(inv.due, "due_date")
    return inv.word("terms_label"), inv.short_terms


def pairs_in_columns(
    sheet: Sheet,
    x: float,
    y: float,
    pairs: Sequence[Pair],
    *,
    label_width: float,
    width: float,
    right: bool = False,
    size: float = 9,
    colon: bool = False,
    bold_labels: bool = False,
) -> float:
    """Labels in one column, values in another; returns the baseline below the last."""
    for label, value in pairs:
        text = label + (":" if colon else "")
        sheet.write(
            x, y, text, size=size, bold=bold_labels, colour=INK if bold_labels else GREY, limit=label_width - 4
        )
        edge = x + width if right else x + label_width
        sheet.write(edge, y, value, size=size, align="right" if right else "left", limit=width - label_width)
        y += size * 1.5
    return y


def pairs_in_cells(
    sheet: Sheet,
    x: float,
    y: float,
    pairs: Sequence[Pair],
    *,
    width: float,
    height: float = 30,
    fill: Colour | None = None,
    edge: Colour | None = PALE,
) -> float:
    """A row of cells, each with a small label above its value; returns the lower edge."""
    each = width / len(pairs)
    for index, (label, value) in enumerate(pairs):
        left = x + index * each
        sheet.box(left, y, each, height, edge=edge)
        if fill:
            sheet.box(left, y, each, height * 0.42, fill=fill)
        sheet.write(left + 4, y + height * 0.31, label, size=7, colour=WHITE if fill else GREY, limit=each - 8)
        sheet.write(left + 4, y + height * 0.8, value, size=9, limit=each - 8)
    return y + height


def pairs_stacked(
    sheet: Sheet,
    x: float,
    y: float,
    pairs: Sequence[Pair],
    *,
    width: float,
    colour: Colour = GREY,
    ink: Colour = INK,
    size: float = 9,
) -> float:
    """Each label above its value."""
    for label, value in pairs:
        sheet.write(x, y, label, size=size - 2, colour=colour, limit=width)
        sheet.write(x, y + size * 1.3, value, size=size, colour=ink, limit=width)
        y += size * 3.1
    return y


def address(
    sheet: Sheet,
    x: float,
    y: float,
    party: Party,
    *,
    width: float,
    size: float = 9,
    field: str | None = None,
    bold: bool = True,
    country: bool = True,
    colour: Colour = INK,
) -> float:
    """Name and address, a line each; returns the baseline below."""
    sheet.write(x, y, Run(party.name, field), size=size, bold=bold, limit=width, colour=colour)
    for line in party.address if country else party.address[:2]:
        y += size * 1.38
        sheet.write(x, y, line, size=size, limit=width, colour=colour)
    return y + size * 1.38


def total_rows(inv: Invoice, rng: Random) -> list[TotalRow]:
    """Subtotal, discount, shipping, taxes, grand total and what follows it, as this invoice has them."""
    rows: list[TotalRow] = []
    if inv.discount or inv.shipping:
        rows.append(TotalRow(label=inv.word("subtotal"), value=inv.money(inv.goods_total)))
    if inv.discount:
        rows.append(TotalRow(label=inv.word("discount"), value=[Run("- "), *inv.money(inv.discount)]))
    if inv.shipping:
        rows.append(TotalRow(label=inv.word("shipping"), value=inv.money(inv.shipping)))
    if inv.taxes or rows:
        rows.append(TotalRow(label=inv.word("net"), value=inv.money(inv.net)))
    rows.extend(tax_rows(inv, rng))
    rows.append(TotalRow(label=inv.total_label(), value=inv.money(inv.total, "total"), strong=True))
    if inv.deposit:
        rows.append(TotalRow(label=inv.word("deposit"), value=[Run("- "), *inv.money(inv.deposit)]))
        rows.append(TotalRow(label=inv.word("balance"), value=inv.money(inv.total - inv.deposit)))
    return rows


def tax_rows(inv: Invoice, rng: Random) -> list[TotalRow]:
    """The tax lines; with several rates their sum is printed now and then."""
    if not inv.taxes:
        if rng.random() < 0.75:
            return []
        return [TotalRow(label=inv.word("tax").format(rate="0"), value=inv.money(Decimal(0), "tax"))]
    if len(inv.taxes) == 1:
        line = inv.taxes[0]
        return [TotalRow(label=inv.tax_label(line), value=inv.money(line.amount, "tax"))]
    rows = [TotalRow(label=inv.tax_label(line), value=inv.money(line.amount, "tax")) for line in inv.taxes]
    if rng.random() < 0.5:
        rows.append(TotalRow(label=inv.word("tax_total"), value=inv.money(inv.tax, "tax")))
    return rows


def draw_totals(
    sheet: Sheet,
    x: float,
    y: float,
    rows: Sequence[TotalRow],
    *,
    width: float,
    style: str,
    accent: Colour,
    size: float = 9,
    colon: bool = False,
) -> float:
    """Print the totals, labels left and amounts right in `width`; returns the baseline below.

    Args:
        sheet: where to print.
        x: left edge.
        y: first baseline.
        rows: what to print.
        width: of label and amount together.
        style: of the grand total: ``rule`` above and below, ``bar`` filled, ``large`` type or ``grid``.
        accent: colour of the bar.
        size: type size.
        colon: whether labels end in a colon.
    """
    for row in rows:
        large = size * 1.25 if row.strong and style in {"large", "bar"} else size
        step = large * 1.75
        ink = INK
        if style == "grid":
            sheet.box(x, y - size * 1.2, width, step, edge=INK)
        if row.strong and style == "bar":
            sheet.box(x, y - large * 1.15, width, step, fill=accent)
            ink = WHITE
        if row.strong and style == "rule":
            sheet.rule(x, y - size * 1.25, x + width, y - size * 1.25)
            sheet.rule(x, y + size * 0.5, x + width, y + size * 0.5, thick=1.2)
        label = [*runs_of(row.label), Run(":")] if colon else row.label
        value_width = sheet.measure(row.value, size=large, bold=row.strong)
        sheet.write(x + 4, y, label, size=large, bold=row.strong, colour=ink, limit=width - value_width - 14)
        sheet.write(x + width - 4, y, row.value, size=large, bold=row.strong, colour=ink, align="right")
        y += step
    return y


def bank_lines(inv: Invoice, *, holder: bool = False) -> list[Content]:
    """The bank details, a line each."""
    account = inv.account
    lines: list[Content] = [f"{inv.word('bank_name')}: {account.bank}"]
    if holder:
        lines.insert(0, f"{inv.word('holder')}: {inv.seller.name}")
    if account.iban:
        lines.append([Run(f"{inv.word('iban')}: "), Run(account.iban_printed, "iban")])
    else:
        lines.append(f"{inv.word('account')}: {account.number}")
    lines.append([Run(f"{inv.word('bic')}: "), Run(account.bic, "bic")])
    return lines


def footer_columns(sheet: Sheet, inv: Invoice, *, y: float, left: float, right: float, size: float = 7) -> None:
    """The company's particulars at the foot of the page in three columns."""
    seller = inv.seller
    columns: list[list[Content]] = [
        [seller.name, seller.street, seller.city],
        [
            f"{inv.word('phone')} {seller.phone}",
            f"office@{seller.web}",
            f"{inv.word('vat_id')} {seller.vat}",
            *seller.legal,
        ],
        bank_lines(inv),
    ]
    step = (right - left) / 3
    sheet.rule(left, y - size * 1.8, right, y - size * 1.8, colour=PALE)
    for index, lines in enumerate(columns):
        for row, line in enumerate(lines[:4]):
            sheet.write(left + index * step, y + row * size * 1.4, line, size=size, colour=GREY, limit=step - 6)


def lines_down(
    sheet: Sheet,
    x: float,
    y: float,
    lines: Sequence[Content],
    *,
    width: float,
    size: float = 8,
    colour: Colour = INK,
) -> float:
    """Print lines one below the other."""
    for line in lines:
        sheet.write(x, y, line, size=size, colour=colour, limit=width)
        y += size * 1.45
    return y


def logo(sheet: Sheet, rng: Random, x: float, y: float, *, size: float, colour: Colour) -> None:
    """A plain geometric mark, `size` points wide, its top left corner at x, y."""
    kind = rng.randrange(4)
    if kind == 0:
        sheet.disc(x + size / 2, y + size / 2, size / 2, fill=colour)
        sheet.disc(x + size / 2, y + size / 2, size / 4, fill=WHITE)
    elif kind == 1:
        sheet.shape([(x, y + size), (x + size / 2, y), (x + size, y + size)], fill=colour)
    elif kind == 2:
        sheet.box(x, y, size, size, fill=colour, radius=size / 6)
        sheet.shape(
            [(x + size * 0.2, y + size * 0.8), (x + size * 0.5, y + size * 0.2), (x + size * 0.8, y + size * 0.8)],
            fill=WHITE,
        )
    else:
        for step in range(3):
            sheet.box(x + step * size / 3, y + step * size / 5, size / 4, size - step * size / 5, fill=colour)


def page_mark(inv: Invoice) -> str:
    """The page number of a one-page invoice."""
    return inv.word("page").format(n=1, m=1)


def currency_note(inv: Invoice) -> list[Run]:
    """A sentence that names the currency of all amounts."""
    before, _, after = inv.word("amounts_in").partition("{currency}")
    return [Run(before), Run(inv.notation.currency, "currency"), Run(after)]
