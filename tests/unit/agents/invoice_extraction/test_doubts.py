"""An ambiguous choice stays below the review threshold; the same page without the ambiguity does not."""

import pytest

from agents.packs.invoice.extraction import REVIEW_THRESHOLD, extract
from tests.unit.agents.invoice_extraction.page_art import reading

PAGE = """
Alpha Services Ltd
14 High Street, Leeds LS1 4AB
{number}
{date}
Service fee   100.00
VAT 20%        20.00
{total}
{after}
"""


def read(number="Invoice no A-5518", date="Invoice date 2026-03-04", total="Total £120.00", after=""):
    return extract(reading(PAGE.format(number=number, date=date, total=total, after=after)))


def test_the_plain_page_is_sure():
    found = read(after="Due date 2026-04-04")
    values = {"number": "A-5518", "date": "2026-03-04", "due_date": "2026-04-04", "total": "120.00"}
    for name, value in values.items():
        assert found[name].value == value
        assert found[name].confidence >= REVIEW_THRESHOLD


@pytest.mark.parametrize(
    "label",
    ["Membership number", "Policy number", "Case #", "Tracking #", "Terminal #", "Lot #", "Cancels invoice no"],
)
def test_a_number_of_something_else_is_not_sure(label):
    assert read(number=f"{label}   881204")["number"].confidence < REVIEW_THRESHOLD


@pytest.mark.parametrize(
    "label",
    ["Run date", "Shipment date", "Date du voyage", "Birth date", "Contract dated", "Original invoice date"],
)
def test_a_date_of_something_else_is_not_sure(label):
    assert read(date=f"{label}   2026-03-04")["date"].confidence < REVIEW_THRESHOLD


@pytest.mark.parametrize("label", ["Estimated total", "Total last month", "Insured total", "Gesamtbetrag Vorjahr"])
def test_a_total_of_something_else_is_not_sure(label):
    assert read(total=f"{label}   £250.00")["total"].confidence < REVIEW_THRESHOLD


@pytest.mark.parametrize(
    "total",
    [
        "Total £120.00\nTip £5.00\nTotal £125.00",
        "Previous balance £80.00\nCurrent charges £120.00\nTotal amount due £200.00",
        "Total USD 120.00\nTotal EUR 111.00",
    ],
)
def test_a_second_total_is_a_reason_for_review(total):
    assert read(total=total)["total"].confidence < REVIEW_THRESHOLD


def test_a_paid_earlier_balance_is_none():
    earlier = "Previous balance £80.00\nPayment received -£80.00\nTotal amount due £120.00"
    assert read(total=earlier)["total"].confidence >= REVIEW_THRESHOLD


def test_two_currencies_with_a_total_each_leave_the_currency_open():
    assert read(total="Total USD 120.00\nTotal EUR 111.00")["currency"].confidence < REVIEW_THRESHOLD


def test_a_discount_day_is_not_the_due_day():
    late = read(after="Zahlbar bis 14.03.2026 abzüglich 2 % Skonto, sonst bis 04.04.2026 rein netto")
    assert late["due_date"].value == "2026-04-04"
    only = read(after="Payable by 2026-03-14 with 2% discount")
    assert only["due_date"].confidence < REVIEW_THRESHOLD


def test_a_rate_without_a_percent_sign_is_no_tax():
    table = "%IVA      Imponibile   Imposta\n22,00     500,00       110,00\nTotale documento EUR 610,00"
    found = extract(reading("Forno Rossi S.r.l.\nFattura n. 55\nData 03/03/2026\n" + table))
    assert found["tax"].value == "110.00"


def test_the_rate_proves_a_tax_that_is_included():
    assert read(total="Total £120.00")["tax"].confidence >= REVIEW_THRESHOLD


def test_a_fraction_is_no_amount():
    assert extract(reading("0OTAL\n¼"))["total"].value is None
