"""Layouts of exporters, forwarders and large companies: ruled forms, charge sheets, dense ERP print-outs."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from bench.invoice_layouts.blocks import (
    Pair,
    address,
    bank_lines,
    currency_note,
    draw_totals,
    due_pair,
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
from bench.invoice_layouts.sheet import GREY, INK, WHITE, Content, Run, Sheet, runs_of
from bench.invoice_layouts.tables import columns_of, draw_table, hs_note

_VESSELS = ("MV Northern Heron 114E", "CAPE ALTAIR V.027W", "Ever Lunar 0382-011", "MSK Bothnia 2318S")
_PORTS = ("Ningbo", "Rotterdam", "Hamburg", "Valencia", "Busan", "Felixstowe", "Le Havre", "Singapore")


def export_form(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The aligned export form: ruled boxes with small captions in their corners."""
    left, right, top = 36.0, sheet.width - 36, 58.0
    width = right - left
    half = width / 2
    sheet.write(
        sheet.width / 2, 44, inv.word("commercial_title"), size=15, bold=True, align="center", face="heading"
    )
    seller, buyer = inv.seller, inv.buyer
    _cell(
        sheet,
        left,
        top,
        half,
        84,
        inv.word("from"),
        [Run(seller.name, "supplier"), *seller.address, f"{inv.word('vat_id')} {seller.vat}"],
    )
    _cell(sheet, left + half, top, half / 2, 42, inv.word("number"), [Run(inv.number, "number")])
    _cell(sheet, left + half * 1.5, top, half / 2, 42, inv.word("date"), [inv.day(inv.date, "date")])
    _cell(sheet, left + half, top + 42, half / 2, 42, inv.word("order"), [inv.order])
    _cell(sheet, left + half * 1.5, top + 42, half / 2, 42, inv.word("order_date"), [inv.day(inv.order_date)])
    _cell(sheet, left, top + 84, half, 78, inv.word("ship_to"), [buyer.name, *buyer.address])
    _cell(sheet, left + half, top + 84, half, 39, inv.word("origin"), [inv.origin])
    _cell(sheet, left + half, top + 123, half, 39, inv.word("incoterm"), _incoterm(inv, look))
    label, value = due_pair(inv)
    _cell(sheet, left, top + 162, half, 38, label, [value])
    _cell(sheet, left + half, top + 162, half / 2, 38, inv.word("weight"), [inv.weight])
    _cell(
        sheet, left + half * 1.5, top + 162, half / 2, 38, inv.word("delivery_date"), [inv.day(inv.delivery_date)]
    )
    keys = ("pos", "description", "hs", "origin", "quantity", "unit", "unit_price", "amount")
    columns = columns_of(inv, keys, width, marked=look.marked)
    y = draw_table(
        sheet, inv, left, top + 200, columns, style="grid", accent=INK, size=8, least_rows=rng.randint(6, 11)
    )
    rows = total_rows(inv, rng)
    y = draw_totals(
        sheet, left + half, y + 13, rows, width=half, style=look.totals_of("grid", "rule"), accent=look.accent
    )
    y += 12
    sheet.write(left, y, currency_note(inv), size=8)
    y = lines_down(sheet, left, y + 18, bank_lines(inv, holder=True), width=half)
    y = sheet.paragraph(left, y + 10, inv.word("declaration"), width=half + 60, size=8)
    sheet.rule(right - 170, y + 34, right, y + 34)
    sheet.write(right - 170, y + 44, f"{seller.name}", size=7.5, colour=GREY, limit=170)
    sheet.write(right, sheet.height - 22, page_mark(inv), size=7, align="right")


