"""Single mentions of periods: every wording in Chinese and English, and how it becomes an interval.

"Last N units" means the N complete units before the current one, as "last quarter" does. A quarter, month or half
named without a year is the latest one that has begun, and says so.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from tools.text import calendar
from tools.text.calendar import CalendarUnit
from tools.text.numerals import parse_number
from tools.text.request import Period

_Values = dict[str, str]
_Build = Callable[[_Values, date], Period | None]

_UNITS: dict[str, CalendarUnit] = {
    "day": "day",
    "week": "week",
    "month": "month",
    "quarter": "quarter",
    "qtr": "quarter",
    "year": "year",
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "月份": "month",
    "季度": "quarter",
    "季": "quarter",
    "年": "year",
    "年度": "year",
}
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
_MONTH_INDEX = {
    **{name: index for index, name in enumerate(_MONTH_NAMES, start=1)},
    **{name[:3]: index for index, name in enumerate(_MONTH_NAMES, start=1)},
    "sept": 9,
}
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "last": 4,
    "final": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "5th": 5,
    "6th": 6,
}
_YEARS = {
    "去年": -1,
    "上年": -1,
    "上一年": -1,
    "今年": 0,
    "本年": 0,
    "当年": 0,
    "前年": -2,
    "明年": 1,
    "last year": -1,
    "the previous year": -1,
    "previous year": -1,
    "the prior year": -1,
    "this year": 0,
    "next year": 1,
}
_OFFSETS = {
    "上": -1,
    "上一": -1,
    "上个": -1,
    "上一个": -1,
    "前一": -1,
    "前一个": -1,
    "上上": -2,
    "上上个": -2,
    "本": 0,
    "这": 0,
    "这个": 0,
    "这一": 0,
    "当": 0,
    "当前": 0,
    "下": 1,
    "下个": 1,
    "下一": 1,
    "下一个": 1,
    "last": -1,
    "previous": -1,
    "prior": -1,
    "past": -1,
    "preceding": -1,
    "this": 0,
    "current": 0,
    "the current": 0,
    "next": 1,
    "coming": 1,
}
_DAYS = {
    "今天": 0,
    "今日": 0,
    "昨天": -1,
    "昨日": -1,
    "前天": -2,
    "today": 0,
    "yesterday": -1,
    "the day before yesterday": -2,
    "day before yesterday": -2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """A place in the text that speaks of a period; `period` is None where it cannot be one (第五季度, 1847)."""

    start: int
    end: int
    period: Period | None


def find_single_dates(text: str, today: date) -> Iterator[DateMention]:
    """All wordings of one period in lower-case `text`, overlapping ones included."""
    for pattern, build in _PATTERNS:
        for match in pattern.finditer(text):
            values = {name: value for name, value in match.groupdict().items() if value is not None}
            try:
                period = build(values, today)
            except (ValueError, OverflowError):
                period = None  # before year 1 or after 9999: reported as not understood
            yield DateMention(start=match.start(), end=match.end(), period=period)


def _year_number(text: str | None, today: date) -> int | None:
    """The year a word names; None if the text names none."""
    if text is None:
        return None
    if text in _YEARS:
        return today.year + _YEARS[text]
    digits = parse_number(text.lstrip("'"))
    number = int(digits) if digits is not None else 0
    return number + 2000 if number < 100 else number


def _number(text: str) -> int:
    if text in _ORDINALS:
        return _ORDINALS[text]
    if text in ("a couple of", "couple of"):
        return 2
    value = 1 if text == "a" else parse_number(text)
    if value is None:
        raise ValueError(text)
    return int(value)


def _part_of_year(
    values: _Values, today: date, make: Callable[[int, int], Period | None], number: int
) -> Period | None:
    """A quarter, half or month: of the year named, else the latest that has begun."""
    year = _year_number(values.get("year"), today)
    if year is not None:
        return make(year, number)
    for candidate in (today.year, today.year - 1):
        period = make(candidate, number)
        if period is not None and period.start <= today:
            return replace(period, assumed_year=True)
    return None


def _quarter(values: _Values, today: date) -> Period | None:
    return _part_of_year(values, today, calendar.quarter, _number(values["number"]))


def _half(values: _Values, today: date) -> Period | None:
    number = {"上": 1, "下": 2}.get(values["number"]) or _number(values["number"])
    return _part_of_year(values, today, calendar.half, number)


def _month(values: _Values, today: date) -> Period | None:
    named = values["month"].rstrip(".")
    number = _MONTH_INDEX.get(named) or _number(named)
    if "day" not in values:
        return _part_of_year(values, today, calendar.month, number)
    day = _number(values["day"])
    return _part_of_year(values, today, lambda year, month: calendar.day(year, month, day), number)


def _day(values: _Values, today: date) -> Period | None:
    return calendar.day(int(values["year"]), int(values["month"]), int(values["day"]))


def _year(values: _Values, today: date) -> Period | None:
    number = _year_number(values["year"], today)
    return calendar.year(number) if number is not None else None


def _relative(values: _Values, today: date) -> Period | None:
    return calendar.unit_at(_UNITS[values["unit"]], today, _OFFSETS[values["which"].strip()])


def _last_n(values: _Values, today: date) -> Period | None:
    return calendar.last_units(_UNITS[values["unit"]], today, _number(values["number"]))


def _to_date(values: _Values, today: date) -> Period | None:
    named = (
        values.get("unit")
        or values.get("current")
        or {"y": "year", "q": "quarter", "m": "month"}[values["letter"]]
    )
    unit = _UNITS[named]
    return calendar.span(calendar.first_of(unit, today), today + timedelta(days=1))


def _year_to_date(values: _Values, today: date) -> Period | None:
    return _to_date({"unit": "year"}, today)


def _before_last(values: _Values, today: date) -> Period | None:
    return calendar.unit_at(_UNITS[values["unit"]], today, -2)


def _latest(values: _Values, today: date) -> Period | None:
    """The latest one that is over; "the latest quarter" could be the one under way, so it is said."""
    found = calendar.unit_at(_UNITS[values["unit"]], today, -1)
    return replace(found, assumed_year=True) if found else None


def _near_day(values: _Values, today: date) -> Period | None:
    return calendar.unit_at("day", today, _DAYS[values["which"]])


def _first_quarters(values: _Values, today: date) -> Period | None:
    """前三季度: the first three quarters of a year, as Chinese reports count them."""
    count = _number(values["number"])

    def make(year: int, _: int) -> Period | None:
        first, last = calendar.quarter(year, 1), calendar.quarter(year, count)
        return calendar.span(first.start, last.end, "quarter") if first and last else None

    year = _year_number(values.get("year"), today)
    if year is not None:
        return make(year, count)
    last_begun = calendar.quarter(today.year, count)
    found = make(today.year if last_begun and last_begun.start <= today else today.year - 1, count)
    return replace(found, assumed_year=True) if found else None


def _nothing(values: _Values, today: date) -> Period | None:
    """A mention of a period that has no single meaning, e.g. 01/02/2025 (day or month first?)."""
    return None


_N_ZH = r"[零〇一二两三四五六七八九十\d]+"
_UNIT_ZH = r"(?:个)?(?P<unit>季度|季|月份|月|年度|年|星期|礼拜|周|天|日)"
_YEAR_ZH = (
    r"(?P<year>\d{2,4}(?=年)|[二〇零一三四五六七八九]{4}(?=年)|去年|今年|前年|明年|上年|本年|上一年|当年)"
    r"(?:度)?年?(?:度)?"
)
_WHICH_ZH = "上上个?|上一个|上个|上一|上|本|这个|这一|这|当前|当|前一个|前一|下一个|下个|下一|下"
_N_EN = r"\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a|couple of|a couple of"
_UNIT_EN = r"(?P<unit>day|week|month|quarter|qtr|year)s?"
_MONTH_EN = rf"(?P<month>{'|'.join(sorted(_MONTH_INDEX, key=len, reverse=True))})\.?"
_YEAR_EN = r"(?P<year>\d{4}|'\d{2}|(?:last|this|next|(?:the )?previous|the prior) year)"
_ORDINAL_EN = r"(?P<number>first|second|third|fourth|fifth|sixth|1st|2nd|3rd|4th|5th|6th)"
_WHICH_EN = r"(?P<which>last|previous|prior|past|preceding|this|the current|current|next|coming)"
_RECENT_EN = r"(?:last|past|previous|recent|most recent|trailing|preceding|prior)"
# Short month names that are words or parts of names too count as months only after one of these.
_DOUBTFUL_MONTHS = ("may", "mar", "sep", "dec", "jan", "jun")
_CLEAR_MONTHS = "|".join(sorted(set(_MONTH_INDEX) - set(_DOUBTFUL_MONTHS), key=len, reverse=True))
_PREPOSITIONS = (
    *("in", "of", "for", "during", "since", "from", "year", "to", "until", "and", "or"),
    *("vs", "vs.", "versus", "against", "than", "with"),
)
_AFTER_PREPOSITION = f"(?:{'|'.join(f'(?<={word} )' for word in _PREPOSITIONS)})"
# A fall is a season here, not a decrease.
_SEASON_EN = (
    r"(?:(?:in|during|since|until) the (?:fall|autumn|spring|summer|winter)(?: of)?(?: \d{4})?(?! (?:in|of) [a-z])"
    r"|(?:the )?(?:fall|autumn|spring|summer|winter)(?: of)? \d{4}"
    r"|(?:this|last|next) (?:fall|autumn|spring|summer|winter))"
)
_AND_EN = r"(?:vs\.?|versus|and|or|against|compared (?:to|with))"
_NOT_AN_AMOUNT = r"(?![\d%.,]*[\d%])(?! ?(?:yuan|units|rmb|cny|dollars|percent))"

_CHINESE: tuple[tuple[str, _Build], ...] = (
    (rf"(?:{_YEAR_ZH}的?)?第?(?P<number>{_N_ZH})季度?", _quarter),
    (rf"(?:{_YEAR_ZH}的?)?前(?P<number>[二三四234])季度", _first_quarters),
    (rf"(?:{_YEAR_ZH}的?)?(?P<number>[上下])半年(?:度)?", _half),
    (rf"(?:{_YEAR_ZH}的?)?(?P<month>{_N_ZH})月份?(?:(?P<day>{_N_ZH})[日号])?", _month),
    (rf"{_YEAR_ZH}(?:全年|整年|一整年)?", _year),
    (rf"(?P<which>{_WHICH_ZH})(?P<unit>季度|季|月份|月|年度|星期|礼拜|周)", _relative),
    # By itself too, for 线上上季度: online, last quarter.
    (r"(?P<which>上个?)(?P<unit>季度|季|月份|月|年度|星期|礼拜|周)", _relative),
    (r"(?P<which>上一|前一)(?P<unit>年)度?", _relative),
    (rf"(?:最近的?|近|过去的?|前(?!\w{{1,2}}季)|之前的?|往前)(?P<number>{_N_ZH}){_UNIT_ZH}", _last_n),
    (rf"(?:最近的?|刚刚?(?:结束|过去)的?){_UNIT_ZH}(?![内里])", _latest),
    (r"[今本当]?年初(?:至今|以来|到现在|到今天)|[今本]年(?:以来|至今)", _year_to_date),
    (r"[本这]个?(?P<unit>季度|季|月)(?:以来|至今|到现在)", _to_date),
    (r"(?P<which>今天|今日|昨天|昨日|前天)", _near_day),
    (r"(?<!\d)(?P<year>\d{4})年?\s?第?q(?P<number>\d+)(?![a-z\d])", _quarter),
    (r"(?P<year>去年|今年|前年|上年)的?\s?q(?P<number>\d+)(?![a-z\d])", _quarter),
)
_ENGLISH: tuple[tuple[str, _Build], ...] = (
    (rf"q(?P<number>\d+)(?:(?: of| in|,)? ?[-/]?{_YEAR_EN})?(?!\d)", _quarter),
    (r"(?P<year>\d{4})[-/ ]?q(?P<number>\d+)(?!\d)", _quarter),
    (r"(?P<year>last year|this year)(?:'s|s)? q(?P<number>\d+)(?!\d)", _quarter),
    (rf"{_ORDINAL_EN} quarter(?: of(?: the year)?| in)?,? {_YEAR_EN}", _quarter),
    (rf"(?P<number>last|final) quarter of {_YEAR_EN}", _quarter),
    (rf"{_ORDINAL_EN} quarter(?: of the year)?", _quarter),
    (rf"(?P<year>last year|this year)(?:'s|s)? {_ORDINAL_EN} quarter", _quarter),
    (r"(?P<year>last year|this year)(?:'s|s)? (?P<number>last|final) quarter", _quarter),
    (rf"(?P<number>first|second) half(?: of| in)?(?: the year)?(?:,? {_YEAR_EN})?", _half),
    (rf"h(?P<number>[12])(?:(?: of| in)? ?{_YEAR_EN})?(?!\d)", _half),
    (r"(?P<year>\d{4})[-/ ]?h(?P<number>[12])(?!\d)", _half),
    (rf"{_MONTH_EN}(?: of| in)?,? {_YEAR_EN}(?!\d)", _month),
    (rf"{_MONTH_EN} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? {_YEAR_EN})?(?!\d)", _month),
    (rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH_EN}(?:,? {_YEAR_EN})?(?!\d)", _month),
    (rf"(?P<month>{_CLEAR_MONTHS})", _month),
    (rf"(?:{_AFTER_PREPOSITION}|(?<=last ))(?P<month>{'|'.join(_DOUBTFUL_MONTHS)})", _month),
    (rf"{_WHICH_EN} {_UNIT_EN}", _relative),
    (r"(?P<unit>quarter|month|year|week) before last", _before_last),
    (rf"(?:most recent|latest|last (?:full|complete|completed)|most recently completed) {_UNIT_EN}", _latest),
    (rf"{_UNIT_EN} (?:that (?:has )?)?just (?:ended|past|finished|closed)", _latest),
    (rf"{_RECENT_EN} (?P<number>{_N_EN})(?: full| complete| calendar)?[ -]{_UNIT_EN}", _last_n),
    (r"(?:the )?(?P<unit>year|quarter|month|week)[ -]to[ -]date", _to_date),
    (r"(?P<letter>[yqm])td|so far this (?P<current>year|quarter|month)", _to_date),
    (r"this (?P<current>year|quarter|month) so far", _to_date),
    (rf"(?P<which>{'|'.join(sorted((day for day in _DAYS if day.isascii()), key=len, reverse=True))})", _near_day),
    (rf"{_AFTER_PREPOSITION}(?P<year>\d{{4}}){_NOT_AN_AMOUNT}", _year),
    (rf"(?P<year>20\d\d)(?= ?{_AND_EN} (?:in )?20\d\d(?!\d))", _year),
    (rf"{_SEASON_EN}", _nothing),
)
_DIGITS_ONLY: tuple[tuple[str, _Build], ...] = (
    (r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)", _day),
    (r"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d{1,2})(?![-/]?\d)", _month),
    (r"(?<!\d)\d{1,2}[/.]\d{1,2}[/.]\d{2,4}(?!\d)", _nothing),
)
_PATTERNS: tuple[tuple[re.Pattern[str], _Build], ...] = (
    *((re.compile(pattern), build) for pattern, build in (*_CHINESE, *_DIGITS_ONLY)),
    *((re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])"), build) for pattern, build in _ENGLISH),
)
