from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tools.sql.shop import DAYS, FIRST_DAY
from tools.sql.errors import QueryInvalid, UnknownName
from tools.sql.guard import check, require
from tools.sql.intent import Change, Filter, Interval, Order, SemanticQuery
from tools.sql.model import SemanticModel
from tools.sql.recompute import differences, recompute
from tools.sql.semantic import CompiledSql, build
from tools.sql.warehouse import QueryResult, Warehouse

JANUARY = Interval(start=date(2026, 1, 1), end=date(2026, 2, 1))
FIRST_QUARTER = Interval(start=date(2026, 1, 1), end=date(2026, 4, 1))
VALUES = {"branch": ["b1", "b2", "b3", "b4", "b5", "b6"], "area": ["north", "south"]}
SCHEMA = {
    "sale": dict.fromkeys(("receipt", "line", "sold_on", "branch_code", "item", "pieces", "price", "rebate"), ""),
    "branch": dict.fromkeys(("branch_code", "area_code"), ""),
    "area": dict.fromkeys(("area_code", "area_name"), ""),
}
MEASURES = ("revenue", "pieces", "lines", "receipts", "dearest", "cheapest", "basket")


def run(shop: Warehouse, model: SemanticModel, query: SemanticQuery) -> QueryResult:
    """The whole way: build, guard, plan, run."""
    compiled = build(query, model, known_values=VALUES)
    sql = require(compiled.sql, schema=SCHEMA)
    shop.explain(sql, compiled.params)
    return shop.query(sql, compiled.params, max_rows=10_000, timeout=timedelta(seconds=20))


def independent(shop: Warehouse, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    return list(shop.query(sql, params, max_rows=10_000, timeout=timedelta(seconds=20)).rows)


def ask(**parts: Any) -> SemanticQuery:
    return SemanticQuery.model_validate({"measures": ("revenue",), **parts})


def test_values_by_group_equal_a_query_written_by_hand(shop: Warehouse, model: SemanticModel) -> None:
    query = ask(measures=("revenue", "receipts"), dimensions=("area",), interval=FIRST_QUARTER)
    expected = independent(
        shop,
        """SELECT area_name, SUM(pieces * price * (1 - rebate)) AS r, COUNT(DISTINCT receipt)
           FROM sale LEFT JOIN branch USING (branch_code) LEFT JOIN area USING (area_code)
           WHERE sold_on >= ? AND sold_on < ? GROUP BY 1 ORDER BY r DESC""",
        FIRST_QUARTER.start,
        FIRST_QUARTER.end,
    )
    assert run(shop, model, query).rows == tuple(expected)
    assert None in [area for area, *_ in expected]  # rows without a partner are counted, not dropped


def test_periods_start_on_their_first_day(shop: Warehouse, model: SemanticModel) -> None:
    by_month = run(shop, model, ask(dimensions=("month",), interval=FIRST_QUARTER))
    assert [row[0] for row in by_month.rows] == [date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1)]
    by_week = run(shop, model, ask(granularity="week", interval=JANUARY))
    assert by_week.rows[0][0] == date(2025, 12, 29)
    assert build(ask(granularity="week"), model).columns[0].role == "period"


def test_a_comparison_equals_two_queries_written_by_hand(shop: Warehouse, model: SemanticModel) -> None:
    query = ask(
        dimensions=("branch",),
        interval=FIRST_QUARTER,
        comparison="previous_period",
        change={"direction": "down", "threshold": "0.15"},
    )
    found = {row["branch"]: row for row in run(shop, model, query).records()}
    per_branch = """SELECT branch_code, SUM(pieces * price * (1 - rebate)) FROM sale
                    WHERE sold_on >= ? AND sold_on < ? GROUP BY 1"""
    now = dict(independent(shop, per_branch, date(2026, 1, 1), date(2026, 4, 1)))
    then = dict(independent(shop, per_branch, date(2025, 10, 1), date(2026, 1, 1)))
    for branch in now | then:
        current, base = now.get(branch, Decimal(0)), then.get(branch)
        if base is None or base <= 0:
            assert found[branch]["revenue_status"] == ("base_missing" if base is None else "base_not_positive")
            assert found[branch]["revenue_change"] is None
        elif Fraction(current - base) / Fraction(base) < Fraction(-15, 100):
            assert found[branch]["revenue_current"] == current
            assert found[branch]["revenue_base"] == base
            assert found[branch]["revenue_difference"] == current - base
            assert abs(found[branch]["revenue_change"] - (current - base) / base) <= Decimal("0.0000005")
        else:
            assert branch not in found
    assert found["b4"]["revenue_status"] == "base_missing"
    assert found["b3"]["revenue_status"] == "base_not_positive"


