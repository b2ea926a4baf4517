from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tools.sql.intent import Change, Interval, SemanticQuery, previous_period, same_period_last_year


def days(start: str, end: str) -> Interval:
    return Interval(start=date.fromisoformat(start), end=date.fromisoformat(end))


@pytest.mark.parametrize(
    ("interval", "before"),
    [
        (days("2026-07-01", "2026-10-01"), days("2026-04-01", "2026-07-01")),
        (days("2026-01-01", "2026-04-01"), days("2025-10-01", "2026-01-01")),
        (days("2026-03-01", "2026-04-01"), days("2026-02-01", "2026-03-01")),
        (days("2026-01-01", "2027-01-01"), days("2025-01-01", "2026-01-01")),
        (days("2026-03-02", "2026-03-09"), days("2026-02-23", "2026-03-02")),
        (days("2026-03-01", "2026-03-11"), days("2026-02-19", "2026-03-01")),
    ],
)
def test_the_period_before(interval: Interval, before: Interval) -> None:
    assert previous_period(interval) == before


@pytest.mark.parametrize(
    ("interval", "year_before"),
    [
        (days("2026-07-01", "2026-10-01"), days("2025-07-01", "2025-10-01")),
        (days("2024-02-01", "2024-03-01"), days("2023-02-01", "2023-03-01")),
        (days("2024-02-29", "2024-03-01"), days("2023-02-28", "2023-03-01")),
        (days("2024-02-28", "2024-02-29"), days("2023-02-28", "2023-03-01")),
    ],
)
def test_the_same_period_a_year_before(interval: Interval, year_before: Interval) -> None:
    assert same_period_last_year(interval) == year_before


@given(start=st.dates(date(2001, 1, 1), date(2090, 1, 1)), length=st.integers(1, 800))
def test_the_period_before_ends_where_the_period_starts(start: date, length: int) -> None:
    interval = Interval(start=start, end=date.fromordinal(start.toordinal() + length))
    before = previous_period(interval)
    assert before.end == interval.start
    assert not before.overlaps(interval)
    assert same_period_last_year(interval).start.year == start.year - 1


def test_a_question_is_strict() -> None:
    for wrong in (
        {"measures": []},
        {"measures": ["sales"], "sql": "DROP TABLE x"},
        {"measures": ["sales"], "limit": 0},
        {"measures": ["sales"], "interval": {"start": "2026-02-01", "end": "2026-01-01"}},
        {"measures": ["sales"], "filters": [{"dimension": "city", "values": []}]},
    ):
        with pytest.raises(ValidationError):
            SemanticQuery.model_validate(wrong)
    with pytest.raises(ValidationError):
        Change(direction="down", threshold="-0.1")  # type: ignore[arg-type]  # as JSON would give it


def test_a_given_interval_is_the_base() -> None:
    query = SemanticQuery(
        measures=("sales",), interval=days("2026-01-01", "2026-02-01"), comparison=days("2024-01-01", "2024-02-01")
    )
    assert query.base_interval() == days("2024-01-01", "2024-02-01")
