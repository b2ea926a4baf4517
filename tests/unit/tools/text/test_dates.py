"""Periods against an injected clock, at the edges of the calendar."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text.date_expressions import DateMention
from tools.text.dates import find_dates


def longest(text: str, today: date) -> DateMention:
    mentions = find_dates(text, today)
    return max(mentions, key=lambda mention: (mention.end - mention.start, mention.period is not None))


def label(text: str, today: date = date(2026, 1, 5)) -> str | None:
    period = longest(text, today).period
    return period.label if period else None


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        (date(2026, 1, 5), "2025-Q4"),
        (date(2026, 1, 1), "2025-Q4"),
        (date(2025, 12, 31), "2025-Q3"),
        (date(2026, 3, 31), "2025-Q4"),
        (date(2026, 4, 1), "2026-Q1"),
        (date(2024, 2, 29), "2023-Q4"),
        (date(2026, 9, 30), "2026-Q2"),
        (date(2026, 10, 1), "2026-Q3"),
    ],
)
@pytest.mark.parametrize("text", ["last quarter", "上季度", "上个季度", "上一季度", "previous quarter"])
def test_last_quarter_at_quarter_boundaries(text, today, expected):
    assert label(text, today) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("this quarter", "2026-Q1"),
        ("本季度", "2026-Q1"),
        ("next quarter", "2026-Q2"),
        ("上上季度", "2025-Q3"),
        ("quarter before last", "2025-Q3"),
        ("last month", "2025-12"),
        ("上月", "2025-12"),
        ("上个月", "2025-12"),
        ("上上个月", "2025-11"),
        ("本月", "2026-01"),
        ("last week", "2026-W01"),
        ("上周", "2026-W01"),
        ("去年", "2025"),
        ("前年", "2024"),
        ("last year", "2025"),
        ("今年", "2026"),
        ("2025年第三季度", "2025-Q3"),
        ("2025年三季度", "2025-Q3"),
        ("2025年3季度", "2025-Q3"),
        ("二〇二五年三季度", "2025-Q3"),
        ("25年三季度", "2025-Q3"),
        ("2025q3", "2025-Q3"),
        ("2025-q3", "2025-Q3"),
        ("q3 2025", "2025-Q3"),
        ("q3 '25", "2025-Q3"),
        ("third quarter of 2025", "2025-Q3"),
        ("3rd quarter 2025", "2025-Q3"),
        ("last quarter of 2024", "2024-Q4"),
        ("last year's third quarter", "2025-Q3"),
        ("去年三季度", "2025-Q3"),
        ("三季度", "2025-Q3"),
        ("q1", "2026-Q1"),
        ("2025年前三季度", "2025-01-01..2025-09-30"),
        ("前三季度", "2025-01-01..2025-09-30"),
        ("first half of 2025", "2025-H1"),
        ("2025年下半年", "2025-H2"),
        ("2025年3月", "2025-03"),
        ("march 2025", "2025-03"),
        ("in may", "2025-05"),
        ("2025-03", "2025-03"),
        ("2025年3月5日", "2025-03-05"),
        ("march 5, 2025", "2025-03-05"),
        ("5 march 2025", "2025-03-05"),
        ("2024-02-29", "2024-02-29"),
        ("today", "2026-01-05"),
        ("昨天", "2026-01-04"),
        ("past 3 months", "2025-10-01..2025-12-31"),
        ("last three months", "2025-10-01..2025-12-31"),
        ("近三个月", "2025-10-01..2025-12-31"),
        ("过去两个季度", "2025-07-01..2025-12-31"),
        ("past 7 days", "2025-12-29..2026-01-04"),
        ("year to date", "2026-01-01..2026-01-05"),
        ("年初至今", "2026-01-01..2026-01-05"),
        ("今年以来", "2026-01-01..2026-01-05"),
        ("since march", "2025-03-01..2026-01-05"),
        ("since 2025-03-01", "2025-03-01..2026-01-05"),
        ("2025年3月以来", "2025-03-01..2026-01-05"),
        ("from q1 to q3 2025", "2025-01-01..2025-09-30"),
        ("2025年1月到3月", "2025-01-01..2025-03-31"),
        ("between january and march 2025", "2025-01-01..2025-03-31"),
        ("2025-01-15 to 2025-02-15", "2025-01-15..2025-02-15"),
        ("november 2024 to february 2025", "2024-11-01..2025-02-28"),
    ],
)
def test_wordings(text, expected):
    mention = longest(text, date(2026, 1, 5))
    assert (mention.start, mention.end) == (0 if not text.startswith("in ") else 3, len(text))
    assert label(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("第五季度", "q7 2025", "in 1847", "2025年13月", "2025年2月30日"),
        *("2025-02-29", "01/02/2025", "1847年", "q3 2500", "in 2101"),
    ],
)  # fmt: skip
def test_what_is_no_period(text):
    mention = longest(text, date(2026, 1, 5))
    assert mention.period is None


@pytest.mark.parametrize(
    "text", ["we may go", "marching band", "decline", "sequel 3", "the mayor", "一下", "十五"]
)
def test_words_that_only_look_like_dates(text):
    assert find_dates(text, date(2026, 1, 5)) == ()


_RELATIVE = (
    *(
        "last quarter",
        "上季度",
        "this quarter",
        "上个月",
        "last month",
        "去年",
        "上周",
        "近三个月",
        "past 10 days",
    ),
    *(
        "year to date",
        "since march",
        "今天",
        "昨天",
        "三季度",
        "前三季度",
        "下半年",
        "上上季度",
        "last 1000 weeks",
    ),
    *("12月", "q4", "since q2", "next year"),
)


@given(st.dates(date(1990, 1, 1), date(2100, 12, 31)), st.sampled_from(_RELATIVE))
def test_intervals_are_valid_for_any_clock(today, text):
    mention = longest(text, today)
    period = mention.period
    assert (mention.start, mention.end) == (0, len(text))
    if period is None:
        assert today.year in (1990, 2100)  # the year before or after the calendar a request may name
        return
    assert period.start < period.end
    assert period.label
    if text in ("last quarter", "上季度"):
        quarter_start = date(today.year, (today.month - 1) // 3 * 3 + 1, 1)
        assert period.end == quarter_start
        assert (quarter_start - period.start).days in (90, 91, 92)
