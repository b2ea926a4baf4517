"""Labels, also as the OCR mangles them."""

import pytest

from agents.packs.invoice.extraction.frame import lay_out
from agents.packs.invoice.extraction.labels import find_labels
from tests.unit.agents.invoice_extraction.page_art import reading


def _kinds(text):
    return [label.kind for label in find_labels(lay_out(reading(text)).segments)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("InvoiceNo", "number"),
        ("INVOICE N0.", "number"),
        ("Rechnungsnr.", "number"),
        ("Rechnungsnurnmer", "number"),
        ("Facture n°", "number"),
        ("N* de facture", "number"),
        ("Àpayer avantle", "due"),
        ("发票号码：", "number"),
        ("开 票 日 期", "date"),
        ("Fecha de ernisión", "date"),
        ("Totalincl.VAT", "total"),
        ("GesamtbetragEUR", "total"),
        ("Rechnungskennziffer", "number"),
        ("Datum der Ausstellung", "date"),
        ("Gesamtendbetrag", "total"),
        ("Order No.", "other_id"),
        ("Kundennummer", "other_id"),
        ("Zwischensumme", "net"),
        ("Delivery date", "other_date"),
        ("Amount paid", "other_amount"),
        ("VAT Reg No", "other_id"),
    ],
)
def test_the_first_label_has_the_kind(text, kind):
    assert _kinds(text)[:1] == [kind]


@pytest.mark.parametrize("text", ["update", "Internet", "Vantage point", "candidate", "Norbert", "Subduedly"])
def test_words_that_contain_labels_are_none(text):
    assert _kinds(text) == []


def test_a_label_with_words_around_it_is_weak():
    (lone,) = [label for label in find_labels(lay_out(reading("Total")).segments)]
    (wordy,) = [label for label in find_labels(lay_out(reading("Total hiking distance covered")).segments)]
    assert wordy.strength < lone.strength


def test_two_date_labels_joined_by_a_slash_are_one():
    assert _kinds("Rechnungsdatum / Lieferdatum 11.01.2026") == ["date"]
