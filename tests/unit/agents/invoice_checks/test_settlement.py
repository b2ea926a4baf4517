"""Accounts, banks, currencies and due dates: real ones pass, each fault has its name."""

import pytest

from agents.packs.invoice.checks.settlement import bic_fault, check_settlement, iban_fault
from tests.unit.agents.invoice_checks.papers import CONTEXT, codes, invoice

# Examples of the SWIFT IBAN registry.
IBANS = (
    *("GB29NWBK60161331926819", "DE89370400440532013000", "FR1420041010050500013M02606", "NL91ABNA0417164300"),
    *("ES9121000418450200051332", "IT60X0542811101000000123456", "CH9300762011623852957", "BE68539007547034"),
    *("AT611904300234573201", "LU280019400644750000", "PT50000201231234567890154", "IE29AIBK93115212345678"),
    *("PL61109010140000071219812874", "SE4550000000058398257466", "NO9386011117947", "DK5000400440116243"),
    *("FI2112345600000785", "CZ6508000000192000145399", "TR330006100519786457841326", "AE070331234567890123456"),
    *("HU42117730161111101800000000", "RO49AAAA1B31007593840000", "GR1601101250000000012300695"),
    *("HR1210010051863000160", "SI56263300012039086", "SK3112000000198742637541", "LT121000011101001000"),
    *("BG80BNBG96611020345678", "RS35260005601001611379", "IL620108000000099999999", "SA0380000000608010167519"),
)


def _codes(**fields):
    return codes(check_settlement({"invoice": invoice(**fields)}, CONTEXT))


@pytest.mark.parametrize("iban", IBANS)
def test_valid_accounts_pass_and_any_other_figure_fails(iban):
    assert iban_fault(iban) is None
    assert iban_fault(f"{iban[:4]} {iban[4:]}") is None
    for place in range(2, len(iban)):
        if iban[place].isdigit():
            wrong = iban[:place] + str((int(iban[place]) + 1) % 10) + iban[place + 1 :]
            assert iban_fault(wrong), wrong


@pytest.mark.parametrize(
    ("iban", "code"),
    [
        ("DE89370400440532013001", "iban_check_digits"),
        ("DE8937040044053201300", "iban_check_digits"),
        ("DE", "iban_check_digits"),
        ("DE89-3704-ÄÖ", "iban_format"),
        ("ZZ68539007547034", "iban_check_digits"),
        ("US64SVBKUS6S3300958879", "iban_country"),
        ("", "iban_format"),
    ],
)
def test_each_fault_of_an_account_has_a_code(iban, code):
    fault = iban_fault(iban)
    assert fault is not None
    assert fault[0] == code


@pytest.mark.parametrize("bic", ["DEUTDEFF", "DEUTDEFF500", "COBADEFFXXX", "ICBKCNBJ", "TRWIBEB1XXX", "CHASUS33"])
def test_valid_banks_pass(bic):
    assert bic_fault(bic) is None


@pytest.mark.parametrize("bic", ["DEUTDEF", "DEUTDEFF5", "DEUTD3FF", "D3UTDEFF1", ""])
def test_malformed_banks_fail(bic):
    assert bic_fault(bic) is not None


def test_a_clean_invoice_has_no_finding():
    clean = {
        "iban": "DE89370400440532013000",
        "bic": "COBADEFFXXX",
        "currency": "EUR",
        "date": "2026-01-05",
        "due_date": "2026-02-04",
    }
    output = check_settlement({"invoice": invoice(**clean)}, CONTEXT)
    assert output["findings"] == []
    assert output["checked"] == ["IBAN DE89370400440532013000", "BIC COBADEFFXXX", "currency EUR"]
    assert check_settlement({"invoice": invoice()}, CONTEXT)["checked"] == []


def test_each_fault_is_named_at_its_place():
    assert _codes(iban="DE89370400440532013001") == ["iban_check_digits"]
    assert _codes(bic="DEUTDEFF5") == ["bic_format"]
    assert _codes(currency="EUX") == ["currency_unknown"]
    assert _codes(iban="DE89370400440532013000", bic="BNPAFRPP") == ["bic_country"]
    assert _codes(date="2026-01-05", due_date="2026-01-04") == ["due_before_issue"]
    (finding,) = check_settlement({"invoice": invoice(currency="EUX")}, CONTEXT)["findings"]
    assert (finding["field"], finding["page"], finding["box"]) == ("currency", 1, [10, 20, 100, 30])


def test_banks_of_territories_use_the_country_s_accounts():
    assert _codes(iban="GB29NWBK60161331926819", bic="NWBKJESX") == []
    assert _codes(iban="FR1420041010050500013M02606", bic="BNPARERX") == []


def test_a_due_date_on_the_day_itself_is_no_fault():
    assert _codes(date="2026-01-05", due_date="2026-01-05") == []
