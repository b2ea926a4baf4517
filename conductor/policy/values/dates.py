"""Dates and times in a text, and the form in which an argument wants them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)}
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>\d{4})\s?[-/.年]\s?(?P<month>\d{1,2})\s?[-/.月]\s?(?P<day>\d{1,2})日?(?!\d)",
        r"(?<![\d/.])(?P<first>\d{1,2})[-/.](?P<second>\d{1,2})[-/.](?P<year>\d{4})(?!\d)",
        rf"\b(?P<name>{_MONTH})\b\.?\s*(?:the\s+)?{_DAY},?(?:\s*,?\s+(?:of\s+)?(?P<year>\d{{4}}))?\b(?!:)",
        rf"\b(?:the\s+)?{_DAY}\s+(?:of\s+)?(?P<name>{_MONTH})\b\.?(?:,?\s+(?P<year>\d{{4}}))?\b",
        rf"\b(?P<year>\d{{4}})[\s,]+(?P<name>{_MONTH})\.?\s+{_DAY}\b",
    )
)
_TIME = re.compile(
    r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))(?::(?P<second>\d{2}))?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"|\b(?P<hour2>\d{1,2})\s*(?P<half2>[ap]\.?m\b\.?)|\b(?P<noon>noon|midnight)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d{2})(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """A day as it stands in a text, characters [start, end)."""

    start: int
    end: int
    day: date
    assumed_year: bool
    """The text names no year with it; the year is the only other one in the text."""
    ambiguous: bool
    """Day and month could be exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMention:
    """A time of day as it stands in a text, characters [start, end)."""

    start: int
    end: int
    hour: int
    minute: int
    second: int


def find_dates(text: str, *, day_first: bool = False) -> tuple[DateMention, ...]:
    """Every full date in `text`; one without a year takes the only year that the text names, if it names one."""
    years = {int(match[1]) for match in _YEAR.finditer(text)}
    found: dict[int, DateMention] = {}
    for pattern in _DATES:
        for match in pattern.finditer(text):
            mention = _date(match, years, day_first)
            if mention and not any(
                mention.start < other.end and other.start < mention.end for other in found.values()
            ):
                found[mention.start] = mention
    return tuple(found[start] for start in sorted(found))


def _date(match: re.Match[str], years: set[int], day_first: bool) -> DateMention | None:
    groups = match.groupdict()
    year, ambiguous = groups.get("year"), False
    if year is None and len(years) != 1:
        return None
    if groups.get("first"):
        first, second = int(groups["first"]), int(groups["second"])
        ambiguous = first <= 12 and second <= 12
        month, day = (second, first) if first > 12 or (day_first and second <= 12) else (first, second)
    else:
        month = _MONTH_NUMBERS[groups["name"].lower()] if groups.get("name") else int(groups["month"])
        day = int(groups["day"])
    try:
        found = date(int(year) if year else next(iter(years)), month, day)
    except ValueError:
        return None
    return DateMention(start=match.start(), end=match.end(), day=found, assumed_year=not year, ambiguous=ambiguous)


