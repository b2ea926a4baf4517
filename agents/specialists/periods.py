"""What people call a span of days: 2026年第三季度, Q3 2026, July 2026."""

from datetime import timedelta

from tools.sql.intent import Granularity, Interval

_MONTHS_EN = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_IN_MONTHS = {1: "month", 3: "quarter", 12: "year"}


def granularity_of(interval: Interval) -> Granularity | None:
    """`month`, `quarter` or `year` when the interval is exactly one of them."""
    start, end = interval.start, interval.end
    if start.day != 1 or end.day != 1:
        return None
    months = (end.year - start.year) * 12 + end.month - start.month
    if (start.month - 1) % months:
        return None
    match _IN_MONTHS.get(months):
        case "month":
            return "month"
        case "quarter":
            return "quarter"
        case "year":
            return "year"
        case _:
            return None


def name_of(interval: Interval, language: str) -> str:
    """The interval in words, in `zh` or `en`."""
    year, month = interval.start.year, interval.start.month
    quarter = (month - 1) // 3 + 1
    match granularity_of(interval):
        case "year":
            return f"{year}年" if language == "zh" else str(year)
        case "quarter":
            return f"{year}年第{quarter}季度" if language == "zh" else f"Q{quarter} {year}"
        case "month":
            return f"{year}年{month}月" if language == "zh" else f"{_MONTHS_EN[month - 1]} {year}"
        case _:
            return days_of(interval, language)


def days_of(interval: Interval, language: str) -> str:
    """First and last day of the interval."""
    last = interval.end - timedelta(days=1)
    if last == interval.start:
        return str(last)
    return f"{interval.start} 至 {last}" if language == "zh" else f"{interval.start} to {last}"


def covered_periods(covered: Interval, language: str) -> list[str]:
    """The latest quarters and years that are covered as a whole, newest first, in words."""
    quarters: list[Interval] = []
    years: list[Interval] = []
    for year in range(covered.end.year, covered.start.year - 1, -1):
        quarters.extend(_months(year, month, 3) for month in (10, 7, 4, 1))
        years.append(_months(year, 1, 12))
    whole = [span for span in quarters if covered.start <= span.start and span.end <= covered.end][:4]
    whole += [span for span in years if covered.start <= span.start and span.end <= covered.end][:2]
    return [name_of(span, language) for span in whole]


def _months(year: int, month: int, count: int) -> Interval:
    later = month - 1 + count
    start = f"{year}-{month:02}-01"
    return Interval.model_validate({"start": start, "end": f"{year + later // 12}-{later % 12 + 1:02}-01"})
