"""From a document reading to its fields: the one entry point of the package."""

from collections.abc import Sequence
from dataclasses import replace

from agents.packs.invoice.extraction.amounts import Amount, find_amounts
from agents.packs.invoice.extraction.chinese import words_amount
from agents.packs.invoice.extraction.currency import choose_currency
from agents.packs.invoice.extraction.dates import DateFound, find_dates, settle_order, swapped
from agents.packs.invoice.extraction.evidence import read_setting
from agents.packs.invoice.extraction.frame import Sheet, lay_out
from agents.packs.invoice.extraction.identifiers import choose_number, find_identifiers
from agents.packs.invoice.extraction.issue_date import choose_dates, in_order
from agents.packs.invoice.extraction.labels import Label, find_labels
from agents.packs.invoice.extraction.marks import ZERO_DECIMAL
from agents.packs.invoice.extraction.model import Extraction, Field
from agents.packs.invoice.extraction.parties import choose_parties
from agents.packs.invoice.extraction.relation import Neighbours
from agents.packs.invoice.extraction.roles import column_sums
from agents.packs.invoice.extraction.table import line_sum, mark_heads, read_lines
from agents.packs.invoice.extraction.totals import reckon
from agents.packs.invoice.extraction.totals_fields import net_field, tax_field, total_field
from agents.packs.invoice.extraction.trade import account_spans, read_hs_codes, read_trade
from tools.document.reading import DocumentReading

_KINDS = {
    "number": "text",
    "date": "date",
    "due_date": "date",
    "supplier": "text",
    "buyer": "text",
    "currency": "currency",
    "total": "amount",
    "tax": "amount",
    "net": "amount",
    "iban": "text",
    "bic": "text",
    "incoterm": "text",
    "payment_terms": "text",
}


def extract(reading: DocumentReading) -> Extraction:
    """Read the invoice's fields out of the text lines of its pages.

    Pure: the same reading gives the same fields. What the text says is data only; no sentence in it changes how it
    is read.
    """
    sheet = lay_out(reading)
    if not sheet.segments:
        return Extraction(
            fields={name: Field.absent(name, kind, "no_text") for name, kind in _KINDS.items()},
            reasons=("no_text",),
        )
    setting = read_setting(sheet)
    dates = settle_order(find_dates(sheet.segments), setting.month_first)
    accounts = account_spans(sheet)
    day_spans = [date.span for date in dates if date.style != "bare"]
    amounts, separators = find_amounts(sheet.segments, [*day_spans, *accounts], dict(setting.languages))
    labels, heads = mark_heads(sheet, find_labels(sheet.segments), amounts)
    identifiers = find_identifiers(sheet, labels, [*day_spans, *accounts])
    items = read_lines(sheet, labels, heads, amounts, separators.places)
    beside_amounts = Neighbours(
        sheet, labels, [amount.span for amount in amounts if not amount.percent], chained=True
    )
    beside_dates = Neighbours(sheet, labels, [date.span for date in dates])
    beside_identifiers = Neighbours(sheet, labels, [item.span for item in identifiers])

    number = choose_number(sheet, labels, identifiers, beside_identifiers)
    date, due_date = _dates_in_best_order(sheet, labels, dates, beside_dates)
    words = (
        words_amount("".join(segment.text for segment in sheet.segments)) if setting.languages.get("zh") else None
    )
    reckoning = reckon(
        sheet, labels, amounts, beside_amounts, line_sum(items), words, column_sums(sheet, labels, heads, amounts)
    )
    currency = choose_currency(sheet, labels, amounts, reckoning.total.index if reckoning.total else None, setting)
    places = 0 if currency.value in ZERO_DECIMAL else 2
    supplier, buyer = choose_parties(sheet, labels, beside_identifiers)
    fields = {
        "number": number,
        "date": date,
        "due_date": due_date,
        "supplier": supplier,
        "buyer": buyer,
        "currency": currency,
        "total": total_field(sheet, amounts, reckoning, places),
        "tax": tax_field(amounts, reckoning, places),
        "net": net_field(amounts, reckoning, places),
        **read_trade(sheet, labels),
    }
    return Extraction(
        fields=fields,
        lines=tuple(items),
        hs_codes=read_hs_codes(sheet, labels),
        goods=tuple(replace(item.description, name="goods") for item in items if item.description.value),
        reasons=_document_reasons(sheet, dates, amounts, reckoning.proofs),
    )


def _dates_in_best_order(
    sheet: Sheet, labels: Sequence[Label], dates: Sequence[DateFound], neighbours: Neighbours
) -> tuple[Field, Field]:
    """Where nothing settles the order of day and month, invoice date and due date do if they fit only one way."""
    chosen = choose_dates(sheet, labels, dates, neighbours)
    open_certainty = [date.certainty for date in dates if date.other is not None and date.certainty < 0.97]
    if not open_certainty:
        return chosen
    other = choose_dates(sheet, labels, swapped(dates, 0.88), neighbours)
    if in_order(*other) > in_order(*chosen) and in_order(*other) > 0:
        return other
    if in_order(*chosen) > max(0, in_order(*other)):
        return choose_dates(sheet, labels, swapped(swapped(dates, 0.9), 0.9), neighbours)
    return chosen


def _document_reasons(
    sheet: Sheet, dates: Sequence[DateFound], amounts: Sequence[Amount], proofs: Sequence[str]
) -> tuple[str, ...]:
    reasons = [f"total_{proof}" for proof in proofs]
    reasons += ["few_lines"] if len(sheet.segments) < 8 else []
    reasons += ["no_dates"] if not dates else []
    reasons += ["no_amounts"] if not amounts else []
    return tuple(reasons)
