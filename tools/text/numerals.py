"""Numbers in digits, Chinese characters and English words, as exact fractions."""

import re
from fractions import Fraction

_CHINESE_DIGITS = {char: index for index, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_SECTIONS = {"万": 10_000, "亿": 100_000_000}
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ENGLISH = {word: index for index, word in enumerate(_SMALL)} | {
    word: 10 * index for index, word in enumerate(_TENS, start=2)
}
MAGNITUDES = {
    "千": 1000,
    "百万": 10**6,
    "千万": 10**7,
    "万": 10**4,
    "亿": 10**8,
    "万亿": 10**12,
    "k": 1000,
    "m": 10**6,
    "mn": 10**6,
    "bn": 10**9,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
}

DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
CHINESE = r"[零〇一二两三四五六七八九十百千万亿点]+"
_WORD = "|".join(sorted(_ENGLISH, key=len, reverse=True))
ENGLISH = rf"(?<![a-z])(?:{_WORD})(?:[- ](?:{'|'.join(_SMALL[1:10])}))?(?![a-z])"


def parse_number(text: str) -> Fraction | None:
    """The value of a number written in digits, Chinese characters or English words below a hundred.

    Returns:
        None if `text` is not one number, e.g. ``十百`` or ``1,23``.
    """
    if re.fullmatch(DIGITS, text):
        return Fraction(text.replace(",", ""))
    if re.fullmatch(CHINESE, text):
        return _chinese(text)
    return _english(text)


def exact(value: Fraction) -> str:
    """A finite decimal without trailing zeros, or ``numerator/denominator`` where there is none."""
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:]) if places else (digits, "")
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _english(text: str) -> Fraction | None:
    words = re.split(r"[- ]", text)
    if not all(word in _ENGLISH for word in words):
        return None
    if len(words) == 1:
        return Fraction(_ENGLISH[words[0]])
    tens, ones = _ENGLISH[words[0]], _ENGLISH[words[1]]
    return Fraction(tens + ones) if tens >= 20 and ones < 10 else None


def _chinese(text: str) -> Fraction | None:
    whole, point, decimals = text.partition("点")
    if point and (not decimals or any(char not in _CHINESE_DIGITS for char in decimals)):
        return None
    value = _chinese_integer(whole)
    if value is None:
        return None
    digits = "".join(str(_CHINESE_DIGITS[char]) for char in decimals)
    return Fraction(value) + (Fraction(int(digits), 10 ** len(digits)) if digits else 0)


def _chinese_integer(text: str) -> int | None:
    if not text:
        return None
    if len(text) > 1 and all(char in _CHINESE_DIGITS for char in text):
        return int("".join(str(_CHINESE_DIGITS[char]) for char in text))  # 二〇二五, read digit by digit
    total, section, digit = 0, 0, None
    last_unit = 10**9
    for char in text:
        if char in _CHINESE_DIGITS:
            if digit not in (None, 0):
                return None
            digit = _CHINESE_DIGITS[char]
        elif char in _CHINESE_UNITS:
            unit = _CHINESE_UNITS[char]
            if unit >= last_unit or (digit is None and unit != 10):
                return None
            section += (1 if digit is None else digit) * unit
            digit, last_unit = None, unit
        else:
            section += digit or 0
            if section == 0 and total == 0:
                return None
            total = (total + section) * _CHINESE_SECTIONS[char]
            section, digit, last_unit = 0, None, 10**9
    return total + section + (digit or 0)
