"""A value that is not printed at its box is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.packs.invoice.extraction import extract, verify_in_text, verify_value
from agents.packs.invoice.extraction.model import Field
from tests.unit.agents.invoice_extraction.page_art import reading
from tests.unit.agents.invoice_extraction.real_life import FACTUUR

DOCUMENT = reading(FACTUUR)
FOUND = extract(DOCUMENT)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", "2026.0114"),
        ("date", "2026-01-22"),
        ("currency", "USD"),
        ("total", "266.78"),
        ("supplier", "Evil Corp"),
    ],
)
def test_an_invented_value_is_refused(name, value):
    field = FOUND[name]
    assert verify_in_text(DOCUMENT, field)
    assert not verify_in_text(DOCUMENT, replace(field, value=value))
    assert not verify_value(DOCUMENT, field.to_json() | {"value": value})


@pytest.mark.parametrize("name", ["number", "date", "due_date", "currency", "total", "tax", "supplier", "iban"])
def test_the_json_form_verifies_too(name):
    assert verify_value(DOCUMENT, FOUND[name].to_json())


def test_the_right_text_at_another_place_is_refused():
    assert not verify_in_text(DOCUMENT, replace(FOUND["total"], box=(0, 0, 5, 5)))
    assert not verify_in_text(DOCUMENT, replace(FOUND["total"], page=2))
    assert not verify_in_text(DOCUMENT, replace(FOUND["total"], box=None))


def test_a_missing_field_has_nothing_to_verify():
    assert verify_in_text(DOCUMENT, Field.absent("iban", "text", "no_iban"))


LINES = st.lists(
    st.one_of(
        st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30),
        st.sampled_from(
            ["Total", "Invoice No", "Date:", "12.03.2026", "1.234,50 €", "VAT 20%", "IBAN DE", "发票号码", "IV-1"]
        ),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(lines=LINES)
def test_any_text_gives_verifiable_fields(lines):
    document = reading("\n".join(lines) or " ")
    found = extract(document)
    assert found == extract(document)
    for field in found.fields.values():
        assert 0.0 <= field.confidence <= 1.0
        assert verify_in_text(document, field)


def test_an_empty_document_has_no_fields():
    found = extract(reading(" "))
    assert all(field.value is None for field in found.fields.values())
    assert found.reasons == ("no_text",)
