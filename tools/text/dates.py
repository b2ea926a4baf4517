"""Find mentions of periods in Chinese and English: single ones, ranges, and "since".

"Since" and "to date" run through today, the day of the injected clock.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

from tools.text import calendar
from tools.text.date_expressions import DateMention, find_single_dates
from tools.text.request import Period

_TO = re.compile(r"\s*(?:to|through|thru|until|till|and|-|~|到|至|和|与)\s*")
_FROM = re.compile(r"(?:(?<![a-z])(?:from|between)\s+(?:the\s+)?|从|自)$")
_SINCE_EN = re.compile(r"(?<![a-z])(?:since|starting(?: from)?|from)\s+(?:the\s+)?$")
_SINCE_ZH = re.compile(r"(?:自从|自|从)$")
_ONWARDS = re.compile(
    r"\s*(?:以来|至今|到现在|到今天|开始|起|onwards?|on(?![a-z])|until now|to date|until today|to today)"
)


def find_dates(text: str, today: date) -> tuple[DateMention, ...]:
    """All mentions of periods in lower-case `text`, overlapping ones included; the caller chooses among them."""
    singles = tuple(find_single_dates(text, today))
    return (*singles, *_ranges(text, singles), *_open_ends(text, singles, today))


def _ranges(text: str, singles: tuple[DateMention, ...]) -> Iterator[DateMention]:
    """Two periods joined by "to" (or by "and" after "between"), the year of one serving both."""
    starts: dict[int, list[DateMention]] = {}
    for mention in singles:
        starts.setdefault(mention.start, []).append(mention)
    for left in singles:
        joiner = _TO.match(text, left.end)
        if joiner is None or left.period is None:
            continue
        before = _FROM.search(text, 0, left.start)
        if joiner[0].strip() in ("and", "和", "与") and (before is None or "between" not in before[0]):
            continue
        for right in starts.get(joiner.end(), ()):
            period = _between(left.period, right.period)
            if period is not None:
                start = before.start() if before else left.start
                tail = 2 if text.startswith("之间", right.end) else 0
                yield DateMention(start=start, end=right.end + tail, period=period)


def _between(left: Period, right: Period | None) -> Period | None:
    if right is None or left.granularity != right.granularity:
        return None
    if left.assumed_year and not right.assumed_year:
        left = _in_year(left, right.start.year)
    elif right.assumed_year and not left.assumed_year:
        right = _in_year(right, left.start.year)
    found = calendar.span(left.start, right.end, left.granularity)
    return replace(found, assumed_year=left.assumed_year) if found else None


def _in_year(period: Period, year: int) -> Period:
    months = 12 * (year - period.start.year)
    day_of_month = timedelta(days=period.start.day - 1)
    start = calendar.step("month", period.start.replace(day=1), months) + day_of_month
    if period.granularity == "day":
        return replace(period, start=start, end=start + timedelta(days=1), assumed_year=False)
    return replace(period, start=start, end=calendar.step("month", period.end, months), assumed_year=False)


def _open_ends(text: str, singles: tuple[DateMention, ...], today: date) -> Iterator[DateMention]:
    """From the start of a period through today: "since March", 3月以来, "from 2025-03-01 onwards"."""
    for mention in singles:
        english = _SINCE_EN.search(text, 0, mention.start)
        chinese = _SINCE_ZH.search(text, 0, mention.start)
        onwards = _ONWARDS.match(text, mention.end)
        is_since = english is not None and english[0].startswith("since")
        if onwards and onwards[0].strip() == "on" and english is None:
            onwards = None  # "last quarter on the phone"
        if not is_since and onwards is None:
            continue
        before = english or chinese
        start = before.start() if before else mention.start
        period = mention.period and calendar.span(mention.period.start, today + timedelta(days=1))
        if period is not None and mention.period is not None:
            period = replace(period, assumed_year=mention.period.assumed_year)
        yield DateMention(start=start, end=onwards.end() if onwards else mention.end, period=period)
