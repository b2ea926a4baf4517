"""Numbers, percentages and thresholds, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text.numerals import exact, parse_number
from tools.text.quantities import QuantityMention, find_quantities


def longest(text: str) -> QuantityMention:
    return max(find_quantities(text), key=lambda mention: mention.end - mention.start)


@pytest.mark.parametrize(
    ("text", "kind", "value", "unit", "operator"),
    [
        ("15%", "percent", "0.15", "ratio", None),
        ("15 percent", "percent", "0.15", "ratio", None),
        ("fifteen per cent", "percent", "0.15", "ratio", None),
        ("百分之十五", "percent", "0.15", "ratio", None),
        ("百分之十二点五", "percent", "0.125", "ratio", None),
        ("一成五", "percent", "0.15", "ratio", None),
        ("三成", "percent", "0.3", "ratio", None),
        ("两成半", "percent", "0.25", "ratio", None),
        ("三分之一", "percent", "1/3", "ratio", None),
        ("a third", "percent", "1/3", "ratio", None),
        ("一半", "percent", "0.5", "ratio", None),
        ("15‰", "percent", "0.015", "ratio", None),
        ("-5%", "percent", "-0.05", "ratio", None),
        ("15个百分点", "percentage_points", "15", "percentage_point", None),
        ("15 percentage points", "percentage_points", "15", "percentage_point", None),
        ("2.5pp", "percentage_points", "2.5", "percentage_point", None),
        ("1.5万", "number", "15000", "number", None),
        ("两千万", "number", "20000000", "number", None),
        ("3k", "number", "3000", "number", None),
        ("2.5 million", "number", "2500000", "number", None),
        ("1,234.5", "number", "1234.5", "number", None),
        ("$1,000", "number", "1000", "currency", None),
        ("三百五十万元", "number", "3500000", "currency", None),
        ("超15%", "threshold", "0.15", "ratio", ">"),
        ("超过15%", "threshold", "0.15", "ratio", ">"),
        ("大于15%", "threshold", "0.15", "ratio", ">"),
        ("more than 15%", "threshold", "0.15", "ratio", ">"),
        ("over 15%", "threshold", "0.15", "ratio", ">"),
        ("> 15%", "threshold", "0.15", "ratio", ">"),
        ("at least 15%", "threshold", "0.15", "ratio", ">="),
        ("no less than 15%", "threshold", "0.15", "ratio", ">="),
        ("15% or more", "threshold", "0.15", "ratio", ">="),
        ("15%以上", "threshold", "0.15", "ratio", ">="),
        ("不少于15%", "threshold", "0.15", "ratio", ">="),
        ("≥15%", "threshold", "0.15", "ratio", ">="),
        ("大于等于15%", "threshold", "0.15", "ratio", ">="),
        ("不到15%", "threshold", "0.15", "ratio", "<"),
        ("less than 15%", "threshold", "0.15", "ratio", "<"),
        ("不超过15%", "threshold", "0.15", "ratio", "<="),
        ("没有超过15%", "threshold", "0.15", "ratio", "<="),
        ("no more than 15%", "threshold", "0.15", "ratio", "<="),
        ("within 5%", "threshold", "0.05", "ratio", "<="),
        ("15%以内", "threshold", "0.15", "ratio", "<="),
        ("超过15个百分点", "threshold", "15", "percentage_point", ">"),
        ("超过1.5万元", "threshold", "15000", "currency", ">"),
    ],
)
def test_amounts(text, kind, value, unit, operator):
    mention = longest(text)
    assert mention.quantity is not None
    assert (mention.start, mention.end) == (0, len(text))
    assert (mention.kind, mention.quantity.value, mention.quantity.unit) == (kind, value, unit)
    assert mention.quantity.operator == operator


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("top 3", ("top", "3")),
        ("top three", ("top", "3")),
        ("前三", ("top", "3")),
        ("前3名", ("top", "3")),
        ("最高", ("top",)),
        ("the highest", ("top",)),
        ("bottom five", ("bottom", "5")),
        ("倒数三名", ("bottom", "3")),
        ("最低", ("bottom",)),
    ],
)
def test_rankings(text, values):
    mention = longest(text)
    assert (mention.kind, mention.values) == ("ranking", values)


@pytest.mark.parametrize("text", ["看一下", "一个", "十百", "one of them", "万一", "1847a,"])
def test_words_that_are_no_amounts(text):
    assert all(mention.quantity is None or mention.quantity.value == "1847" for mention in find_quantities(text))


def test_a_range_is_two_thresholds_side_by_side():
    found = [mention for mention in find_quantities("between 10% and 15%") if mention.kind == "threshold"]
    assert [(mention.quantity.operator, mention.quantity.value) for mention in found if mention.quantity] == [
        (">=", "0.1"),
        ("<=", "0.15"),
    ]
    assert found[0].end == found[1].start


_DIGITS = "零一二三四五六七八九"


def chinese(number: int) -> str:
    """Write a number below ten thousand in Chinese, by another path than the one under test."""
    text, zero = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // unit % 10
        if digit:
            text += ("零" if zero and text else "") + _DIGITS[digit] + name
            zero = False
        else:
            zero = True
    return text or "零"


@given(st.integers(0, 9999), st.sampled_from([("", 1), ("万", 10_000), ("亿", 100_000_000)]))
def test_chinese_numerals_round_trip(number, section):
    name, factor = section
    if number == 0 and name:
        return
    assert parse_number(chinese(number) + name) == number * factor


@given(st.fractions())
def test_exact_strings_round_trip(value):
    assert Fraction(exact(value)) == value
