"""Amounts in Chinese capital characters, the cross-check printed on Chinese invoices (价税合计 大写)."""

import re
from decimal import Decimal

_DIGITS = {
    char: value
    for value, chars in enumerate(
        ("零〇", "壹一弌", "贰二貳", "叁三參叄", "肆四", "伍五", "陆六陸", "柒七", "捌八", "玖九")
    )
    for char in chars
}
_SMALL = {"拾": 10, "十": 10, "佰": 100, "百": 100, "仟": 1000, "千": 1000}
_LARGE = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_CAPITALS = "零〇壹贰貳叁參叄肆伍陆陸柒捌玖拾佰仟万萬亿億"
AMOUNT = re.compile(rf"[{_CAPITALS}]+[元圆圓](?:[{_CAPITALS}]角)?(?:零?[{_CAPITALS}]分)?[整正]?")


def words_amount(text: str) -> Decimal | None:
    """The amount written in capital characters in `text`, e.g. 壹佰元贰角整 → 100.20; None when there is none."""
    match = AMOUNT.search(re.sub(r"\s", "", text))
    if match is None:
        return None
    whole, rest = re.split(r"[元圆圓]", match.group(), maxsplit=1)
    tenths = re.search(rf"([{_CAPITALS}])角", rest)
    hundredths = re.search(rf"([{_CAPITALS}])分", rest)
    cents = 10 * _DIGITS.get(tenths[1], 0) if tenths else 0
    cents += _DIGITS.get(hundredths[1], 0) if hundredths else 0
    return Decimal(_whole(whole)) + Decimal(cents) / 100


def _whole(text: str) -> int:
    total = section = digit = 0
    for char in text:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _SMALL:
            section += (digit or 1) * _SMALL[char]
            digit = 0
        elif char in _LARGE:
            total += (section + digit) * _LARGE[char]
            section = digit = 0
    return total + section + digit
