"""Account numbers, Incoterms and tariff codes are handed on as printed."""

import pytest

from agents.packs.invoice.extraction import extract
from tests.unit.agents.invoice_extraction.page_art import reading


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("IBAN: DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("IBANNL91ABNA0417164300 BICABNANL2A", "NL91ABNA0417164300"),
        ("IBAN GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"),
        ("IBAN DE89 3704 0044 0532 0130 01", "DE89370400440532013001"),
        ("FR76 3000 6000 0112 3456 7890 189", "FR7630006000011234567890189"),
    ],
)
def test_iban(text, value):
    assert extract(reading(text))["iban"].value == value


def test_bic():
    assert extract(reading("BIC: COBADEFFXXX  Bank: Commerzbank"))["bic"].value == "COBADEFFXXX"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Incoterms 2020: CIF Hamburg", "CIF Hamburg"),
        ("Delivery terms  DAP (Lyon)", "DAP Lyon"),
        ("贸易条款：FOB 上海", "FOB 上海"),
        ("Terms of delivery FOX Hamburg", None),
    ],
)
def test_incoterm(text, value):
    assert extract(reading(text))["incoterm"].value == value


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("HS Code: 8507.60.00", ["8507.60.00"]),
        ("HS code 850760", ["850760"]),
        ("Tariff No. 8507600", ["8507600"]),
        ("海关编码：8471300000", ["8471300000"]),
        ("no code here 8507.60", []),
    ],
)
def test_tariff_codes(text, codes):
    assert [code.value for code in extract(reading(text)).hs_codes] == codes
