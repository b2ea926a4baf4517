"""Find dates in every order and language, and settle the order of day and month from the whole page."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from agents.packs.invoice.extraction.frame import Segment, Span, lone_segment

_MONTH_WORDS = """
january jan janvier janv januar jaenner janner januari enero ene gennaio gen janeiro
february feb fevrier fevr fev februar februari febrero febbraio fevereiro
march mar mars marz maerz mrz maart mrt marzo marco
april apr avril avr abril abr aprile
may mai mei mayo maggio maio mag
june jun juin juni junio giugno giu junho
july jul juillet juil juli julio luglio lug julho
august aug aout augustus agosto ago
september sept sep septembre septiembre setembro settembre set
october oct octobre oktober okt octubre ottobre ott outubro out
november nov novembre noviembre novembro
december dec decembre dezember dez diciembre dic dezembro dicembre
"""
MONTHS: dict[str, int] = {
    word: number for number, line in enumerate(_MONTH_WORDS.strip().splitlines(), 1) for word in line.split()
}

_YEAR = r"(?:19|20)\d\d"
_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_OF = r"(?:de\s?l?|of|di)?"
_YMD = re.compile(
    rf"(?<![\d.,-])(?P<y>{_YEAR})\s?(?P<s>[-./])\s?(?P<a>\d{{1,2}})\s?(?P<t>[-./])\s?(?P<b>\d{{1,2}})(?!\d)(?![-/]\d)"
)
_NUMERIC = re.compile(
    rf"(?<![\d/])(?<!\d[.,-])(?P<a>\d{{1,2}})\s?(?P<s>[-./])\s?(?P<b>\d{{1,2}})\s?(?P<t>[-./])\s?(?P<y>{_YEAR}|\d\d)(?!\d)(?![-/.,]\d)"
)
_CJK = re.compile(r"(?P<y>(?:19|20)?\d\d)\s?年\s?(?P<a>\d{1,2})\s?月\s?(?P<b>\d{1,2})\s?[日号]?")
_HAN = re.compile(
    r"(?P<y>[〇零一二三四五六七八九]{4})\s?年\s?(?P<a>[一二三四五六七八九十]{1,2})\s?月"
    r"\s?(?P<b>[一二三四五六七八九十]{1,3})\s?[日号]"
)
_DAY_FIRST = re.compile(
    rf"(?<![\d.,])(?P<d>\d{{1,2}})\s?(?:st|nd|rd|th|er|o|e|ª)?\s?[-./,]?\s?{_OF}\s?"
    rf"(?P<m>{_NAME})(?!(?!de|of|di)[a-z]{{2}})\s?[-./,']{{0,2}}\s?{_OF}\s?(?P<y>{_YEAR}|\d\d(?![\d.,:]))"
)
_DAY_FIRST_MISREAD = re.compile(
    rf"(?<![\d.,])(?P<d>\d{{1,2}})(?:st|nd|rd|th|er)?[-./, ]{{1,2}}"
    rf"(?P<m>[a-z]{{5,10}})[-./, ]{{1,2}}(?P<y>{_YEAR})(?!\d)"
)
_MONTH_FIRST = re.compile(
    rf"(?<![a-z])(?P<m>{_NAME})(?![a-z])\s?[-./,]?\s?"
    rf"(?P<d>\d{{1,2}})\s?(?:st|nd|rd|th)?\s?[-.,/']?\s?(?P<y>{_YEAR}|(?<=[',])\d\d)(?!\d)"
)
_MONTH_FIRST_MISREAD = re.compile(
    rf"(?<![a-z])(?P<m>[a-z]{{5,10}})\s(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s?,?\s?(?P<y>{_YEAR})(?!\d)"
)
_YEAR_FIRST = re.compile(rf"(?P<y>{_YEAR})\s?[-./, ]\s?(?P<m>{_NAME})\s?[-./, ]\s?(?P<d>\d{{1,2}})(?!\d)")
_BARE = re.compile(r"(?<!\d)(?P<y>20[0-4]\d)(?P<a>0[1-9]|1[0-2])(?P<b>0[1-9]|[12]\d|3[01])(?!\d)")
_GLUED = re.compile(r"(?<=\d)(?P<y>20[0-4]\d)(?P<s>-)(?P<a>\d\d)(?P<t>-)(?P<b>\d\d)(?!\d)")
_HAN_DIGITS = {char: str(value) for value, char in enumerate("零一二三四五六七八九")} | {"〇": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DateFound:
    """A date as printed, with the day it most likely means."""

    span: Span
    day: dt.date
    other: dt.date | None = None
    """The day under the other order of day and month; None when the order is certain."""
    style: str
    """``ymd``, ``word``, ``cjk``, ``numeric`` or ``bare`` (eight digits, a date only beside a date's label)."""
    certainty: float = 1.0
    """How sure the order of day and month is."""
    short_year: bool = False
    torn: bool = False
    """True when only one of day and month is padded with a zero: the OCR may have lost a digit of the other."""


def find_dates(segments: Sequence[Segment]) -> list[DateFound]:
    """Every date; numeric ones are read day first until `settle_order` has looked at the page."""
    found: list[DateFound] = []
    for segment in segments:
        busy: list[tuple[int, int]] = []
        for start, end, date in _in_text(segment):
            if all(end <= a or start >= b for a, b in busy):
                busy.append((start, end))
                found.append(date)
    return found


def parse_text(text: str) -> set[dt.date]:
    """Every day that a date in `text` can mean, in either order of day and month."""
    segment = lone_segment(text)
    return {day for _, _, date in _in_text(segment) for day in (date.day, date.other) if day}


_PATTERNS = (
    (_YMD, "ymd"),
    (_CJK, "cjk"),
    (_HAN, "han"),
    (_DAY_FIRST, "word"),
    (_MONTH_FIRST, "word"),
    (_YEAR_FIRST, "word"),
    (_DAY_FIRST_MISREAD, "misread"),
    (_MONTH_FIRST_MISREAD, "misread"),
    (_NUMERIC, "numeric"),
    (_BARE, "bare"),
    (_GLUED, "glued"),
)


def _in_text(segment: Segment) -> Iterator[tuple[int, int, DateFound]]:
    plain = segment.folded.plain
    if not any(char.isdigit() or char == "年" for char in plain):
        return
    for pattern, style in _PATTERNS:
        for match in pattern.finditer(plain):
            date = _read(segment, match, style)
            if date:
                yield match.start(), match.end(), date


def _read(segment: Segment, match: re.Match[str], style: str) -> DateFound | None:
    first, last = segment.folded.span(*match.span())
    span = Span(segment=segment, start=first, end=last)
    parts = match.groupdict()
    if style == "han":
        return _plain(span, _han_number(parts["y"]), _han_number(parts["a"]), _han_number(parts["b"]), "cjk")
    short = len(parts["y"]) == 2
    year = int(parts["y"]) + (2000 if short else 0)
    if style == "glued":
        # Two columns that the OCR ran together: the year may have taken a digit of the number before it.
        date = _plain(span, year, int(parts["a"]), int(parts["b"]), "ymd")
        return replace(date, certainty=0.8) if date else None
    if style in {"word", "misread"}:
        month = month_number(parts["m"])
        date = _plain(span, year, month, int(parts["d"]), "word") if month else None
        return replace(date, short_year=short, certainty=1.0 if style == "word" else 0.85) if date else None
    a, b = int(parts["a"]), int(parts["b"])
    mixed = parts.get("s") != parts.get("t")
    if mixed and short:
        return None
    date = (
        _plain(span, year, a, b, style) if style in {"ymd", "cjk", "bare"} else _numeric(span, a, b, year, short)
    )
    # Two kinds of separators in one date are an OCR slip, and then a digit may be one too.
    torn = {parts["a"][:1] == "0", parts["b"][:1] == "0"} == {True, False} and min(
        len(parts["a"]), len(parts["b"])
    ) == 1
    return replace(date, certainty=date.certainty * (0.85 if mixed else 1.0), torn=torn) if date else None


def _numeric(span: Span, a: int, b: int, year: int, short: bool) -> DateFound | None:
    day_first, month_first = _day(year, b, a), _day(year, a, b)
    if short and not day_first and not month_first:
        # 24-03-18: the year may stand first.
        early = _day(2000 + a, b, year - 2000)
        return DateFound(span=span, day=early, style="numeric", short_year=True, certainty=0.7) if early else None
    chosen = day_first or month_first
    if chosen is None:
        return None
    other = month_first if day_first and month_first and day_first != month_first else None
    return DateFound(
        span=span, day=chosen, other=other, style="numeric", short_year=short, certainty=0.5 if other else 1.0
    )


def _plain(span: Span, year: int, month: int, day: int, style: str) -> DateFound | None:
    date = _day(year, month, day)
    return DateFound(span=span, day=date, style=style) if date else None


def _day(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def _han_number(text: str) -> int:
    if "十" not in text:
        return int("".join(_HAN_DIGITS[char] for char in text))
    tens, _, ones = text.partition("十")
    return int(_HAN_DIGITS.get(tens, "1")) * 10 + int(_HAN_DIGITS.get(ones, "0"))


def month_number(word: str) -> int | None:
    """Month of a folded name or abbreviation; one misread letter is forgiven in long names."""
    if word in MONTHS:
        return MONTHS[word]
    if len(word) < 5:
        return None
    near = {
        number
        for name, number in MONTHS.items()
        if len(name) >= 5 and Levenshtein.distance(word, name, score_cutoff=1) <= 1
    }
    return near.pop() if len(near) == 1 else None


def swapped(dates: Sequence[DateFound], certainty: float) -> list[DateFound]:
    """The dates with day and month of the ambiguous ones exchanged."""
    return [
        replace(date, day=date.other, other=date.day, certainty=certainty) if date.other else date
        for date in dates
    ]


def settle_order(dates: Sequence[DateFound], month_first_prior: float) -> list[DateFound]:
    """Decide day-month order for the ambiguous numeric dates.

    A page writes all its dates alike: one date whose day is above 12 settles all. Without such a date the prior
    decides (the share of belief that the writer puts the month first), and the certainty says so.
    """
    votes = {"day": 0.0, "month": 0.0}
    for date in dates:
        if date.style == "numeric" and date.other is None:
            votes[_order_of(date)] += 1
    certain = abs(votes["day"] - votes["month"]) >= 1
    month_first = votes["month"] > votes["day"] if certain else month_first_prior > 0.5
    settled = []
    for date in dates:
        if date.other is None:
            settled.append(date)
            continue
        dotted = "." in date.span.text
        use_month = month_first and not (dotted and not certain)
        certainty = 0.98 if certain else 0.97 if dotted else max(month_first_prior, 1 - month_first_prior)
        settled.append(swapped([date], certainty)[0] if use_month else replace(date, certainty=certainty))
    return settled


def _order_of(date: DateFound) -> str:
    first = int(re.match(r"\d+", date.span.segment.folded.plain[_plain_start(date) :]).group())  # type: ignore[union-attr]  # the pattern that found it starts with digits
    return (
        "day"
        if first == date.day.day and first != date.day.month
        else "month"
        if first == date.day.month and first != date.day.day
        else "day"
    )


def _plain_start(date: DateFound) -> int:
    return date.span.segment.folded.plain_at.index(date.span.start)
