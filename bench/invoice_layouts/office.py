"""Layouts of letters and office programs: the window letter, the web shop's, the word processor's page."""

from random import Random

from bench.invoice_layouts.blocks import (
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
    pairs_stacked,
    references,
    total_rows,
)
from bench.invoice_layouts.invoice import Invoice
from bench.invoice_layouts.look import Look
from bench.invoice_layouts.sheet import GREY, PALE, WHITE, Run, Sheet, runs_of
from bench.invoice_layouts.tables import columns_of, draw_table, hs_note


def window_letter(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The letter for window envelopes: return address in small type, references right, footer in columns."""
    left, right = 70.0, sheet.width - 57
    logo(sheet, rng, right - 38, 34, size=36, colour=look.accent)
    sheet.write(left, 62, Run(inv.seller.name, "supplier"), size=16, bold=True, colour=look.accent, face="heading")
    sheet.write(left, 76, f"{inv.word('phone')} {inv.seller.phone}   www.{inv.seller.web}", size=7.5, colour=GREY)
    sender = " · ".join((inv.seller.name, inv.seller.street, inv.seller.city))
    sheet.write(left, 134, sender, size=6, colour=GREY, limit=225)
    sheet.rule(left, 137, left + 225, 137, thick=0.4, colour=GREY)
    address(sheet, left, 155, inv.buyer, width=225, size=10, bold=False)
    title = f"{inv.word('title')}"
    pairs = references(inv, rng)
    in_subject = rng.random() < 0.4
    if in_subject:
        pairs = [pair for pair in pairs if pair[0] != inv.word("number")]
    bottom = pairs_in_columns(
        sheet,
        345,
        150,
        pairs,
        label_width=95,
        width=right - 345,
        right=look.chance("right", 0.4),
        colon=look.colon,
    )
    y = max(bottom, 250) + 14
    heading = [Run(f"{title} "), Run(inv.number, "number")] if in_subject else [Run(title)]
    sheet.write(left, y, heading, size=14, bold=True, face="heading", limit=right - left)
    y = sheet.paragraph(left, y + 20, inv.word("intro"), width=right - left)
    keys: tuple[str, ...] = (
        "pos",
        "article",
        "description",
        "hs",
        "quantity",
        "unit",
        "unit_price",
        "rate",
        "amount",
    )
    keys = keys if len(inv.taxes) > 1 else tuple(key for key in keys if key != "rate")
    columns = columns_of(inv, keys, right - left, marked=look.marked)
    y = draw_table(sheet, inv, left, y + 6, columns, style=look.table, accent=look.accent) + 18
    rows = total_rows(inv, rng)
    y = draw_totals(
        sheet, right - 230, y, rows, width=230, style=look.totals, accent=look.accent, colon=look.colon
    )
    y = sheet.paragraph(left, y + 14, inv.terms if not inv.due else inv.word("thanks"), width=right - left)
    if not inv.taxes:
        y = sheet.paragraph(left, y + 4, inv.word("exempt"), width=right - left)
    sheet.write(right, sheet.height - 72, page_mark(inv), size=7, align="right", colour=GREY)
    footer_columns(sheet, inv, y=sheet.height - 46, left=left, right=right)


def online_invoice(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The invoice of a web shop or subscription: large title, label columns, the amount due as a headline."""
    left, right = 45.0, sheet.width - 45
    sheet.write(left, 70, inv.word("title").title(), size=22, bold=True, face="heading")
    logo(sheet, rng, right - 30, 44, size=30, colour=look.accent)
    pairs = references(inv, rng, few=True)
    y = pairs_in_columns(sheet, left, 100, pairs, label_width=120, width=290, bold_labels=True) + 18
    middle = left + 260
    seller_end = address(sheet, left, y, inv.seller, width=230, field="supplier")
    sheet.write(left, seller_end, f"{inv.word('vat_id')} {inv.seller.vat}", size=8, colour=GREY, limit=230)
    sheet.write(middle, y, inv.word("bill_to"), size=9, bold=True)
    address(sheet, middle, y + 13, inv.buyer, width=right - middle, bold=False)
    y = seller_end + 42
    if inv.due and not inv.deposit and look.chance("headline", 0.7):
        headline = [
            *inv.money(inv.total, "total"),
            Run(f" – {inv.word('due').lower()} "),
            inv.day(inv.due, "due_date"),
        ]
        sheet.write(left, y, headline, size=15, bold=True, face="heading", limit=right - left)
        y += 24
    keys: tuple[str, ...] = ("description", "hs", "quantity", "unit_price", "rate", "amount")
    keys = keys if len(inv.taxes) > 1 else tuple(key for key in keys if key != "rate")
    columns = columns_of(inv, keys, right - left, marked=look.marked)
    y = draw_table(sheet, inv, left, y, columns, style=look.table_of("rules", "plain"), accent=look.accent, size=9)
    y = draw_totals(
        sheet, left + 250, y + 20, total_rows(inv, rng), width=right - left - 250, style="rule", accent=look.accent
    )
    if look.chance("bank", 0.5):
        sheet.write(left, y + 16, inv.word("bank"), size=9, bold=True)
        y = lines_down(sheet, left, y + 30, bank_lines(inv), width=300)
    note = currency_note(inv) if inv.notation.unmarked else inv.word("thanks")
    sheet.write(left, y + 20, note, size=8, colour=GREY)
    sheet.rule(left, sheet.height - 40, right, sheet.height - 40, colour=PALE)
    sheet.write(left, sheet.height - 26, f"{inv.seller.web} · {inv.seller.phone}", size=7, colour=GREY)
    sheet.write(right, sheet.height - 26, page_mark(inv), size=7, colour=GREY, align="right")


def colour_band(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The small-business program: a coloured band with the title, a row of cells for number, date and terms."""
    left, right = 40.0, sheet.width - 40
    sheet.box(0, 0, sheet.width, 78, fill=look.accent)
    sheet.write(
        left, 48, Run(inv.seller.name, "supplier"), size=15, bold=True, colour=WHITE, face="heading", limit=300
    )
    sheet.write(
        right, 50, inv.word("title").upper(), size=22, bold=True, colour=WHITE, align="right", face="heading"
    )
    contact = [
        *inv.seller.address,
        f"{inv.word('phone')} {inv.seller.phone}",
        f"{inv.word('vat_id')}: {inv.seller.vat}",
    ]
    lines_down(sheet, left, 98, contact, width=240, size=8, colour=GREY)
    sheet.write(330, 98, inv.word("bill_to").upper(), size=7.5, bold=True, colour=look.accent)
    address(sheet, 330, 112, inv.buyer, width=right - 330)
    pairs = [pair for pair in references(inv, rng, few=True)][:5]
    y = pairs_in_cells(sheet, left, 182, pairs, width=right - left, height=32, fill=look.accent)
    if inv.due is None:
        sheet.write(left, y + 14, f"{inv.word('terms_label')}: {inv.short_terms}", size=8, colour=GREY)
    columns = columns_of(
        inv, ("article", "description", "quantity", "unit_price", "amount"), right - left, marked=look.marked
    )
    note = hs_note(inv) if inv.items[0].hs and look.chance("note", 0.5) else None
    style = look.table_of("band", "zebra", "grid")
    y = draw_table(sheet, inv, left, y + 24, columns, style=style, accent=look.accent, note=note)
    top = y + 20
    y = draw_totals(
        sheet,
        right - 220,
        top,
        total_rows(inv, rng),
        width=220,
        style=look.totals_of("bar", "large"),
        accent=look.accent,
    )
    sheet.write(left, top, inv.word("bank"), size=8.5, bold=True, colour=look.accent)
    below = lines_down(sheet, left, top + 14, bank_lines(inv, holder=True), width=right - left - 240)
    y = max(y, below) + 16
    sheet.paragraph(left, y, inv.word("thanks"), width=right - left, size=8.5)
    if inv.notation.unmarked:
        sheet.write(left, y + 14, currency_note(inv), size=8)
    sheet.write(sheet.width / 2, sheet.height - 24, page_mark(inv), size=7, align="center", colour=GREY)


def word_processor(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """What a tradesman types: one column, number and date in a sentence, hardly a rule."""
    left, right = 72.0, sheet.width - 72
    y = address(sheet, left, 70, inv.seller, width=260, size=11, field="supplier", country=False)
    y = lines_down(
        sheet,
        left,
        y,
        [f"{inv.word('phone')} {inv.seller.phone}", f"{inv.word('vat_id')} {inv.seller.vat}"],
        width=260,
    )
    y = address(sheet, left, y + 30, inv.buyer, width=260, size=11, bold=False, country=False) + 30
    sheet.write(right, y, f"{inv.seller.city.split(' ', 1)[-1].split('(')[0].strip()}", size=10, align="right")
    y += 26
    sheet.write(left, y, _subject(inv), size=12.5, bold=True, limit=right - left)
    if look.chance("order", 0.6):
        y += 18
        order = [Run(f"{inv.word('order')} {inv.order}, {inv.word('order_date')} "), inv.day(inv.order_date)]
        sheet.write(left, y, order, size=9.5, limit=right - left)
    y = sheet.paragraph(left, y + 26, inv.word("intro"), width=right - left, size=10)
    columns = columns_of(
        inv, ("description", "quantity", "unit", "unit_price", "amount"), right - left, marked=look.marked
    )
    y = draw_table(
        sheet, inv, left, y + 2, columns, style=look.table_of("plain", "rules"), accent=look.accent, size=9.5
    )
    y = draw_totals(
        sheet,
        right - 250,
        y + 20,
        total_rows(inv, rng),
        width=250,
        style=look.totals_of("rule", "large"),
        accent=look.accent,
        size=10,
        colon=look.colon,
    )
    label, value = due_pair(inv)
    y += 16
    sheet.write(left, y, [Run(f"{label}: "), *runs_of(value)], size=10, limit=right - left)
    y = lines_down(
        sheet, left, y + 18, bank_lines(inv, holder=look.chance("holder", 0.4)), width=right - left, size=10
    )
    sheet.paragraph(left, y + 14, inv.word("thanks"), width=right - left, size=10)
    sheet.write(left, y + 70, inv.person, size=10)


def sidebar(sheet: Sheet, inv: Invoice, rng: Random, look: Look) -> None:
    """The studio's invoice: a coloured column with all particulars, the table in wide white space."""
    wide = 168.0
    left, right = wide + 28, sheet.width - 36
    sheet.box(0, 0, wide, sheet.height, fill=look.accent)
    logo(sheet, rng, 24, 40, size=34, colour=WHITE)
    pairs = references(inv, rng)
    y = pairs_stacked(sheet, 24, 112, pairs, width=wide - 36, colour=(224, 228, 236), ink=WHITE)
    sheet.write(24, y + 12, inv.word("bank"), size=8, bold=True, colour=WHITE, limit=wide - 36)
    lines_down(sheet, 24, y + 27, bank_lines(inv), width=wide - 32, size=7.5, colour=WHITE)
    contact = [
        inv.seller.street,
        inv.seller.city,
        inv.seller.country_name,
        inv.seller.phone,
        inv.seller.web,
        inv.seller.vat,
    ]
    lines_down(sheet, 24, sheet.height - 110, contact, width=wide - 36, size=7.5, colour=(224, 228, 236))
    sheet.write(left, 66, Run(inv.seller.name, "supplier"), size=17, bold=True, face="heading", limit=right - left)
    sheet.write(left, 110, inv.word("title"), size=26, face="heading", colour=look.accent)
    sheet.write(left, 142, inv.word("bill_to"), size=7.5, colour=GREY)
    y = address(sheet, left, 156, inv.buyer, width=right - left) + 22
    columns = columns_of(
        inv, ("description", "quantity", "unit_price", "amount"), right - left, marked=look.marked
    )
    note = hs_note(inv) if inv.items[0].hs else None
    y = draw_table(
        sheet, inv, left, y, columns, style=look.table_of("rules", "band"), accent=look.accent, note=note
    )
    y = draw_totals(
        sheet,
        left + 100,
        y + 22,
        total_rows(inv, rng),
        width=right - left - 100,
        style="large",
        accent=look.accent,
        size=9.5,
    )
    if inv.notation.unmarked:
        sheet.write(left, y + 10, currency_note(inv), size=8, colour=GREY)
    sheet.paragraph(left, y + 34, inv.word("thanks"), width=right - left, size=8.5, colour=GREY)


def _subject(inv: Invoice) -> list[Run]:
    """The subject line, e.g. ``Invoice no. 17 of 4 March 2026``, with number and date as fields."""
    runs: list[Run] = []
    rest = inv.word("subject")
    while rest:
        before, _, after = rest.partition("{")
        name, _, rest = after.partition("}")
        runs.append(Run(before))
        if name == "number":
            runs.append(Run(inv.number, "number"))
        elif name == "date":
            runs.append(inv.day(inv.date, "date"))
    return [run for run in runs if run.text]