@pytest.mark.parametrize(("inclusive", "rows"), [(False, 0), (True, 1)])
def test_exactly_the_threshold_counts_only_when_asked(
    shop: Warehouse, model: SemanticModel, inclusive: bool, rows: int
) -> None:
    query = ask(
        dimensions=("branch",),
        interval={"start": "2027-01-02", "end": "2027-01-03"},
        comparison="previous_period",
        change={"direction": "down", "threshold": "0.15", "inclusive": inclusive},
    )
    result = run(shop, model, query)
    assert result.row_count == rows
    if rows:
        assert result.records()[0]["revenue_change"] == Decimal("-0.150000")


def test_a_limit_never_hides_what_cannot_be_compared(shop: Warehouse, model: SemanticModel) -> None:
    query = ask(dimensions=("branch",), interval=FIRST_QUARTER, comparison="previous_period", limit=1)
    statuses = [row["revenue_status"] for row in run(shop, model, query).records()]
    assert sorted(statuses) == ["base_missing", "base_not_positive", "compared"]


def test_no_rows_give_an_honest_total(shop: Warehouse, model: SemanticModel) -> None:
    nothing = Interval(start=date(2031, 1, 1), end=date(2031, 2, 1))
    assert run(shop, model, ask(interval=nothing)).rows == ((None,),)
    [row] = run(shop, model, ask(interval=nothing, comparison="previous_period")).records()
    assert row["revenue_status"] == "base_missing"


@pytest.mark.parametrize(
    ("parts", "kind", "known"),
    [
        ({"measures": ("profit",)}, "measure", "revenue"),
        ({"dimensions": ("country",)}, "dimension", "branch"),
        ({"filters": ({"dimension": "planet", "values": ("x",)},)}, "dimension", "item"),
        ({"filters": ({"dimension": "item", "values": ("tea", "coffee")},)}, "item", "nuts"),
        ({"filters": ({"dimension": "branch", "values": ("b9",)},)}, "branch", "b6"),
        ({"order": ({"by": "pieces"},)}, "column to sort by", "revenue"),
    ],
)
def test_an_unknown_name_says_what_exists(
    model: SemanticModel, parts: Mapping[str, Any], kind: str, known: str
) -> None:
    with pytest.raises(UnknownName) as unknown:
        build(ask(**parts), model, known_values=VALUES)
    assert unknown.value.kind == kind
    assert known in unknown.value.known
    assert known in unknown.value.next_step


@pytest.mark.parametrize(
    "parts",
    [
        {"change": {"direction": "down", "threshold": "0.1"}},
        {"comparison": "previous_period"},
        {"interval": FIRST_QUARTER, "comparison": JANUARY},
        {"interval": JANUARY, "comparison": "previous_period", "granularity": "week"},
        {"interval": JANUARY, "comparison": "previous_period", "dimensions": ("month",)},
        {"dimensions": ("branch", "branch")},
        {"measures": ("revenue", "revenue")},
        {"order": ({"by": "revenue", "part": "change"},)},
        {"interval": JANUARY, "comparison": "previous_period", "order": ({"by": "revenue"},)},
        {"filters": ({"dimension": "month", "values": ("2026-01-01",)},)},
    ],
)
def test_parts_that_contradict_each_other_are_refused(model: SemanticModel, parts: Mapping[str, Any]) -> None:
    with pytest.raises(QueryInvalid) as invalid:
        build(ask(**parts), model)
    assert invalid.value.next_step


def test_no_value_ever_becomes_sql_text(shop: Warehouse, model: SemanticModel) -> None:
    hostile = "x'; DROP TABLE sale; --"
    parts: dict[str, Any] = {"dimensions": ("branch",), "interval": FIRST_QUARTER, "limit": 7}
    with_hostile = build(ask(filters=(Filter(dimension="branch", values=(hostile,)),), **parts), model)
    with_plain = build(ask(filters=(Filter(dimension="branch", values=("b1",)),), **parts), model)
    assert with_hostile.sql == with_plain.sql
    assert hostile in with_hostile.params.values()
    assert "2026" not in with_hostile.sql
    result = shop.query(with_hostile.sql, with_hostile.params, max_rows=9, timeout=timedelta(seconds=9))
    assert result.rows == ()