def forwarder(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The forwarder's invoice: a grid of shipment details, then charges with codes."""
    left, right = 38.0, sheet.width - 38
    logo(sheet, rng, left, 30, size=34, colour=look.accent)
    sheet.write(left + 44, 48, Run(inv.seller.name, "supplier"), size=13, bold=True, face="heading", limit=280)
    sheet.write(left + 44, 61, ", ".join(inv.seller.address), size=7.5, colour=GREY, limit=300)
    sheet.write(
        right, 50, inv.word("title").upper(), size=17, bold=True, align="right", colour=look.accent, face="heading"
    )
    sheet.rule(left, 74, right, 74, thick=1.4, colour=look.accent)
    sheet.write(left, 92, inv.word("bill_to"), size=7.5, colour=GREY)
    address(sheet, left, 106, inv.buyer, width=250)
    pairs = references(inv, rng)
    y = pairs_in_columns(sheet, 330, 92, pairs, label_width=100, width=right - 330, colon=look.colon, size=8.5)
    y = max(y, 162) + 8
    start, end = rng.sample(_PORTS, 2)
    container = f"{rng.choice(('TGHU', 'MSKU', 'CAIU'))} {rng.randrange(1000000, 9999999)}"
    bill = f"{rng.choice(('HLCU', 'OOLU', 'NGB'))}{rng.randrange(10**8, 10**9)}"
    for row in _shipment_rows(inv, start, end, container, bill, rng):
        y = pairs_in_cells(sheet, left, y, row, width=right - left, height=28, edge=(150, 154, 160))
    columns = columns_of(
        inv, ("article", "description", "quantity", "unit_price", "amount"), right - left, marked=look.marked
    )
    style = look.table_of("band", "rules", "grid")
    y = draw_table(sheet, inv, left, y + 14, columns, style=style, accent=look.accent)
    rows = total_rows(inv, rng)
    y = draw_totals(
        sheet, right - 240, y + 18, rows, width=240, style=look.totals, accent=look.accent, colon=look.colon
    )
    if inv.notation.unmarked or look.chance("note", 0.3):
        sheet.write(left, y + 4, currency_note(inv), size=8)
    sheet.write(left, y + 24, inv.word("bank"), size=8.5, bold=True)
    lines_down(sheet, left, y + 38, bank_lines(inv, holder=True), width=320)
    sheet.write(
        left,
        sheet.height - 34,
        f"{inv.word('vat_id')} {inv.seller.vat}   {' '.join(inv.seller.legal)}",
        size=7,
        colour=GREY,
    )
    sheet.write(right, sheet.height - 34, page_mark(inv), size=7, colour=GREY, align="right")


def erp_printout(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """A large company's system: typewriter type, two columns of references, many particulars per item."""
    left, right = 46.0, sheet.width - 46
    sheet.write(left, 56, Run(inv.seller.name, "supplier"), size=12, bold=True, face="mono", limit=300)
    lines_down(
        sheet,
        left,
        70,
        [", ".join(inv.seller.address), f"{inv.word('vat_id')}: {inv.seller.vat}"],
        width=320,
        size=7.5,
    )
    sheet.write(right, 56, page_mark(inv), size=8, face="mono", align="right")
    sheet.write(left, 118, inv.word("title").upper(), size=13, bold=True, face="mono")
    pairs = references(inv, rng)
    split = (len(pairs) + 1) // 2
    middle = (left + right) / 2
    ends = [
        _mono_pairs(sheet, x, 138, part, label_width=116, width=(right - left) / 2 - 8)
        for x, part in ((left, pairs[:split]), (middle + 8, pairs[split:]))
    ]
    y = max(ends) + 10
    sheet.write(left, y, inv.word("bill_to"), size=7.5, colour=GREY)
    address(sheet, left, y + 13, inv.buyer, width=230, bold=False)
    if inv.incoterm:
        sheet.write(middle + 8, y, inv.word("incoterm"), size=7.5, colour=GREY)
        sheet.write(middle + 8, y + 13, _incoterm(inv, look)[0], size=9)
    y += 72
    columns = columns_of(
        inv,
        ("pos", "article", "description", "quantity", "unit", "unit_price", "amount"),
        right - left,
        marked=False,
    )
    note = hs_note(inv) if inv.items[0].hs else None
    y = draw_table(sheet, inv, left, y, columns, style="rules", accent=INK, size=8.5, note=note)
    sheet.rule(left, y + 4, right, y + 4, thick=0.4)
    y = draw_totals(sheet, right - 250, y + 22, total_rows(inv, rng), width=250, style="rule", accent=INK)
    y = sheet.paragraph(
        left, y + 12, inv.word("exempt") if not inv.taxes else inv.word("thanks"), width=300, size=8
    )
    if inv.notation.unmarked:
        sheet.write(left, y + 2, currency_note(inv), size=8)
        y += 14
    lines_down(sheet, left, y + 12, bank_lines(inv), width=320)
    sheet.rule(left, sheet.height - 50, right, sheet.height - 50, thick=0.4)
    foot = f"{inv.seller.name} | {' | '.join(inv.seller.legal)} | {inv.seller.phone}"
    sheet.write(
        sheet.width / 2, sheet.height - 38, foot, size=6.5, align="center", colour=GREY, limit=right - left
    )


def american_letter(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The supply house on US letter paper: bill-to and ship-to boxes, a dark row of order terms, remit-to."""
    left, right = 36.0, sheet.width - 36
    sheet.write(left, 52, Run(inv.seller.name, "supplier"), size=15, bold=True, face="heading", limit=310)
    lines_down(sheet, left, 66, [*inv.seller.address[:2], f"Phone {inv.seller.phone}", inv.seller.vat], width=280)
    sheet.write(
        right, 54, inv.word("title").upper(), size=24, bold=True, align="right", colour=GREY, face="heading"
    )
    pairs: list[Pair] = [
        (inv.word("date"), inv.day(inv.date, "date")),
        (inv.word("number"), Run(inv.number, "number")),
    ]
    if look.chance("swap", 0.4):
        pairs.reverse()
    pairs_in_cells(sheet, right - 220, 70, pairs, width=220, height=34, fill=look.accent, edge=INK)
    half = (right - left) / 2
    for index, key in enumerate(("bill_to", "ship_to")):
        x = left + index * half
        sheet.box(x, 124, half - 8, 74, edge=INK)
        sheet.box(x, 124, half - 8, 15, fill=look.accent)
        sheet.write(x + 5, 135, inv.word(key), size=8, bold=True, colour=WHITE)
        address(sheet, x + 5, 152, inv.buyer, width=half - 18, bold=False)
    order: list[Pair] = [
        (inv.word("order"), inv.order),
        (inv.word("terms_label"), f"Net {inv.days}"),
        ("Rep", inv.person),
        (inv.word("delivery_date"), inv.day(inv.delivery_date)),
        ("Via", rng.choice(("UPS Ground", "Best way", "Pick-up", "LTL Freight"))),
    ]
    if inv.due:
        order.insert(2, (inv.word("due"), inv.day(inv.due, "due_date")))
    y = pairs_in_cells(sheet, left, 212, order, width=right - left, height=32, fill=look.accent, edge=INK)
    columns = columns_of(
        inv, ("quantity", "article", "description", "unit_price", "amount"), right - left, marked=look.marked
    )
    rows = rng.randint(6, 12)
    style = look.table_of("grid", "band", "zebra")
    y = draw_table(sheet, inv, left, y + 8, columns, style=style, accent=look.accent, least_rows=rows)
    top = y + 18
    style = look.totals_of("grid", "bar")
    y = draw_totals(sheet, right - 230, top, total_rows(inv, rng), width=230, style=style, accent=look.accent)
    remit = ["Remit to:", inv.seller.name, f"P.O. Box {rng.randrange(100, 9999)}", inv.seller.city]
    lines_down(sheet, left, top, remit, width=200)
    lines_down(sheet, left, top + 56, bank_lines(inv), width=220)
    sheet.paragraph(
        left,
        max(y, top + 100) + 14,
        f"{inv.word('thanks')} 1.5% per month is added to past due accounts.",
        width=right - left,
        size=8,
    )
    sheet.write(right, sheet.height - 24, page_mark(inv), size=7, align="right", colour=GREY)


def _incoterm(inv: Invoice, look: Look) -> list[Content]:
    edition = " (Incoterms 2020)" if look.chance("edition", 0.4) and "2020" not in inv.word("incoterm") else ""
    return [[Run(inv.incoterm, "incoterm"), Run(edition)]] if inv.incoterm else ["-"]


def _cell(
    sheet: Sheet, x: float, y: float, width: float, height: float, caption: str, lines: Sequence[Content]
) -> None:
    sheet.box(x, y, width, height, edge=INK)
    sheet.write(x + 4, y + 9, caption, size=6.8, colour=GREY, limit=width - 8)
    for row, line in enumerate(lines):
        sheet.write(x + 6, y + 24 + row * 12, line, size=9, limit=width - 12)


def _mono_pairs(
    sheet: Sheet, x: float, y: float, pairs: Sequence[Pair], *, label_width: float, width: float
) -> float:
    for label, value in pairs:
        sheet.write(x, y, label, size=8, limit=label_width - 6)
        sheet.write(x + label_width - 4, y, ":", size=8)
        sheet.write(x + label_width + 4, y, runs_of(value), size=8.5, face="mono", limit=width - label_width - 4)
        y += 13
    return y


def _shipment_rows(inv: Invoice, start: str, end: str, container: str, bill: str, rng: Random) -> list[list[Pair]]:
    arrival = inv.delivery_date
    volume = inv.notation.number(Decimal(rng.randrange(120, 6800)) / 100, 2)
    return [
        [("Vessel / Voyage", rng.choice(_VESSELS)), ("POL", start), ("POD", end), ("ETA", inv.day(arrival))],
        [("B/L", bill), ("Container", container), (inv.word("weight"), inv.weight), ("CBM", volume)],
        [
            (inv.word("incoterm"), Run(inv.incoterm, "incoterm")),
            ("ETD", inv.day(inv.order_date)),
            ("Pkgs", str(rng.randrange(2, 90))),
        ],
    ]
