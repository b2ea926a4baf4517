"""Whole documents of kinds met in practice, upright and turned."""

import pytest

from agents.packs.invoice.extraction import REVIEW_THRESHOLD, extract, verify_in_text
from tests.unit.agents.invoice_extraction.page_art import reading
from tests.unit.agents.invoice_extraction.real_life import AMBIGUOUS, ATTACK, DOCUMENTS, FREIGHT
from tests.unit.agents.invoice_extraction.real_life_more import DOCUMENTS as MORE_DOCUMENTS

CASES = [(name, *item) for name, item in DOCUMENTS.items()]
IDS = list(DOCUMENTS)


def _pages(art):
    return art if isinstance(art, tuple) else (art,)


@pytest.mark.parametrize(("name", "art", "truth"), CASES, ids=IDS)
def test_every_stated_field_is_found(name, art, truth):
    found = extract(reading(*_pages(art)))
    assert {field: found[field].value for field in truth} == truth


@pytest.mark.parametrize(("name", "art", "truth"), CASES, ids=IDS)
def test_every_value_is_printed_at_its_box(name, art, truth):
    document = reading(*_pages(art))
    found = extract(document)
    cells = [
        cell for line in found.lines for cell in (line.description, line.quantity, line.unit_price, line.amount)
    ]
    for field in [*found.fields.values(), *found.hs_codes, *found.goods, *cells]:
        assert verify_in_text(document, field), field


@pytest.mark.parametrize("turn", [-3.0, 2.0, 90.0, 180.0, 270.0, 92.5])
@pytest.mark.parametrize("name", ["factuur", "facture", "fapiao", "us_balance", "freight"])
def test_a_turned_page_reads_the_same(name, turn):
    art, truth = DOCUMENTS[name]
    document = reading(art, turn_degrees=turn)
    found = extract(document)
    assert {field: found[field].value for field in truth} == truth
    assert all(verify_in_text(document, field) for field in found.fields.values())


def test_most_right_values_need_no_review():
    fields = [extract(reading(*_pages(art)))[name] for art, truth in DOCUMENTS.values() for name in truth]
    sure = sum(field.confidence >= REVIEW_THRESHOLD for field in fields)
    assert sure >= 0.95 * len(fields)


def test_what_cannot_be_known_is_for_review():
    found = extract(reading(AMBIGUOUS))
    assert found["date"].needs_review
    assert found["total"].needs_review
    assert found["currency"].value is None
    assert "2026-03-04" in {found["date"].value, *(other.value for other in found["date"].alternatives)}


def test_orders_in_the_text_change_nothing():
    order = next(line for line in ATTACK.split("\n") if line.startswith("SYSTEM"))
    with_order, without = extract(reading(ATTACK)), extract(reading(ATTACK.replace(order, "")))
    for name in ("number", "date", "currency", "total", "tax"):
        assert with_order[name].value == without[name].value


def test_a_faint_line_lowers_the_confidence():
    clear, faint = extract(reading(FREIGHT)), extract(reading(FREIGHT, confidence=0.8))
    assert faint["number"].confidence < REVIEW_THRESHOLD <= clear["number"].confidence


def test_malformed_tariff_codes_are_kept_as_printed():
    found = extract(reading(FREIGHT))
    assert [code.value for code in found.hs_codes] == ["8507.60.00", "8471300"]
    assert all(code.box for code in found.hs_codes)


def test_line_items_carry_their_cells():
    lines = extract(reading(FREIGHT)).lines
    assert [(line.quantity.value, line.unit_price.value, line.amount.value) for line in lines] == [
        ("120", "84.50", "10140.00"),
        ("40", "310.00", "12400.00"),
    ]
    assert lines[0].description.value == "Lithium-ion battery packs"


def test_the_json_form_is_complete():
    value = extract(reading(FREIGHT)).to_json()
    assert set(value) == {"fields", "hs_codes", "goods", "reasons"}
    assert {"number", "date", "due_date", "supplier", "currency", "total", "tax", "lines"} <= set(value["fields"])
    assert value["fields"]["lines"]["value"][0]["amount"] == "10140.00"


MORE = [(name, *item) for name, item in MORE_DOCUMENTS.items()]


@pytest.mark.parametrize(("name", "art", "truth"), MORE, ids=list(MORE_DOCUMENTS))
def test_the_second_set_is_found_too(name, art, truth):
    document = reading(art)
    found = extract(document)
    assert {field: found[field].value for field in truth} == truth
    assert all(verify_in_text(document, field) for field in found.fields.values())
