"""Numbers in a text: digits, number words and magnitudes, with the percent sign or unit that follows."""

import math
import re
from dataclasses import dataclass

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS: dict[str, float] = {word: float(value) for value, word in enumerate(_SMALL)}
_WORDS |= {word: float(10 * value) for value, word in enumerate(_TENS, start=2)}
_MAGNITUDES: dict[str, float] = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "dozen": 12.0,
    "k": 1e3,
    "m": 1e6,
    "mn": 1e6,
    "bn": 1e9,
    "b": 1e9,
    "万": 1e4,
    "亿": 1e8,
}
_WORDED: dict[str, float] = {
    "half": 0.5,
    "once": 1.0,
    "twice": 2.0,
    "couple": 2.0,
    "pair": 2.0,
    "single": 1.0,
    "double": 2.0,
    "triple": 3.0,
    "annually": 1.0,
    "yearly": 1.0,
    "semi-annually": 2.0,
    "semiannually": 2.0,
    "quarterly": 4.0,
    "monthly": 12.0,
    "weekly": 52.0,
    "daily": 365.0,
    "first": 1.0,
    "second": 2.0,
    "third": 3.0,
    "fourth": 4.0,
    "fifth": 5.0,
    "sixth": 6.0,
    "seventh": 7.0,
    "eighth": 8.0,
    "ninth": 9.0,
    "tenth": 10.0,
    "a": 1.0,
    "an": 1.0,
}
for _index, _month in enumerate(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
    1,
):
    _WORDED[_month] = float(_index)
_UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _table in {
    "time": {
        "ms|millisecond": 0.001,
        "s|sec|second": 1.0,
        "min|minute": 60.0,
        "h|hr|hour": 3600.0,
        "day": 86400.0,
        "week": 604800.0,
        "month": 2592000.0,
        "year": 31536000.0,
    },
    "length": {
        "mm|millimeter|millimetre": 0.001,
        "cm|centimeter|centimetre": 0.01,
        "m|meter|metre": 1.0,
        "km|kilometer|kilometre": 1000.0,
    },
    "mass": {"mg|milligram": 0.001, "g|gram": 1.0, "kg|kilogram": 1000.0, "ton|tonne": 1e6},
    "imperial length": {"inch|inche|in": 1.0, "foot|feet|ft": 12.0, "yard|yd": 36.0, "mile|mi": 63360.0},
    "volume": {"ml|milliliter|millilitre": 0.001, "l|liter|litre": 1.0},
}.items():
    for _names, _size in _table.items():
        for _name in _names.split("|"):
            _UNITS[_name] = (_dimension, _size)

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+\.\d+|\.\d+|\d+)(?:[eE][-+]?\d+)?"
_WORD = "|".join(sorted((*_WORDS, "hundred", "thousand", "million", "billion"), key=len, reverse=True))
_LOOSE = "|".join(sorted(_WORDED, key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]])[-\u2212\u2013](?=[$\d.]))?"
    rf"(?:(?P<fraction>\d+/\d+)(?![\d/])"
    rf"|(?P<digits>{_DIGITS})(?:[ -]?(?P<magnitude>hundred|thousand|million|billion|trillion|dozen"
    rf"|k|mn|bn|m|b|万|亿)(?![a-z]))?(?P<ordinal>st|nd|rd|th)?(?![\d])"
    rf"|(?<![\w])(?P<words>(?:{_WORD})(?:(?:[- ]|\s+and\s+)(?:{_WORD}))*(?:\s+dozen)?|(?:a |one )?dozen)(?!\w)"
    rf"|(?<![\w])(?P<loose>{_LOOSE})(?![\w]))",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"\s*(?:%|percent\b|per cent\b|percentage points?\b)", re.IGNORECASE)
_UNIT = re.compile(r"[\s-]*([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberMention:
    """A number as it stands in a text, characters [start, end)."""

    start: int
    end: int
    value: float
    percent: bool
    unit: str
    """The unit that follows, in lower-case singular; '' where none is known."""
    loose: bool
    """A word that is only sometimes a number, such as "a", "second", "monthly" or "March"."""


def find_numbers(text: str) -> tuple[NumberMention, ...]:
    """Every number in `text`, from left to right."""
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is None or not math.isfinite(value):
            continue  # more digits than a float holds: no argument takes that as a number
        start, end = match.span()
        percent = _PERCENT.match(text, end) is not None
        unit = _UNIT.match(text, end)
        found.append(
            NumberMention(
                start=start,
                end=end,
                value=value,
                percent=percent,
                unit=_unit(unit[1]) if unit else "",
                loose=match["loose"] is not None,
            )
        )
    return tuple(found)


def tidy(value: float) -> int | float:
    """An integer where the value is one; otherwise free of the noise of binary fractions."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def in_unit(value: float, unit: str, wanted: str) -> float | None:
    """`value` in another unit of the same dimension; None where the units do not fit or are the same."""
    if unit == wanted or unit not in _UNITS or wanted not in _UNITS:
        return None
    (dimension, size), (other, target) = _UNITS[unit], _UNITS[wanted]
    if dimension != other or size == target:
        return None
    converted = value * size / target
    return converted if math.isfinite(converted) else None


def units_named(description: str) -> tuple[str, ...]:
    """Units of measure that a description of an argument names, in its order."""
    words = re.findall(r"[a-z]+", description.lower())
    found = (_unit(word) for word in words if len(word) > 1)
    return tuple(unit for unit in found if unit)


def _unit(word: str) -> str:
    word = word.lower()
    for form in (word, word.removesuffix("s")):
        if form in _UNITS:
            return form
    return ""


def _value(match: re.Match[str]) -> float | None:
    sign = -1.0 if match["sign"] else 1.0
    if match["fraction"]:
        above, below = match["fraction"].split("/")
        return sign * float(above) / float(below) if float(below) else None
    if match["digits"]:
        return sign * float(match["digits"].replace(",", "")) * _magnitude(match)
    if match["loose"]:
        return _WORDED[match["loose"].lower()]
    return _in_words(match["words"].lower())


def _magnitude(match: re.Match[str]) -> float:
    """What the number is multiplied by: "5m" is five metres, "$5m" and "5M" are millions, "298K" a temperature."""
    written = match["magnitude"] or ""
    money = match.string[max(0, match.start() - 1) : match.start()] in ("$", "€", "£")
    if written in ("m", "b", "K", "B") and not money:
        return 1.0
    return _MAGNITUDES.get(written.lower(), 1.0)


def _in_words(words: str) -> float:
    total, current = 0.0, 0.0
    for word in re.split(r"[-\s]+", words):
        if word in _WORDS:
            current += _WORDS[word]
        elif word == "hundred":
            current = (current or 1.0) * 100
        elif word == "dozen":
            current = (current or 1.0) * 12
        elif word in _MAGNITUDES:
            total, current = total + (current or 1.0) * _MAGNITUDES[word], 0.0
    return total + current
