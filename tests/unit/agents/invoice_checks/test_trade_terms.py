"""Incoterms 2020."""

import pytest

from agents.packs.invoice.checks.trade_terms import INCOTERMS_2020, WITHDRAWN, check_trade_terms
from tests.unit.agents.invoice_checks.papers import CONTEXT, codes, invoice


def _codes(term):
    return codes(check_trade_terms({"invoice": invoice(incoterm=term)}, CONTEXT))


@pytest.mark.parametrize("term", sorted(INCOTERMS_2020))
def test_the_eleven_terms_with_a_place_pass(term):
    for written in (f"{term} Hamburg", f"{term.lower()} 上海", f"{term}: Rotterdam (Incoterms® 2020)"):
        assert _codes(written) == []


@pytest.mark.parametrize("term", sorted(WITHDRAWN))
def test_withdrawn_terms_are_named(term):
    assert _codes(f"{term} Hamburg") == ["trade_term_withdrawn"]


@pytest.mark.parametrize("term", ["XYZ Hamburg", "free delivery", "FOBX Hamburg"])
def test_unknown_terms_are_named(term):
    assert _codes(term) == ["trade_term_unknown"]


@pytest.mark.parametrize("term", ["FOB", "FOB Incoterms 2020", "CIF, 2020", "dap (Incoterms®)"])
def test_a_term_without_a_place_is_not_complete(term):
    assert _codes(term) == ["trade_term_without_place"]


def test_no_term_is_no_fault():
    output = check_trade_terms({"invoice": invoice()}, CONTEXT)
    assert output["findings"] == output["checked"] == []
