from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.packs.sales.dataset import SEMANTIC_YAML, build, ensure
from tools.sql import semantic
from tools.sql.describe import WarehouseDescription, describe
from tools.sql.guard import require
from tools.sql.intent import Change, Filter, Interval, SemanticQuery
from tools.sql.model import SemanticModel, load_model
from tools.sql.recompute import differences, recompute
from tools.sql.warehouse import QueryResult, Warehouse

MINUTE = timedelta(minutes=1)
QUARTERS = [date(year, month, 1) for year in (2024, 2025, 2026) for month in (1, 4, 7, 10)][:11]
END = date(2026, 10, 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure(tmp_path_factory.mktemp("sales"))


@pytest.fixture(scope="module")
def sales(path: Path) -> Iterator[Warehouse]:
    with Warehouse(path) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def model() -> SemanticModel:
    return load_model(SEMANTIC_YAML)


@pytest.fixture(scope="module")
def described(sales: Warehouse, model: SemanticModel) -> WarehouseDescription:
    return describe(sales, model)


def by_hand(sales: Warehouse, sql: str, *params: object) -> list[tuple[Any, ...]]:
    result = sales.query(sql, params, max_rows=100_000, timeout=MINUTE)  # type: ignore[arg-type]  # dates and texts
    return list(result.rows)


def quarter_sales(sales: Warehouse) -> dict[str, dict[date, Decimal]]:
    """Sales by city and quarter, by a query that shares nothing with the semantic layer."""
    found: dict[str, dict[date, Decimal]] = {}
    for city, quarter, amount in by_hand(
        sales,
        """SELECT city_code, make_date(year(ordered_on), 3 * quarter(ordered_on) - 2, 1),
                  SUM(quantity * unit_price * (1 - discount)) FROM order_line GROUP BY 1, 2""",
    ):
        found.setdefault(city, {})[quarter] = amount
    return found


def changes(sales: Warehouse, quarter: date) -> dict[str, Fraction]:
    before = QUARTERS[QUARTERS.index(quarter) - 1]
    return {
        city: Fraction(amounts.get(quarter, Decimal(0)) - amounts[before]) / Fraction(amounts[before])
        for city, amounts in quarter_sales(sales).items()
        if amounts.get(before)
    }


def end_of(quarter: date) -> date:
    following = QUARTERS.index(quarter) + 1
    return QUARTERS[following] if following < len(QUARTERS) else END


def test_the_same_seed_gives_the_same_rows(path: Path, tmp_path: Path) -> None:
    build(tmp_path / "again.duckdb")
    build(tmp_path / "other.duckdb", seed=8)

    def snapshot(file: Path) -> str:
        with Warehouse(file) as warehouse:
            rows = warehouse.query(
                "SELECT * FROM order_line ORDER BY order_id, line_number", max_rows=200_000, timeout=MINUTE
            )
        return rows.snapshot_sha256

    assert snapshot(path) == snapshot(tmp_path / "again.duckdb") != snapshot(tmp_path / "other.duckdb")
    assert path.stat().st_size < 3_000_000
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_ensure_builds_once(path: Path) -> None:
    built = path.stat().st_mtime_ns
    assert ensure(path.parent) == path
    assert path.stat().st_mtime_ns == built


def test_it_covers_eleven_whole_quarters(described: WarehouseDescription) -> None:
    assert described.coverage == Interval(start=date(2024, 1, 1), end=END)
    rows = {table.name: table.row_count for table in described.tables}
    assert 40_000 < rows["order_line"] < 60_000
    assert rows["city"] == 28


def test_the_model_lists_exactly_the_values_there_are(
    model: SemanticModel, described: WarehouseDescription
) -> None:
    for name, values in described.values.items():
        assert tuple(sorted(value.value for value in model.dimensions[name].values)) == values, name
    spoken = [
        word for d in model.dimensions.values() for v in d.values for word in (*v.labels.values(), *v.synonyms)
    ]
    assert len(spoken) == len(set(spoken))


def test_every_line_amounts_to_whole_cents(sales: Warehouse) -> None:
    odd = by_hand(
        sales,
        """SELECT * FROM order_line WHERE (quantity * unit_price * (1 - discount) * 100) % 1 <> 0
           OR quantity <= 0 OR unit_price <= 0 OR discount NOT BETWEEN 0 AND 1 OR returned_quantity > quantity""",
    )
    assert odd == []


@pytest.mark.parametrize("quarter", QUARTERS[1:])
def test_every_quarter_is_worth_asking_about(sales: Warehouse, quarter: date) -> None:
    regions = dict(by_hand(sales, "SELECT city_code, region_code FROM city"))
    here = {c: r for c, r in changes(sales, quarter).items() if regions[c] in ("east_china", "south_china")}
    limit = Fraction(-15, 100)
    deep = [city for city, ratio in here.items() if ratio < Fraction(-16, 100)]
    assert {regions[city] for city in deep} == {"east_china", "south_china"}
    assert [r for r in here.values() if Fraction(-152, 1000) < r < limit]
    assert [r for r in here.values() if limit < r < Fraction(-148, 1000)]
    assert len([r for r in here.values() if r > 0]) >= 3
    exact = [r for r in here.values() if r == limit]
    assert len(exact) == (QUARTERS.index(quarter) % 2 == 0)


def ask(
    sales: Warehouse, model: SemanticModel, described: WarehouseDescription, query: SemanticQuery
) -> QueryResult:
    compiled = semantic.build(query, model)
    sql = require(compiled.sql, schema=described.schema())
    return sales.query(sql, compiled.params, max_rows=10_000, timeout=MINUTE)


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("quarter", QUARTERS[1:])
def test_cities_that_fell_by_more_than_15_percent(
    sales: Warehouse, model: SemanticModel, described: WarehouseDescription, quarter: date, inclusive: bool
) -> None:
    query = SemanticQuery(
        measures=("sales",),
        dimensions=("region", "city"),
        filters=(Filter(dimension="region", values=("east_china", "south_china")),),
        interval=Interval(start=quarter, end=end_of(quarter)),
        comparison="previous_period",
        change=Change(direction="down", threshold=Decimal("0.15"), inclusive=inclusive),
    )
    result = ask(sales, model, described, query)
    assert differences(result, recompute(sales, model, query)) == []
    regions = dict(by_hand(sales, "SELECT city_code, region_code FROM city"))
    limit = Fraction(-15, 100)
    expected = {
        city: ratio
        for city, ratio in changes(sales, quarter).items()
        if regions[city] in ("east_china", "south_china") and (ratio < limit or (inclusive and ratio == limit))
    }
    compared = [row for row in result.records() if row["sales_status"] == semantic.COMPARED]
    assert [row["city"] for row in compared] == sorted(
        expected, key=lambda city: (expected[city], regions[city], city)
    )
    opened = {row["city"] for row in result.records()} - set(expected)
    amounts = quarter_sales(sales)
    before = QUARTERS[QUARTERS.index(quarter) - 1]
    in_regions = [c for c in amounts if regions[c] in ("east_china", "south_china") and quarter in amounts[c]]
    assert opened == {city for city in in_regions if not amounts[city].get(before)}


def test_a_city_that_opened_with_free_samples_cannot_be_compared(
    sales: Warehouse, model: SemanticModel, described: WarehouseDescription
) -> None:
    query = SemanticQuery(
        measures=("sales",),
        dimensions=("city",),
        filters=(Filter(dimension="city", values=("haikou", "zhuhai")),),
        interval=Interval(start=date(2026, 7, 1), end=END),
        comparison="previous_period",
    )
    [row] = ask(sales, model, described, query).records()
    assert (row["city"], row["sales_base"], row["sales_status"]) == ("haikou", 0, semantic.BASE_NOT_POSITIVE)


def test_totals_of_every_measure_equal_a_query_by_hand(
    sales: Warehouse, model: SemanticModel, described: WarehouseDescription
) -> None:
    query = SemanticQuery(measures=tuple(model.measures), interval=Interval(start=date(2025, 1, 1), end=END))
    [row] = ask(sales, model, described, query).records()
    [[gross, net, orders, pieces, returned]] = by_hand(
        sales,
        """SELECT SUM(quantity * unit_price * (1 - discount)),
                  SUM((quantity - returned_quantity) * unit_price * (1 - discount)),
                  COUNT(DISTINCT order_id), SUM(quantity), SUM(returned_quantity)
           FROM order_line WHERE ordered_on >= ?""",
        date(2025, 1, 1),
    )
    plain = (row["sales"], row["net_sales"], row["orders"], row["quantity"], row["returned_quantity"])
    assert plain == (gross, net, orders, pieces, returned)
    assert row["average_order_value"] == (gross / orders).quantize(Decimal("0.0001"))
    assert row["return_rate"] == (Decimal(returned) / Decimal(pieces)).quantize(Decimal("0.000001"))


@settings(max_examples=25, deadline=None)
@given(
    measures=st.lists(
        st.sampled_from(["sales", "orders", "average_order_value", "return_rate"]), min_size=1, unique=True
    ),
    dimensions=st.lists(st.sampled_from(["city", "region", "category", "channel"]), max_size=2, unique=True),
    start=st.dates(date(2024, 1, 1), date(2026, 9, 1)),
    days=st.integers(1, 60),
    comparison=st.sampled_from([None, "previous_period", "same_period_last_year"]),
    threshold=st.decimals(0, 1, places=3),
)
def test_any_question_equals_its_recomputation(
    sales: Warehouse,
    model: SemanticModel,
    described: WarehouseDescription,
    measures: list[str],
    dimensions: list[str],
    start: date,
    days: int,
    comparison: Any,
    threshold: Decimal,
) -> None:
    query = SemanticQuery(
        measures=tuple(measures),
        dimensions=tuple(dimensions),
        interval=Interval(start=start, end=start + timedelta(days=days)),
        comparison=comparison,
        change=Change(direction="any", threshold=threshold) if comparison else None,
    )
    assert differences(ask(sales, model, described, query), recompute(sales, model, query)) == []
