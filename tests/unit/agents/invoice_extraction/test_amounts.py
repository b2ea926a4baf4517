"""Numbers as they are printed across countries."""

from decimal import Decimal

import pytest

from agents.packs.invoice.extraction.amounts import find_amounts, readings
from agents.packs.invoice.extraction.chinese import words_amount
from agents.packs.invoice.extraction.frame import lay_out
from tests.unit.agents.invoice_extraction.page_art import reading


def _amounts(text, languages=None):
    return find_amounts(lay_out(reading(text)).segments, [], languages or {})[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.50", "1234.50"),
        ("1.234,50", "1234.50"),
        ("1 234,50", "1234.50"),
        ("1'234.50", "1234.50"),
        ("1’234.50", "1234.50"),
        ("12.345.678,90", "12345678.90"),
        ("1.234.567", "1234567"),
        ("0.125", "0.125"),
        ("1234.5", "1234.5"),
        ("1 ,234. 50", "1234.50"),
    ],
)
def test_separators_are_told_apart(text, value):
    assert readings(text.replace("’", "'"))[0][0] == Decimal(value)


def test_three_digits_after_one_separator_can_mean_both():
    assert {value for value, _, _ in readings("1.234")} == {Decimal(1234), Decimal("1.234")}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-€ 12,50", "-12.50"),
        ("€ -12,50", "-12.50"),
        ("12,50-", "-12.50"),
        ("(12.50)", "-12.50"),
        ("(EUR 12.50)", "-12.50"),
    ],
)
def test_minus_signs_in_every_place(text, value):
    assert [amount.value for amount in _amounts(text)] == [Decimal(value)]


def test_the_page_decides_what_a_lone_point_means():
    german = _amounts("12,50  1.234")
    english = _amounts("12.50  99.95  1.234")
    assert german[1].value == Decimal(1234)
    assert not german[1].ambiguous
    assert english[2].value == Decimal("1.234")
    assert english[2].ambiguous


@pytest.mark.parametrize("text", ["AB-1234", "ref 12/2026", "X1234", "12/1234"])
def test_identifiers_are_no_amounts(text):
    assert _amounts(text) == []


def test_marks_and_percentages_are_noted():
    first, second = _amounts("CHF 1'234.50  8.1 %")
    assert (first.mark, first.percent) == ("chf", False)
    assert second.percent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("叁万陆仟元整", "36000"),
        ("壹佰贰拾叁元肆角伍分", "123.45"),
        ("壹仟零伍元整", "1005"),
        ("贰拾万零叁佰圆整", "200300"),
        ("壹拾元零伍分", "10.05"),
    ],
)
def test_chinese_capitals(text, value):
    assert words_amount(f"价税合计（大写）{text}") == Decimal(value)


def test_no_chinese_capitals():
    assert words_amount("一般纳税人") is None
