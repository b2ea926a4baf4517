from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from tools.sql.errors import SqlTooManyRows, UnknownName
from tools.sql.intent import Interval, SemanticQuery
from tools.sql.model import SemanticModel
from tools.sql.recompute import RowsRead, differences, recompute
from tools.sql.semantic import build
from tools.sql.warehouse import QueryResult, Warehouse

TWO_DAYS = Interval(start=date(2027, 1, 1), end=date(2027, 1, 3))
QUERY = SemanticQuery(measures=("revenue", "basket"), dimensions=("branch",), interval=TWO_DAYS)


def result_of(shop: Warehouse, model: SemanticModel, query: SemanticQuery) -> QueryResult:
    compiled = build(query, model)
    return shop.query(compiled.sql, compiled.params, max_rows=100, timeout=timedelta(seconds=9))


def test_a_total_worked_out_by_hand(shop: Warehouse, model: SemanticModel) -> None:
    found = recompute(shop, model, QUERY)
    assert found.columns == ("branch", "revenue", "basket")
    assert found.rows == (("b1", Decimal(370), Decimal(185)),)
    assert found.rows_read == 2


def test_a_wrong_result_is_named_by_row_and_column(shop: Warehouse, model: SemanticModel) -> None:
    result = result_of(shop, model, QUERY)
    right = recompute(shop, model, QUERY)
    assert differences(result, right) == []
    wrong = replace(result, rows=(("b1", Decimal("370.01"), Decimal(185)),))
    assert differences(wrong, right) == ["row 1, revenue: 370.01, expected 370.0000"]
    assert differences(replace(result, rows=()), right) == ["0 rows, expected 1"]
    assert differences(replace(result, truncated=True), right) == ["1 rows (cut off), expected 1"]
    assert (
        "columns are branch, revenue, x"
        in differences(replace(result, columns=("branch", "revenue", "x")), right)[0]
    )


def test_a_part_of_the_rows_is_never_taken_for_all(shop: Warehouse, model: SemanticModel) -> None:
    with pytest.raises(SqlTooManyRows):
        recompute(shop, model, QUERY, max_rows=1)


def test_it_checks_the_question_too(shop: Warehouse, model: SemanticModel) -> None:
    with pytest.raises(UnknownName):
        recompute(shop, model, SemanticQuery(measures=("profit",)))


def test_rows_that_were_read_are_not_read_again(shop: Warehouse, model: SemanticModel) -> None:
    already_read: RowsRead = {}
    first = recompute(shop, model, QUERY, already_read=already_read)
    assert recompute(shop, model, QUERY, already_read=already_read) == first
    assert recompute(shop, model, QUERY, already_read={key: [] for key in already_read}).rows_read == 0
    other_days = QUERY.model_copy(update={"interval": Interval(start=date(2027, 1, 1), end=date(2027, 1, 2))})
    found = recompute(shop, model, other_days, already_read=already_read)
    assert found == recompute(shop, model, other_days)
