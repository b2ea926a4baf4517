"""Tariff codes and the rule for lithium batteries."""

import pytest

from agents.packs.invoice.checks.tariff import check_tariff_codes
from tests.unit.agents.invoice_checks.papers import CONTEXT, codes, invoice, reading


def _codes(*texts, **parts):
    return codes(check_tariff_codes({"invoice": invoice(**parts), "reading": reading(*texts)}, CONTEXT))


@pytest.mark.parametrize("code", ["847130", "8471.30", "8471 30 00", "85076000", "010121", "97050000"])
def test_valid_codes_pass(code):
    expected = ["lithium_un_number_missing"] if code.startswith("8507") else []
    assert _codes(hs_codes=[code]) == expected


@pytest.mark.parametrize("code", ["8471300", "84713", "8471300000", "1", ""])
def test_a_wrong_number_of_digits(code):
    assert _codes(hs_codes=[code]) == ["tariff_code_length"]


@pytest.mark.parametrize("code", ["770000", "98010000", "990000", "000000"])
def test_a_chapter_that_does_not_exist(code):
    assert _codes(hs_codes=[code]) == ["tariff_chapter"]


@pytest.mark.parametrize(
    "goods",
    [
        "Lithium battery pack 48V",
        "Lithium-Ionen-Akku 18 V",
        "锂电池组48V",
        "Batería de litio 12V",
        "Pile au lithium CR2032",
        "LiFePO4 battery 100Ah",
        "Lithium battery for drill",
    ],
)
def test_lithium_batteries_need_their_heading_and_their_un_number(goods):
    assert _codes(goods=[goods], hs_codes=["847130"]) == ["lithium_code_missing", "lithium_un_number_missing"]
    assert _codes("UN 3480", goods=[goods], hs_codes=["85076000"]) == []


@pytest.mark.parametrize(
    "goods",
    [
        "Cordless drill incl. Li-ion battery 18V",
        "Laptop mit Lithium-Ionen-Akku",
        "Akku-Bohrschrauber Li-Ion 18V",
        "Charger for lithium batteries",
        "Ladegerät für Li-Ion Akku",
        "Li-ion battery powered lamp",
        "含锂电池的耳机",
        "Lithium grease",
        "Alkaline battery AA",
        "Lead-acid battery 12V",
    ],
)
def test_equipment_chargers_and_other_batteries_are_no_lithium_batteries(goods):
    assert _codes(goods=[goods], hs_codes=["847130"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "UN3480",
        "UN 3481",
        "UN-Nr. 3480",
        "UN No. 3090",
        "UN-Nummer: 3091",
        "Class 9 / UN N° 3480",
        "un number 3481",
    ],
)
def test_un_numbers_as_they_are_printed(text):
    assert _codes(text, hs_codes=["85076000"]) == []


@pytest.mark.parametrize("text", ["UN 1203", "UN 34801", "order 3480", "3480"])
def test_other_numbers_are_none(text):
    assert _codes(text, hs_codes=["85076000"]) == ["lithium_un_number_missing"]


def test_an_invoice_without_codes_has_nothing_to_check():
    output = check_tariff_codes({"invoice": invoice(goods=["Consulting"]), "reading": reading("x")}, CONTEXT)
    assert output["findings"] == output["checked"] == []