def find_times(text: str) -> tuple[TimeMention, ...]:
    """Every time of day in `text`, from left to right."""
    found = []
    for match in _TIME.finditer(text):
        if match["noon"]:
            hour, minute, half = (12 if match["noon"].lower() == "noon" else 0), 0, ""
        else:
            hour, minute = int(match["hour"] or match["hour2"]), int(match["minute"] or 0)
            half = (match["half"] or match["half2"] or "").lower()
        if half and hour <= 12:
            hour = hour % 12 + (12 if half.startswith("p") else 0)
        if hour < 24 and minute < 60:
            second = int(match["second"] or 0)
            found.append(
                TimeMention(start=match.start(), end=match.end(), hour=hour, minute=minute, second=second)
            )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The form of a date, a time or both, as `strftime` writes it."""

    pattern: str
    has_date: bool
    has_time: bool
    day_first: bool = False
    clock: str = ""
    """How a time alone is written where the argument may be one."""
    joint: str = ""
    """What stands between the two dates of a range."""


_WRITTEN = (
    ("yyyy", "%Y"), ("mm", "%m"), ("dd", "%d"), ("hh", "%H"), ("ss", "%S"),
)  # fmt: skip
_FORMAT = re.compile(
    r"(?<![a-z])(yyyy[-/.]?mm[-/.]?dd|mm[-/.]dd[-/.]yyyy|dd[-/.]mm[-/.]yyyy)"
    r"(?:(t|\s)hh:mm(:ss)?(?:\.\w+)?(z)?)?(?![a-z])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![a-z:])hh:mm(:ss)?(?![a-z])(\s*(?:am|pm|a))?", re.IGNORECASE)
_SAMPLES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"), "%Y-%m-%dT%H:%M:%SZ"),
    (re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"), "%Y-%m-%dT%H:%M:%S"),
    (re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"), "%Y-%m-%d %H:%M:%S"),
    (re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}"), "%Y-%m-%d %H:%M"),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    (re.compile(r"\d{4}/\d{2}/\d{2}"), "%Y/%m/%d"),
    (re.compile(r"(?<!\d)(?:1[3-9]|2\d|3[01])/\d{2}/\d{4}"), "%d/%m/%Y"),
    (re.compile(r"(?<!\d)\d{2}/\d{2}/\d{4}"), "%m/%d/%Y"),
    (re.compile(r"(?<!\d)\d{2}-\d{2}-\d{4}"), "%m-%d-%Y"),
)


def moment_of(name: str, schema: Mapping[str, Any]) -> Moment | None:
    """The form of date or time that an argument's schema asks for; None if it is about neither.

    The description decides ("YYYY-MM-DD", "e.g. 14:30"), then `format`, then its name.
    """
    text = " ".join(str(schema.get(key, "")) for key in ("description", "format", "default", "examples"))
    written = _FORMAT.search(text)
    if written:
        clock = _CLOCK.search(text[: written.start()]) or _CLOCK.search(text[written.end() :])
        joint = re.match(
            r"\s+(to|and)\s+(?:yyyy|mm|dd)|(\s?-\s)(?:yyyy|mm|dd)", text[written.end() :], re.IGNORECASE
        )
        between = (f" {joint[1]} " if joint[1] else joint[2]) if joint else ""
        return replace(_as_written(written), clock=_clock(clock) if clock else "", joint=between)
    for sample, pattern in _SAMPLES:
        if sample.search(text):
            return Moment(
                pattern=pattern, has_date=True, has_time="%H" in pattern, day_first=pattern.startswith("%d")
            )
    clock = _CLOCK.search(text)
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", f"{name} {text}").lower())
    if clock:
        return Moment(pattern=_clock(clock), has_date=False, has_time=True)
    if {"date", "dates", "day"} & set(words):
        return Moment(pattern="%Y-%m-%d", has_date=True, has_time=False)
    if "time" in words and re.search(r"(?<!\d)\d{2}:\d{2}(?!\d)", text):
        return Moment(pattern="%H:%M", has_date=False, has_time=True)
    return None


def _clock(match: re.Match[str]) -> str:
    return ("%I:%M" if match[2] else "%H:%M") + (":%S" if match[1] else "") + (" %p" if match[2] else "")


def _as_written(match: re.Match[str]) -> Moment:
    pattern = match[1].lower()
    for written, code in _WRITTEN:
        pattern = pattern.replace(written, code)
    if match[2]:
        pattern += ("T" if match[2].lower() == "t" else " ") + "%H:%M" + ("" if match[3] is None else ":%S")
        pattern += "Z" if match[4] else ""
    return Moment(
        pattern=pattern, has_date=True, has_time=match[2] is not None, day_first=pattern.startswith("%d")
    )


def write(moment: Moment, day: date | None, time: TimeMention | None) -> str | None:
    """The date and time in the wanted form; None where it needs one that is missing."""
    pattern = moment.pattern
    if moment.has_date and day is None and time is not None and moment.clock:
        pattern = moment.clock
    elif (moment.has_date and day is None) or (moment.has_time and not moment.has_date and time is None):
        return None
    day = day or date(2000, 1, 1)
    hour, minute, second = (time.hour, time.minute, time.second) if time else (0, 0, 0)
    codes = {
        "%Y": f"{day.year:04d}", "%m": f"{day.month:02d}", "%d": f"{day.day:02d}", "%H": f"{hour:02d}",
        "%M": f"{minute:02d}", "%S": f"{second:02d}", "%I": f"{(hour % 12) or 12:02d}",
        "%p": "PM" if hour >= 12 else "AM",
    }  # fmt: skip
    return re.sub(r"%[YmdHMSIp]", lambda found: codes[found[0]], pattern)
