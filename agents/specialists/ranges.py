"""Periods that a request gives by their two ends: from Q1 to Q3, 一月到六月."""

import re
from collections.abc import Mapping
from typing import Any

from tools.sql.intent import Interval

_JOINED = re.compile(r"(?<![a-z])(?:to|through|thru|until|till|and)(?![a-z])|[-~到至和与]", re.IGNORECASE)
_FROM = re.compile(r"(?:from|between)(?![a-z])|从|自", re.IGNORECASE)
_AS_A_WHOLE = re.compile(r"\s*(?:as a whole|overall|in total|altogether|整体|合计|总体|总共|一共)", re.IGNORECASE)
_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12}


def first_and_last(period: Mapping[str, Any]) -> tuple[Interval, Interval] | None:
    """The first and the last month, quarter, half or year of a period; None where it is only one or none of these.

    Args:
        period: As in `tools.text.request.Period.to_json`.
    """
    whole = Interval.model_validate({"start": period["start"], "end": period["end"]})
    months = (whole.end.year - whole.start.year) * 12 + whole.end.month - whole.start.month
    step = _MONTHS.get(period["granularity"], months)
    if months <= step or whole.start.day != 1 or whole.end.day != 1:
        return None
    return _months_from(whole, 0, step), _months_from(whole, months - step, months)


def is_from_to(entity: Mapping[str, Any]) -> bool:
    """Whether the words of a period say where it begins and ends: "from Q1 to Q2"."""
    return _FROM.match(entity["text"]) is not None and _JOINED.search(entity["text"]) is not None


def is_a_whole(text: str, entity: Mapping[str, Any]) -> bool:
    """Whether the words of a period name no two ends, or say that all between them counts as one."""
    return _JOINED.search(entity["text"]) is None or _AS_A_WHOLE.match(text, entity["end"]) is not None


def _months_from(whole: Interval, first: int, last: int) -> Interval:
    """Months `first` up to `last` of an interval that starts on the first of a month."""

    def month(count: int) -> str:
        index = whole.start.year * 12 + whole.start.month - 1 + count
        return f"{index // 12:04}-{index % 12 + 1:02}-01"

    return Interval.model_validate({"start": month(first), "end": month(last)})
