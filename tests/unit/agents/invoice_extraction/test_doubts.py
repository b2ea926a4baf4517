"""Slips of the OCR and of layouts that once gave a wrong value with a high confidence."""

import pytest

from agents.packs.invoice.extraction import extract, verify_in_text
from tests.unit.agents.invoice_extraction.page_art import reading

FRENCH = """
Boulangerie Marchand EURL                    1204 Genève, Suisse
Facture n°  F-2026-118                       Date de facture  14/02/2026
Farine de blé 25 kg            2      10.00       20.00
Total HT                                          20.00
Total TTC                                         20.00
Pénalités de retard : trois fois le taux légal. Indemnité forfaitaire de 40 € pour frais de recouvrement.
"""


def test_a_mark_within_a_sentence_does_not_make_the_currency():
    assert extract(reading(FRENCH))["currency"].needs_review


def test_a_converted_sum_does_not_make_the_currency():
    page = "Invoice no. 7781\nSydney NSW 2000, Australia\nTotal  640.29 $\n= USD 5741.60 (1 USD = 0.9196)"
    found = extract(reading(page))
    assert found["currency"].value == "AUD"
    assert found["total"].value == "640.29"


def test_a_space_within_a_lettered_number_is_taken_out_and_doubted():
    document = reading("Factuurnr.  RE-81 831\nDatum  03-07-2025")
    found = extract(document)["number"]
    assert (found.value, found.needs_review) == ("RE-81831", True)
    assert verify_in_text(document, found)


def test_a_number_run_into_a_date_is_doubted():
    found = extract(reading("Invoice No.  Date\n228587172026-10-23"))["number"]
    assert found.value is None or found.needs_review


@pytest.mark.parametrize("printed", ["FAO00165", "Sl-46533", "INV-2O26"])
def test_letters_that_may_be_figures_are_doubted(printed):
    assert extract(reading(f"Invoice No.  {printed}"))["number"].needs_review


def test_points_for_commas_in_a_misread_amount():
    page = "Netto  79.780,16\nMwSt  10.000.00\nRechnungsbetrag  89.780.16"
    assert extract(reading(page))["total"].value == "89780.16"


def test_a_due_date_settles_the_order_of_day_and_month():
    page = "Invoice No. 5531\nInvoice date  05/06/2026\nDue date  06/05/2026\nTotal  10.00"
    assert extract(reading(page))["date"].value == "2026-05-06"


def test_a_page_full_of_totals_is_read_in_bounded_time():
    rows = "\n".join(
        f"Total {i}    {i * 3}.50\nNet    {i}.50\nVAT    {i}.00\nShipping    {i + 1}.10" for i in range(40)
    )
    assert extract(reading(rows))["total"].value is not None
