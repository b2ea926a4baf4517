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
