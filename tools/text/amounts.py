"""Find amounts: plain numbers, percentages, percentage points and money, in digits and in words, exactly."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tools.text.numerals import CHINESE, DIGITS, ENGLISH, MAGNITUDES, parse_number
from tools.text.request import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount and its place; a ratio of 15 % has the value 3/20."""

    start: int
    end: int
    value: Fraction
    unit: Unit
    currency: str | None
    bare_words: bool
    """Written in Chinese characters or words without a unit: 一 may be no number at all."""


_MAGNITUDE = (
    r"(?P<magnitude>百万|千万|万亿|千|万|亿|(?:k|mn|bn|m)(?![a-z])|\s?(?:thousand|million|billion)(?![a-z]))?"
)
_PREFIX = r"(?P<prefix>[$¥€£]|rmb\s?|cny\s?|usd\s?|eur\s?)?"
_SUFFIX = (
    r"\s?(?P<suffix>‰|个?百分点|个点|percentage points?(?![a-z])|pp(?![a-z])|pct points?(?![a-z])|points(?![a-z])"
    r"|%|percent(?![a-z])|per cent(?![a-z])|pct(?![a-z])|per mille(?![a-z])"
    r"|元|块钱?|人民币|yuan(?![a-z])|rmb(?![a-z])|cny(?![a-z])|usd(?![a-z])|dollars?(?![a-z])|美元|欧元|"
    r"euros?(?![a-z])|eur(?![a-z]))?"
)
_AMOUNT = re.compile(
    rf"{_PREFIX}(?P<sign>(?<![\w)])-)?(?:(?P<digits>(?<![\d.]){DIGITS})|(?P<words>{CHINESE}|"
    rf"{ENGLISH})){_MAGNITUDE}{_SUFFIX}"
)
_HALF = r"一半|半数|(?<![a-z])(?:a |one )?half(?! of (?:the )?year)(?! year)(?![a-z])|(?<=过)半"
_TENTHS = r"(?P<n>[一二两三四五六七八九\d])成(?P<half>半|[一二三四五六七八九\d])?(?![为功本交就])"
_SPECIAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"百分之(?P<n>{CHINESE}|{DIGITS})"), "hundredth"),
    (re.compile(rf"千分之(?P<n>{CHINESE}|{DIGITS})"), "thousandth"),
    (re.compile(_TENTHS), "tenth"),
    (re.compile(r"(?P<d>[二三四五六七八九十]|\d+)分之(?P<n>[一二两三四五六七八九]|\d+)"), "fraction"),
    (re.compile(_HALF), "half"),
    (re.compile(r"(?<![a-z])(?:a|one) (?P<w>third|quarter|fifth|tenth)(?![a-z])"), "english"),
)
_ENGLISH_PARTS = {"third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_CURRENCIES = {
    "$": "USD",
    "usd": "USD",
    "dollar": "USD",
    "dollars": "USD",
    "美元": "USD",
    "£": "GBP",
    "€": "EUR",
    "eur": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "欧元": "EUR",
    "¥": "CNY",
    "rmb": "CNY",
    "cny": "CNY",
    "yuan": "CNY",
    "元": "CNY",
    "块": "CNY",
    "块钱": "CNY",
    "人民币": "CNY",
}
_PERCENT_SIGNS = frozenset({"%", "percent", "per cent", "pct"})
_PER_MILLE = frozenset({"‰", "per mille"})


def find_amounts(text: str) -> Iterator[Amount]:
    """All amounts of lower-case `text`, overlapping ones included."""
    for pattern, form in _SPECIAL:
        for match in pattern.finditer(text):
            value = _special_value(form, match)
            if value is not None:
                yield Amount(
                    start=match.start(),
                    end=match.end(),
                    value=value,
                    unit="ratio",
                    currency=None,
                    bare_words=False,
                )
    for match in _AMOUNT.finditer(text):
        amount = _plain(match)
        if amount is not None:
            yield amount


def _special_value(form: str, match: re.Match[str]) -> Fraction | None:
    if form == "half":
        return Fraction(1, 2)
    if form == "english":
        return Fraction(1, _ENGLISH_PARTS[match["w"]])
    number = parse_number(match["n"])
    if number is None:
        return None
    if form == "tenth":
        rest = match["half"]
        extra = Fraction(5) if rest == "半" else (parse_number(rest) if rest else None) or Fraction(0)
        return number / 10 + extra / 100
    if form == "fraction":
        divisor = parse_number(match["d"])
        return number / divisor if divisor else None
    return number / (100 if form == "hundredth" else 1000)


def _plain(match: re.Match[str]) -> Amount | None:
    value = parse_number(match["digits"] or match["words"])
    if value is None:
        return None
    value *= MAGNITUDES.get((match["magnitude"] or "").strip(), 1)
    if match["sign"]:
        value = -value
    suffix, prefix = match["suffix"] or "", (match["prefix"] or "").strip()
    currency = _CURRENCIES.get(prefix) or _CURRENCIES.get(suffix)
    unit: Unit = "currency" if currency else "number"
    if suffix in _PERCENT_SIGNS or suffix in _PER_MILLE:
        value, unit = value / (100 if suffix in _PERCENT_SIGNS else 1000), "ratio"
    elif suffix and not currency:
        unit = "percentage_point"
    bare = match["digits"] is None and unit == "number"
    end = match.end(next(name for name in ("suffix", "magnitude", "digits", "words") if match[name]))
    return Amount(start=match.start(), end=end, value=value, unit=unit, currency=currency, bare_words=bare)
