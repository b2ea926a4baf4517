"""Find rankings: "top 3", 前三名, "the lowest"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.text.numerals import ENGLISH, exact, parse_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A rank and its place: `values` is ``top`` or ``bottom``, then the count if the text gives one."""

    start: int
    end: int
    values: tuple[str, ...]


_COUNT = rf"(?P<count>\d{{1,4}}|[一二两三四五六七八九十]{{1,3}}|{ENGLISH})"
_COUNT_AFTER = _COUNT.replace("count", "count_after")
_NOT_A_PERIOD = r"(?!季|个?月|年|天|周|%)"
_HIGH = "best|highest|largest|biggest|greatest|strongest|most|top"
_LOW = "worst|lowest|smallest|weakest|least|bottom"
_HIGH_ZH = "最畅销|最热销|最热卖|最高|最大|最多|最好|最强|最快|最严重|最明显|最厉害|最(?![低小少差弱慢近后新早])"
_LOW_ZH = "最低|最小|最少|最差|最弱|最慢"
_COUNTED_ZH = rf"(?:的?{_COUNT}(?=个|座|名|位|家))?"


def _superlative(words: str) -> str:
    return rf"(?<![a-z])(?:(?:the )?{_COUNT} )?(?:the )?(?:{words})(?: {_COUNT_AFTER})?(?![a-z])"


_RANKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("top", re.compile(rf"(?<![a-z])top[ -]{_COUNT}")),
    ("bottom", re.compile(rf"(?<![a-z])bottom[ -]{_COUNT}")),
    ("top", re.compile(rf"(?:排名|排在|位列)?前{_COUNT}(?:名|位|强|大)?{_NOT_A_PERIOD}")),
    ("bottom", re.compile(rf"(?:倒数前?|后|末){_COUNT}(?:名|位)?{_NOT_A_PERIOD}")),
    ("top", re.compile(_superlative(_HIGH))),
    ("bottom", re.compile(_superlative(_LOW))),
    ("top", re.compile(rf"(?:{_HIGH_ZH}){_COUNTED_ZH}")),
    ("bottom", re.compile(rf"(?:{_LOW_ZH}){_COUNTED_ZH}")),
)


def find_rankings(text: str) -> Iterator[Ranking]:
    """All rankings of lower-case `text`, overlapping ones included."""
    for direction, pattern in _RANKS:
        for match in pattern.finditer(text):
            written = match["count"] or match.groupdict().get("count_after")
            count = parse_number(written) if written else None
            values = (direction,) if count is None else (direction, exact(count))
            yield Ranking(start=match.start(), end=match.end(), values=values)
