"""A question's meaning in one English sentence, for reports and audit entries."""

from datetime import timedelta
from decimal import Decimal

from tools.sql.intent import Change, Interval, SemanticQuery

_DIRECTIONS = {"down": "fell", "up": "rose", "any": "changed"}


def describe_query(query: SemanticQuery) -> str:
    """Say what a query computes: measures, grouping, filters, days, comparison, threshold and limit."""
    words = [", ".join(query.measures)]
    groups = [*query.dimensions, *([query.granularity] if query.granularity else [])]
    if groups:
        words.append(f"by {', '.join(groups)}")
    for part in query.filters:
        verb = "in" if part.operator == "in" else "not in"
        words.append(f"where {part.dimension} {verb} ({', '.join(part.values)})")
    words.append(f"for {_days(query.interval)}" if query.interval else "for all days")
    if base := query.base_interval():
        words.append(f"compared with {_days(base)}")
    if query.change:
        words.append(f"keeping what {_change(query.change)}")
    if query.limit:
        words.append(f"at most {query.limit} rows")
    return " ".join(words)


def percent(ratio: Decimal) -> str:
    """A ratio in per cent without trailing zeros: `0.150` is `15 %`."""
    text = format(ratio * 100, "f")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def _days(interval: Interval) -> str:
    return f"{interval.start} to {interval.end - timedelta(days=1)}"


def _change(change: Change) -> str:
    edge = "at least" if change.inclusive else "more than"
    return f"{_DIRECTIONS[change.direction]} by {edge} {percent(change.threshold)}"
