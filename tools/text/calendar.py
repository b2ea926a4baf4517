"""Days, weeks, months, quarters and years as half-open intervals, and stepping between them."""

from datetime import date, timedelta
from typing import Literal

from tools.text.request import Granularity, Period

FIRST_YEAR, LAST_YEAR = 1990, 2100
"""Years a request may name; outside of them a number is not taken for a year."""

CalendarUnit = Literal["day", "week", "month", "quarter", "year"]
_MONTHS: dict[CalendarUnit, int] = {"month": 1, "quarter": 3, "year": 12}
_MAX_UNITS = 1000


def first_of(unit: CalendarUnit, day: date) -> date:
    """The first day of the unit that holds `day`; a week starts on Monday (ISO 8601)."""
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    months = _MONTHS[unit]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def step(unit: CalendarUnit, start: date, count: int) -> date:
    """`start`, the first day of a unit, moved by `count` units."""
    if unit in ("day", "week"):
        return start + timedelta(days=count * (7 if unit == "week" else 1))
    index = start.year * 12 + start.month - 1 + count * _MONTHS[unit]
    return date(index // 12, index % 12 + 1, 1)


def unit_at(unit: CalendarUnit, day: date, offset: int) -> Period:
    """The unit that holds `day`, moved by `offset` units: ``unit_at("quarter", today, -1)`` is last quarter."""
    start = step(unit, first_of(unit, day), offset)
    return Period(start=start, end=step(unit, start, 1), granularity=unit, label=label(unit, start))


def last_units(unit: CalendarUnit, day: date, count: int) -> Period | None:
    """The `count` complete units before the one that holds `day`; None if there are none or over a thousand."""
    if not 1 <= count <= _MAX_UNITS:
        return None
    end = first_of(unit, day)
    if count == 1:
        return unit_at(unit, day, -1)
    return span(step(unit, end, -count), end, unit)


def span(start: date, end: date, granularity: Granularity = "custom") -> Period | None:
    """The days [start, end), labelled by its first and last day; None if there is no day in it."""
    if start >= end:
        return None
    return Period(
        start=start, end=end, granularity=granularity, label=f"{start.isoformat()}..{end - timedelta(days=1)}"
    )


def year(number: int) -> Period | None:
    """A calendar year, None outside of `FIRST_YEAR` to `LAST_YEAR`."""
    return unit_at("year", date(number, 1, 1), 0) if FIRST_YEAR <= number <= LAST_YEAR else None


def quarter(number: int, quarter_number: int) -> Period | None:
    """A quarter of a year, None if there is no such quarter or year."""
    if not (FIRST_YEAR <= number <= LAST_YEAR and 1 <= quarter_number <= 4):
        return None
    return unit_at("quarter", date(number, quarter_number * 3, 1), 0)


def half(number: int, half_number: int) -> Period | None:
    """The first or second half of a year."""
    if not (FIRST_YEAR <= number <= LAST_YEAR and half_number in (1, 2)):
        return None
    start = date(number, half_number * 6 - 5, 1)
    return Period(start=start, end=step("month", start, 6), granularity="half", label=f"{number}-H{half_number}")


def month(number: int, month_number: int) -> Period | None:
    """A month of a year, None if there is no such month or year."""
    if not (FIRST_YEAR <= number <= LAST_YEAR and 1 <= month_number <= 12):
        return None
    return unit_at("month", date(number, month_number, 1), 0)


def day(year_number: int, month_number: int, day_number: int) -> Period | None:
    """One day, None if the calendar has no such day."""
    if not FIRST_YEAR <= year_number <= LAST_YEAR:
        return None
    try:
        return unit_at("day", date(year_number, month_number, day_number), 0)
    except ValueError:
        return None  # 30 February is not a day; the caller reports the mention as not understood


def label(unit: CalendarUnit, start: date) -> str:
    """The usual name of a unit: ``2025``, ``2025-Q4``, ``2025-10``, ``2025-W40``, ``2025-10-05``."""
    match unit:
        case "year":
            return f"{start.year:04d}"
        case "quarter":
            return f"{start.year:04d}-Q{(start.month + 2) // 3}"
        case "month":
            return f"{start.year:04d}-{start.month:02d}"
        case "week":
            iso = start.isocalendar()
            return f"{iso.year:04d}-W{iso.week:02d}"
        case "day":
            return start.isoformat()
