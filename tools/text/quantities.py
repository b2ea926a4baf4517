"""Find thresholds, percentages, numbers and rankings: what a request says about how much.

15 % is a ratio (0.15); 15 percentage points are a difference of two ratios and stay apart from it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tools.text.amounts import Amount, find_amounts
from tools.text.numerals import exact
from tools.text.rankings import find_rankings
from tools.text.request import Operator, Origin, Quantity, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityMention:
    """A place in the text that gives an amount, or a rank (`values`: direction, and count if given)."""

    start: int
    end: int
    kind: str
    values: tuple[str, ...]
    origin: Origin
    quantity: Quantity | None = None


_BEFORE: tuple[tuple[Operator, str], ...] = (
    (">=", "大于等于|大于或等于|不少于|不低于|不小于|不下于|至少|最少|达到了?|达|>=|≥|at least|a minimum of"),
    (">=", "no less than|not less than|no fewer than|not fewer than|minimum of|minimum|greater than or equal to"),
    ("<=", "小于等于|小于或等于|不超过|不超|不高于|不大于|不多于|没有超过|没超过|至多|最多|<=|≤|at most|up to"),
    ("<=", "no more than|not more than|within|not exceeding|not over|not above|a maximum of|maximum of"),
    ("<=", "less than or equal to"),
    (">", "超过了?|超出了?|超|大于|高于|多于|逾|突破了?|>|more than|over|above|greater than|higher than"),
    (">", "larger than|bigger than|exceeding|exceeds?|exceeded|in excess of|upwards of|beyond|worse than"),
    (">", "better than|more then|greater then|higher then|larger then|bigger then"),  # a frequent misspelling
    ("<", "低于|小于|少于|不到|不足|未达到?|没到|<|less than|under|below|fewer than|lower than|smaller than"),
    ("<", "short of|less then|fewer then|lower then|smaller then"),
    ("=", "等于|正好是?|恰好是?|刚好是?|=|exactly|equal to|precisely"),
)
_AFTER: tuple[tuple[Operator, str], ...] = (
    (
        ">=",
        r"及?以上|或以上|或更多|或更高|\+|or more|or higher|or above|and above|or greater|or over|or worse|plus",
    ),
    (">=", "at least|and up|and more"),
    ("<=", "及?以下|或以下|以内|之内|或更少|或更低|or less|or lower|or below|and below|or fewer|or under|at most"),
)
_HAN_NUMERAL = re.compile(r"[十百千万亿]")
_OFTEN_NO_NUMBER = frozenset({"one", "zero", "万", "千万"})
_LOOK_BACK = 40
_RANGE = re.compile(r"\s*(?:到|至|-|~|to|and|和|与)\s*")
_BETWEEN = re.compile(r"(?:(?<![a-z])between\s+|介于|在)$")


def _operators(table: tuple[tuple[Operator, str], ...]) -> tuple[tuple[Operator, re.Pattern[str]], ...]:
    compiled: list[tuple[Operator, re.Pattern[str]]] = []
    for operator, words in table:
        guarded = "|".join(
            f"(?<![a-z]){word}" if word[0].isascii() and word[0].isalpha() else word for word in words.split("|")
        )
        compiled.append((operator, re.compile(guarded)))
    return tuple(compiled)


_BEFORE_PATTERNS = tuple(
    (operator, re.compile(rf"(?:{pattern.pattern})\s*(?:the |about |around |roughly |大约|约)?$"))
    for operator, pattern in _operators(_BEFORE)
)
_AFTER_PATTERNS = tuple((operator, re.compile(rf"\s*(?:{words})(?![a-z])")) for operator, words in _AFTER)


def find_quantities(text: str) -> tuple[QuantityMention, ...]:
    """All amounts and ranks of lower-case `text`, overlapping ones included; the caller chooses among them."""
    amounts = tuple(find_amounts(text))
    certain = (amount for amount in amounts if not _is_doubtful(text, amount))
    ranks = (
        QuantityMention(start=rank.start, end=rank.end, kind="ranking", values=rank.values, origin="number")
        for rank in find_rankings(text)
    )
    return (*(_mention(text, amount) for amount in certain), *_between(text, amounts), *ranks)


def _mention(text: str, amount: Amount) -> QuantityMention:
    operator, start, end = _operator(text, amount)
    return _as_mention(amount, operator, start, end)


def _as_mention(amount: Amount, operator: Operator | None, start: int, end: int) -> QuantityMention:
    kinds: dict[Unit, str] = {"ratio": "percent", "percentage_point": "percentage_points"}
    value = exact(amount.value)
    return QuantityMention(
        start=start,
        end=end,
        kind="threshold" if operator else kinds.get(amount.unit, "number"),
        values=(value,),
        origin="percent" if amount.unit == "ratio" else "number",
        quantity=Quantity(value=value, unit=amount.unit, operator=operator, currency=amount.currency),
    )


def _operator(text: str, amount: Amount) -> tuple[Operator | None, int, int]:
    """The comparison an amount stands in, and the span with it; the longest wording wins (不超过 over 超过)."""
    window = text[max(0, amount.start - _LOOK_BACK) : amount.start]
    offset = amount.start - len(window)
    found = [
        (match.start(), operator) for operator, pattern in _BEFORE_PATTERNS if (match := pattern.search(window))
    ]
    after = [
        (match.end(), operator)
        for operator, pattern in _AFTER_PATTERNS
        if (match := pattern.match(text, amount.end))
    ]
    end = max((position for position, _ in after), default=amount.end)
    if found:
        start, operator = min(found)
        return operator, offset + start, end
    if after:
        return max(after)[1], amount.start, end
    return None, amount.start, amount.end


def _is_doubtful(text: str, amount: Amount) -> bool:
    """A lone 一 or "one" is a number only with an operator before it (一下, "one of them")."""
    words = text[amount.start : amount.end]
    looks_like_a_word = words in _OFTEN_NO_NUMBER or (len(words) < 3 and _HAN_NUMERAL.search(words) is None)
    return amount.bare_words and looks_like_a_word and _operator(text, amount)[0] is None


def _between(text: str, amounts: tuple[Amount, ...]) -> Iterator[QuantityMention]:
    """Two thresholds, ends included, side by side: "between 10% and 15%", 10%到15%之间."""
    starts = {amount.start: amount for amount in amounts}
    for left in amounts:
        joiner = _RANGE.match(text, left.end)
        right = starts.get(joiner.end()) if joiner else None
        before = _BETWEEN.search(text, 0, left.start)
        closes = right is not None and text.startswith("之间", right.end)
        if joiner is None or right is None or (before is None and not closes):
            continue
        if left.unit == "number" and right.unit == "ratio":
            left = replace(left, value=left.value / 100, unit="ratio")
        start = before.start() if before else left.start
        yield _as_mention(left, ">=", start, joiner.end())
        yield _as_mention(right, "<=", joiner.end(), right.end + 2 * closes)