def test_two_filters_on_one_dimension_keep_their_values_apart(shop: Warehouse, model: SemanticModel) -> None:
    filters = (
        Filter(dimension="branch", values=("b1", "b2", "b3")),
        Filter(dimension="branch", operator="not_in", values=("b2",)),
    )
    result = run(shop, model, ask(dimensions=("branch",), filters=filters, order=(Order(by="branch"),)))
    assert [row[0] for row in result.rows] == ["b1", "b3"]


def test_the_description_says_what_was_asked(model: SemanticModel) -> None:
    query = ask(
        dimensions=("branch",),
        filters=(Filter(dimension="item", values=("tea",)),),
        interval=FIRST_QUARTER,
        comparison="previous_period",
        change={"direction": "down", "threshold": "0.150"},
        limit=3,
    )
    assert build(query, model).description == (
        "revenue by branch where item in (tea) for 2026-01-01 to 2026-03-31 compared with 2025-10-01 to 2025-12-31"
        " keeping what fell by more than 15 % at most 3 rows"
    )


DAY = st.integers(-20, DAYS + 20).map(lambda offset: FIRST_DAY + timedelta(days=offset))
INTERVALS = st.one_of(
    st.tuples(DAY, st.integers(1, 120)).map(lambda p: Interval(start=p[0], end=p[0] + timedelta(days=p[1]))),
    st.sampled_from([JANUARY, FIRST_QUARTER, Interval(start=date(2027, 1, 2), end=date(2027, 1, 3))]),
)
FILTERS = st.sampled_from(
    [
        Filter(dimension="item", values=("tea", "rice")),
        Filter(dimension="item", operator="not_in", values=("nuts",)),
        Filter(dimension="branch", values=("b1", "b3", "b4", "b6")),
        Filter(dimension="area", values=("north",)),
        Filter(dimension="area", operator="not_in", values=("south",)),
    ]
)
THRESHOLDS = st.one_of(st.just(Decimal("0.15")), st.decimals(0, 2, places=4))


@st.composite
def queries(draw: st.DrawFn) -> SemanticQuery:
    measures = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=3, unique=True))
    dimensions = draw(st.lists(st.sampled_from(["branch", "area", "item"]), max_size=2, unique=True))
    compares = draw(st.booleans())
    parts: dict[str, Any] = {
        "filters": draw(st.lists(FILTERS, max_size=2)),
        "interval": draw(INTERVALS) if compares else draw(st.none() | INTERVALS),
        "limit": draw(st.none() | st.integers(1, 6)),
    }
    order_parts = ["value"]
    if compares:
        parts["comparison"] = draw(st.sampled_from(["previous_period", "same_period_last_year"]))
        directions = st.sampled_from(["down", "up", "any"])
        change = st.builds(Change, direction=directions, threshold=THRESHOLDS, inclusive=st.booleans())
        parts["change"] = draw(st.none() | change)
        order_parts = ["current", "base", "difference", "change"]
    else:
        parts["granularity"] = draw(st.sampled_from([None, None, "day", "week", "month", "quarter", "year"]))
    by = st.sampled_from([*measures, *dimensions])
    parts["order"] = draw(
        st.lists(
            st.builds(Order, by=by, part=st.sampled_from(order_parts), descending=st.booleans()),
            max_size=2,
            unique_by=lambda order: order.by,
        )
    )
    return ask(measures=measures, dimensions=dimensions, **parts)


@settings(max_examples=120, deadline=None)
@given(query=queries())
def test_any_question_gives_what_the_raw_rows_give(
    shop: Warehouse, model: SemanticModel, query: SemanticQuery
) -> None:
    result = run(shop, model, query)
    assert differences(result, recompute(shop, model, query, known_values=VALUES)) == []
    assert result.columns == tuple(column.name for column in build(query, model).columns)


@settings(max_examples=50, deadline=None)
@given(query=queries())
def test_the_guard_accepts_whatever_is_built(model: SemanticModel, query: SemanticQuery) -> None:
    compiled: CompiledSql = build(query, model)
    assert check(compiled.sql, schema=SCHEMA) == []
    assert SemanticQuery.model_validate_json(query.model_dump_json()) == query
