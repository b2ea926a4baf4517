"""What a question asks of the data, in structured form: measures, dimensions, filters, intervals, a change."""

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Granularity = Literal["day", "week", "month", "quarter", "year"]
"""The length of a period; weeks start on Monday."""

_MONTHS_IN_YEAR = 12
_LAST_DAY_OF_ANY_MONTH = 28

Name = Annotated[str, Field(min_length=1, max_length=100)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Part):
    """Days from `start` up to, but without, `end`."""

    start: date
    end: date

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"the interval ends ({self.end}) before it begins ({self.start})")
        return self

    def overlaps(self, other: "Interval") -> bool:
        """Whether any day is in both."""
        return self.start < other.end and other.start < self.end

    def contains(self, day: date) -> bool:
        """Whether `day` is in the interval."""
        return self.start <= day < self.end


class Filter(_Part):
    """Keep rows whose dimension has one of the values (`in`), or none of them (`not_in`)."""

    dimension: Name
    operator: Literal["in", "not_in"] = "in"
    values: tuple[Name, ...] = Field(min_length=1, max_length=1000)


class Change(_Part):
    """Keep rows whose first measure changed enough.

    Attributes:
        direction: `down`, `up`, or `any` of the two.
        threshold: The ratio to the base value, 0.15 for 15 %.
        inclusive: Whether a change of exactly the threshold counts (`at least` instead of `more than`).
    """

    direction: Literal["down", "up", "any"]
    threshold: Decimal = Field(ge=0, le=1_000_000, max_digits=16, decimal_places=8)
    inclusive: bool = False


class Order(_Part):
    """Sort by a dimension, or by a measure; with a comparison by its `current`, `base`, `difference`, `change`."""

    by: Name
    part: Literal["value", "current", "base", "difference", "change"] = "value"
    descending: bool = False


class SemanticQuery(_Part):
    """A question as data. Nothing in it is SQL; `tools.sql.semantic.build` makes the SQL.

    Attributes:
        measures: What to compute; a `change` looks at the first.
        dimensions: What to group by; empty for one total.
        filters: Which rows count; all must hold.
        interval: Which days count; none for all days.
        comparison: The interval to compare with: derived from `interval`, or given.
        change: Which rows of a comparison to keep.
        granularity: Group by period too.
        order: Sort keys; without any, the largest change or value comes first.
        limit: Rows to keep; groups that cannot be compared do not count.
    """

    measures: tuple[Name, ...] = Field(min_length=1, max_length=10)
    dimensions: tuple[Name, ...] = Field(default=(), max_length=6)
    filters: tuple[Filter, ...] = Field(default=(), max_length=20)
    interval: Interval | None = None
    comparison: Literal["previous_period", "same_period_last_year"] | Interval | None = None
    change: Change | None = None
    granularity: Granularity | None = None
    order: tuple[Order, ...] = Field(default=(), max_length=6)
    limit: int | None = Field(default=None, ge=1, le=100_000)

    def base_interval(self) -> Interval | None:
        """The interval to compare with, if any."""
        if self.comparison is None or self.interval is None:
            return None
        if isinstance(self.comparison, Interval):
            return self.comparison
        if self.comparison == "previous_period":
            return previous_period(self.interval)
        return same_period_last_year(self.interval)


def previous_period(interval: Interval) -> Interval:
    """The period of the same length just before; whole months step back by months, other spans by days."""
    start, end = interval.start, interval.end
    if start.day == 1 and end.day == 1:
        months = (end.year - start.year) * _MONTHS_IN_YEAR + end.month - start.month
        return Interval(start=_months_later(start, -months), end=start)
    return Interval(start=start - (end - start), end=start)


def same_period_last_year(interval: Interval) -> Interval:
    """The same days one year before; 29 February becomes 28 February, and a lone 29th has the 28th as twin."""
    start, end = _months_later(interval.start, -_MONTHS_IN_YEAR), _months_later(interval.end, -_MONTHS_IN_YEAR)
    return Interval(start=start, end=max(end, start + timedelta(days=1)))


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return sorted(twice)


def _months_later(day: date, months: int) -> date:
    year, month_index = divmod(day.year * _MONTHS_IN_YEAR + day.month - 1 + months, _MONTHS_IN_YEAR)
    for day_of_month in range(day.day, _LAST_DAY_OF_ANY_MONTH, -1):
        try:
            return date(year, month_index + 1, day_of_month)
        except ValueError:
            continue
    return date(year, month_index + 1, min(day.day, _LAST_DAY_OF_ANY_MONTH))
