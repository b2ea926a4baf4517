"""Layouts that end customers get: the utility bill, the till receipt, the Swiss slip, the gridded factura."""

from random import Random

from bench.invoice_layouts.blocks import (
    Pair,
    TotalRow,
    address,
    bank_lines,
    currency_note,
    draw_totals,
    due_pair,
    footer_columns,
    lines_down,
    logo,
    page_mark,
    pairs_in_cells,
    pairs_in_columns,
    references,
    total_rows,
)
from bench.invoice_layouts.invoice import Invoice
from bench.invoice_layouts.look import Look
from bench.invoice_layouts.sheet import GREY, INK, PALE, WHITE, Run, Sheet
from bench.invoice_layouts.tables import columns_of, draw_table

_SLIP = {
    "de": ("Empfangsschein", "Zahlteil", "Konto / Zahlbar an", "Zahlbar durch", "Währung", "Betrag"),
    "fr": ("Récépissé", "Section paiement", "Compte / Payable à", "Payable par", "Monnaie", "Montant"),
}


def utility_bill(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The utility's bill: an account summary with the prior balance, a large box to pay from, a slip to detach."""
    left, right = 48.0, sheet.width - 48
    logo(sheet, rng, left, 36, size=40, colour=look.accent)
    sheet.write(
        left + 52, 62, Run(inv.seller.name, "supplier"), size=14, bold=True, colour=look.accent, face="heading"
    )
    sheet.write(left + 52, 76, ", ".join(inv.seller.address[:2]), size=7.5, colour=GREY)
    address(sheet, left, 130, inv.buyer, width=230, bold=False, size=10)
    pairs: list[Pair] = [
        (inv.word("customer"), inv.customer),
        (inv.word("number"), Run(inv.number, "number")),
        (inv.word("date"), inv.day(inv.date, "date")),
        (inv.word("period"), [inv.day(inv.order_date), Run(" - "), inv.day(inv.delivery_date)]),
    ]
    pairs_in_columns(sheet, 320, 124, pairs, label_width=104, width=right - 320, size=8.5)
    summary = []
    if inv.prior:
        summary.append(TotalRow(label=inv.word("prior"), value=inv.money(inv.prior)))
        summary.append(TotalRow(label=inv.word("received"), value=[Run("- "), *inv.money(inv.prior)]))
    sheet.box(left, 208, right - left, 74, fill=(236, 241, 246), radius=5)
    if inv.due:
        sheet.write(left + 14, 230, inv.word("due"), size=9, colour=GREY)
        sheet.write(left + 14, 254, inv.day(inv.due, "due_date"), size=16, bold=True, face="heading")
    label = "total_explicit" if inv.deposit or inv.prior else "total"
    head = [Run(inv.word(label))]
    if inv.notation.unmarked:
        head += [Run(" "), Run(inv.notation.currency, "currency")]
    sheet.write(right - 14, 230, head, size=9, colour=GREY, align="right")
    sheet.write(right - 14, 256, inv.money(inv.total, "total"), size=19, bold=True, align="right", face="heading")
    y = 306.0
    if summary:
        y = draw_totals(sheet, left, y, summary, width=right - left, style="plain", accent=look.accent) + 8
    sheet.write(left, y, inv.word("charges"), size=10.5, bold=True, colour=look.accent)
    columns = columns_of(
        inv, ("description", "quantity", "unit_price", "amount"), right - left, marked=look.marked
    )
    style = look.table_of("rules", "zebra", "plain")
    y = draw_table(sheet, inv, left, y + 8, columns, style=style, accent=look.accent)
    rows = total_rows(inv, rng)
    y = draw_totals(sheet, left + 200, y + 18, rows, width=right - left - 200, style="rule", accent=look.accent)
    sheet.paragraph(left, y + 16, inv.word("thanks"), width=right - left, size=8, colour=GREY)
    cut = sheet.height - 150
    for step in range(int((right - left) // 8)):
        sheet.rule(left + step * 8, cut, left + step * 8 + 4, cut, colour=GREY)
    sheet.write(sheet.width / 2, cut + 14, inv.word("stub"), size=7, colour=GREY, align="center")
    lines_down(sheet, left, cut + 36, bank_lines(inv, holder=True), width=270)
    sheet.write(left, cut + 100, f"{inv.word('reference')}: {inv.customer}/{inv.number}", size=8)
    sheet.write(right, cut + 60, inv.money(inv.total, "total"), size=12, bold=True, align="right")


def till_receipt(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The narrow receipt of a till, in typewriter type, prices with tax."""
    left, right, middle = 14.0, sheet.width - 14, sheet.width / 2
    sheet.write(
        middle,
        34,
        Run(inv.seller.name, "supplier"),
        size=11,
        bold=True,
        face="mono",
        align="center",
        limit=right - left,
    )
    y = 48.0
    for line in (
        *inv.seller.address[:2],
        f"{inv.word('phone')} {inv.seller.phone}",
        f"{inv.word('vat_id')} {inv.seller.vat}",
    ):
        sheet.write(middle, y, line, size=7.5, face="mono", align="center", limit=right - left)
        y += 11
    sheet.write(middle, y + 10, inv.word("receipt_title"), size=10, bold=True, face="mono", align="center")
    y += 28
    sheet.write(left, y, [Run(f"{inv.word('receipt_no')}: "), Run(inv.number, "number")], size=8, face="mono")
    time = f"{rng.randrange(8, 20):02}:{rng.randrange(60):02}"
    stamp = [inv.day(inv.date, "date"), Run(f"  {time}")]
    if look.chance("label", 0.6):
        stamp.insert(0, Run(f"{inv.word('date')}: "))
    sheet.write(left, y + 12, stamp, size=8, face="mono", limit=right - left)
    sheet.write(left, y + 24, f"{inv.word('served')}: {rng.randrange(1, 9)}", size=8, face="mono")
    y = _dashes(sheet, left, right, y + 34)
    for item in inv.items:
        price = Run(inv.notation.number(item.amount), "lines")
        amount = sheet.write(right, y, price, size=8.5, face="mono", align="right")
        sheet.write(left, y, item.description, size=8.5, face="mono", limit=right - left - amount - 6)
        if item.quantity > 1:
            y += 11
            each = f"  {inv.quantity_text(item)} x {inv.notation.number(item.price)}"
            sheet.write(left, y, each, size=8, face="mono", colour=GREY)
        y += 13
    y = _dashes(sheet, left, right, y - 4)
    width = sheet.measure(inv.money(inv.total), size=12, bold=True, face="mono")
    sheet.write(left, y + 4, inv.total_label(), size=12, bold=True, face="mono", limit=right - left - width - 8)
    sheet.write(right, y + 4, inv.money(inv.total, "total"), size=12, bold=True, face="mono", align="right")
    y += 22
    card = inv.word("card").format(last4=rng.randrange(1000, 10000))
    sheet.write(left, y, card, size=8, face="mono", limit=right - left - 70)
    sheet.write(right, y, inv.notation.number(inv.total), size=8, face="mono", align="right")
    y = _dashes(sheet, left, right, y + 10)
    for levy in inv.taxes:
        sheet.write(left, y, inv.tax_label(levy), size=8, face="mono", limit=100)
        sheet.write(right, y, inv.money(levy.amount, "tax"), size=8, face="mono", align="right")
        y += 12
    sheet.write(left, y, inv.word("net"), size=8, face="mono", limit=100)
    sheet.write(right, y, inv.money(inv.net), size=8, face="mono", align="right")
    y += 20
    if inv.notation.unmarked:
        sheet.write(middle, y, currency_note(inv), size=7.5, face="mono", align="center", limit=right - left)
        y += 14
    sheet.write(middle, y, inv.word("thanks"), size=7.5, face="mono", align="center", limit=right - left)
    sheet.cut(y + 30)


def payment_slip(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The Swiss invoice: a letter above, receipt and payment part with a square code below."""
    left, right = 60.0, sheet.width - 50
    sheet.write(left, 60, Run(inv.seller.name, "supplier"), size=14, bold=True, face="heading", colour=look.accent)
    lines_down(sheet, left, 74, [*inv.seller.address[:2], inv.seller.vat], width=220)
    address(sheet, 350, 112, inv.buyer, width=right - 350, bold=False, country=False)
    sheet.write(left, 182, inv.word("title"), size=15, bold=True, face="heading")
    y = pairs_in_columns(
        sheet, left, 204, references(inv, rng, few=True), label_width=120, width=300, colon=look.colon
    )
    columns = columns_of(
        inv, ("description", "quantity", "unit", "unit_price", "amount"), right - left, marked=False
    )
    style = look.table_of("rules", "plain", "band")
    y = draw_table(sheet, inv, left, y + 10, columns, style=style, accent=look.accent)
    y = draw_totals(sheet, right - 250, y + 16, total_rows(inv, rng), width=250, style="rule", accent=look.accent)
    sheet.write(left, y + 10, inv.word("thanks"), size=8.5)
    top, split = sheet.height - 298, 176.0
    sheet.rule(0, top, sheet.width, top, thick=0.5)
    sheet.rule(split, top, split, sheet.height, thick=0.5)
    slip = _SLIP[inv.language]
    _slip_part(sheet, inv, 16, top, slip, title=slip[0], amount_y=top + 212, payee_x=16, width=150)
    _slip_part(
        sheet, inv, split + 14, top, slip, title=slip[1], amount_y=top + 212, payee_x=split + 164, width=220
    )
    _square_code(sheet, rng, split + 14, top + 44, 130)


def gridded_factura(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The Latin form: two framed addresses, a row of cells, a strip of totals along the foot of the table."""
    left, right = 36.0, sheet.width - 36
    half = (right - left) / 2
    sheet.box(left, 34, half - 6, 88, edge=INK, radius=4)
    address(sheet, left + 8, 50, inv.seller, width=half - 22, field="supplier", country=False)
    lines_down(
        sheet,
        left + 8,
        92,
        [f"{inv.word('vat_id')}: {inv.seller.vat}", f"{inv.word('phone')} {inv.seller.phone}"],
        width=half - 22,
    )
    sheet.write(
        right, 56, inv.word("title").upper(), size=20, bold=True, align="right", face="heading", colour=look.accent
    )
    sheet.box(left + half, 68, half, 76, edge=INK, radius=4)
    sheet.write(left + half + 8, 79, inv.word("bill_to"), size=7, colour=GREY)
    address(sheet, left + half + 8, 94, inv.buyer, width=half - 16, country=False)
    sheet.write(left + half + 8, 136, f"{inv.word('buyer_vat')}: {inv.buyer.vat}", size=8, limit=half - 16)
    pairs: list[Pair] = [
        (inv.word("number"), Run(inv.number, "number")),
        (inv.word("date"), inv.day(inv.date, "date")),
        (inv.word("customer"), inv.customer),
        due_pair(inv),
        (inv.word("order"), inv.order),
    ]
    y = pairs_in_cells(sheet, left, 156, pairs, width=right - left, height=34, edge=INK)
    keys = ("article", "description", "quantity", "unit_price", "rate", "amount")
    columns = columns_of(inv, keys if inv.taxes else keys[:4] + keys[5:], right - left, marked=False)
    y = draw_table(
        sheet,
        inv,
        left,
        y + 10,
        columns,
        style="grid",
        accent=look.accent,
        size=8.5,
        least_rows=rng.randint(8, 16),
    )
    strip: list[Pair] = []
    if inv.discount:
        strip.append((inv.word("discount"), [Run("- "), *inv.money(inv.discount)]))
    if inv.shipping:
        strip.append((inv.word("shipping"), inv.money(inv.shipping)))
    strip.append((inv.word("net"), inv.money(inv.net)))
    strip.extend((inv.tax_label(line), inv.money(line.amount, "tax")) for line in inv.taxes)
    total_label = "".join(run.text for run in inv.total_label())
    strip.append((total_label, inv.money(inv.total, "total")))
    y = pairs_in_cells(sheet, left, y + 10, strip, width=right - left, height=36, edge=INK)
    if inv.deposit:
        rows = [
            TotalRow(label=inv.word("deposit"), value=inv.money(inv.deposit)),
            TotalRow(label=inv.word("balance"), value=inv.money(inv.total - inv.deposit)),
        ]
        y = draw_totals(sheet, left + half, y + 18, rows, width=half, style="plain", accent=INK)
    sheet.write(left, y + 16, currency_note(inv), size=8)
    lines_down(sheet, left, y + 34, bank_lines(inv), width=320, size=8.5)
    if look.chance("foot", 0.4):
        footer_columns(sheet, inv, y=sheet.height - 50, left=left, right=right)
    else:
        sheet.write(
            left, sheet.height - 30, " · ".join((inv.seller.name, *inv.seller.legal)), size=6.5, colour=GREY
        )
    sheet.write(right, sheet.height - 30, page_mark(inv), size=6.5, colour=GREY, align="right")


def _dashes(sheet: Sheet, left: float, right: float, y: float) -> float:
    count = int((right - left) / sheet.measure("-", size=8, face="mono"))
    sheet.write(left, y, "-" * count, size=8, face="mono")
    return y + 14


def _slip_part(
    sheet: Sheet,
    inv: Invoice,
    x: float,
    top: float,
    slip: tuple[str, ...],
    *,
    title: str,
    amount_y: float,
    payee_x: float,
    width: float,
) -> None:
    sheet.write(x, top + 24, title, size=11, bold=True)
    y = top + (44 if payee_x == x else 24)
    sheet.write(payee_x, y, slip[2], size=6.5, bold=True)
    y = lines_down(
        sheet,
        payee_x,
        y + 11,
        [Run(inv.account.iban_printed, "iban"), inv.seller.name, inv.seller.city],
        width=width,
    )
    sheet.write(payee_x, y + 6, slip[3], size=6.5, bold=True)
    lines_down(sheet, payee_x, y + 17, [inv.buyer.name, inv.buyer.street, inv.buyer.city], width=width)
    sheet.write(x, amount_y, slip[4], size=6.5, bold=True)
    sheet.write(x, amount_y + 13, Run(inv.notation.currency, "currency"), size=9)
    sheet.write(x + 50, amount_y, slip[5], size=6.5, bold=True)
    payable = inv.total - inv.deposit
    text = f"{payable:,.2f}".replace(",", " ")
    sheet.write(x + 50, amount_y + 13, Run(text, None if inv.deposit else "total"), size=9)


def _square_code(sheet: Sheet, rng: Random, x: float, y: float, size: float) -> None:
    cells = 37
    step = size / cells
    for row in range(cells):
        for column in range(cells):
            if rng.random() < 0.48:
                sheet.box(x + column * step, y + row * step, step, step, fill=INK)
    for corner_x, corner_y in ((0, 0), (cells - 7, 0), (0, cells - 7)):
        sheet.box(x + corner_x * step, y + corner_y * step, 7 * step, 7 * step, fill=INK)
        sheet.box(x + (corner_x + 1) * step, y + (corner_y + 1) * step, 5 * step, 5 * step, fill=WHITE)
        sheet.box(x + (corner_x + 2) * step, y + (corner_y + 2) * step, 3 * step, 3 * step, fill=INK)
    sheet.box(x + size * 0.43, y + size * 0.43, size * 0.14, size * 0.14, fill=INK, edge=PALE)
