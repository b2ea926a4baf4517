"""The same answer by another path: raw rows, plain Python arithmetic, no semantic SQL.

A validator compares this with what the engine said. Nothing here uses the expression trees of
`tools.sql.semantic`: measures are read with Python's own parser, joins are dictionaries, sums are Decimals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tools.sql.errors import SqlTooManyRows
from tools.sql.intent import Granularity, Interval, SemanticQuery
from tools.sql.model import Dimension, SemanticModel
from tools.sql.raw_measures import EXACT, Number, Row, measure_columns, measure_value, rounded
from tools.sql.shape import (
    BASE_MISSING,
    BASE_NOT_POSITIVE,
    COMPARED,
    CURRENT_MISSING,
    EMPTY_IS_ZERO,
    check_query,
    group_dimension,
    group_names,
    order_keys,
    result_columns,
)
from tools.sql.values import Value, plain
from tools.sql.warehouse import QueryResult, Warehouse

RowsRead = dict[tuple[str, tuple[Value, ...]], list[Row]]
"""Raw rows by the statement and the parameters that gave them."""

_CHANGE_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """An answer from the raw rows, in the shape of the query's result.

    Attributes:
        columns: Column names, as the query's.
        rows: Cells as Python values, in the query's order.
        rows_read: How many raw rows of the grain were read.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    rows_read: int


def recompute(
    warehouse: Warehouse,
    model: SemanticModel,
    query: SemanticQuery,
    *,
    known_values: Mapping[str, Sequence[str]] | None = None,
    timeout: timedelta = timedelta(seconds=30),
    max_rows: int = 2_000_000,
    already_read: RowsRead | None = None,
) -> Recomputed:
    """Answer a question from the raw rows.

    Args:
        warehouse: Where the rows are.
        model: What they mean.
        query: The question.
        known_values: As for `tools.sql.semantic.build`.
        timeout: Time for each read of a table.
        max_rows: Raw rows to read at most from a table.
        already_read: Keeps what was read for the next query of the same question, which reads the same rows.

    Raises:
        UnknownName: A measure, dimension or value does not exist.
        QueryInvalid: The parts of the question contradict each other.
        SqlTooManyRows: There are more raw rows; a part of them would give a wrong answer.
    """
    check_query(query, model, known_values or {})
    reader = _Reader(
        warehouse=warehouse,
        model=model,
        timeout=timeout,
        max_rows=max_rows,
        already_read={} if already_read is None else already_read,
    )
    base = query.base_interval()
    facts = reader.facts(query, [interval for interval in (query.interval, base) if interval is not None])
    lookups = {name: reader.lookup(model.dimension(name)) for name in _dimensions_used(query, model)}
    groups: dict[tuple[Value, ...], list[Row]] = {} if group_names(query) else {(): []}
    for row in facts:
        if all((lookups[f.dimension](row) in f.values) == (f.operator == "in") for f in query.filters):
            key = tuple(_group_value(name, query, model, lookups, row) for name in group_names(query))
            groups.setdefault(key, []).append(row)
    records = [_record(key, rows, query, model, base) for key, rows in groups.items()]
    kept = _limited(_sorted([r for r in records if _changed_enough(r, query)], query, model), query)
    columns = tuple(column.name for column in result_columns(query, model))
    return Recomputed(
        columns=columns, rows=tuple(tuple(record[c] for c in columns) for record in kept), rows_read=len(facts)
    )


def differences(result: QueryResult, recomputed: Recomputed) -> list[str]:
    """Where a query's result and the recomputation disagree, one line each; none if they agree.

    Numbers are compared by value, so 1.50 equals 1.5; order counts.
    """
    if result.columns != recomputed.columns:
        return [f"columns are {', '.join(result.columns)}, expected {', '.join(recomputed.columns)}"]
    found = []
    if result.truncated or len(result.rows) != len(recomputed.rows):
        found.append(
            f"{len(result.rows)} rows{' (cut off)' if result.truncated else ''}, expected {len(recomputed.rows)}"
        )
    for number, (row, expected) in enumerate(zip(result.rows, recomputed.rows, strict=False), start=1):
        for name, cell, wanted in zip(result.columns, row, expected, strict=True):
            if cell != wanted:
                found.append(f"row {number}, {name}: {plain(cell)}, expected {plain(wanted)}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    warehouse: Warehouse
    model: SemanticModel
    timeout: timedelta
    max_rows: int
    already_read: RowsRead

    def facts(self, query: SemanticQuery, intervals: Sequence[Interval]) -> list[Row]:
        """Rows of the grain on the days of the intervals; of all days without any."""
        time = self.model.time_column.split(".")[1]
        columns = ", ".join(f'"{column}"' for column in sorted({time, *self._columns_used(query)}))
        select = f'SELECT {columns} FROM "{self.model.grain}"'  # noqa: S608 - identifiers checked by the model
        where = " OR ".join(f'("{time}" >= ? AND "{time}" < ?)' for _ in intervals)
        days = [day for interval in intervals for day in (interval.start, interval.end)]
        return self._rows(f"{select} WHERE {where}" if where else select, days)

    def _columns_used(self, query: SemanticQuery) -> set[str]:
        used: set[str] = set()
        for name in query.measures:
            used |= measure_columns(self.model, name)
        for name in _dimensions_used(query, self.model):
            table, column = str(self.model.dimension(name).column).split(".")
            steps = self.model.joins_to(table)
            used.add(steps[0].many.split(".")[1] if steps else column)
        return used

    def lookup(self, dimension: Dimension) -> Callable[[Row], Value]:
        """A function from a row of the grain to its value of a text dimension."""
        table, column = str(dimension.column).split(".")
        steps = []
        for join in self.model.joins_to(table):
            one_table, key = join.one.split(".")
            partners = {row[key]: row for row in self._rows(f'SELECT * FROM "{one_table}"', [])}  # noqa: S608 - as above
            steps.append((join.many.split(".")[1], partners))

        def value_of(row: Row) -> Value:
            for many, partners in steps:
                row = partners.get(row.get(many), {})
            found: Value = row.get(column)
            return found

        return value_of

    def _rows(self, sql: str, params: Sequence[Value]) -> list[Row]:
        key = (sql, tuple(params))
        if key not in self.already_read:
            found = self.warehouse.query(sql, params, max_rows=self.max_rows, timeout=self.timeout)
            if found.truncated:
                raise SqlTooManyRows(max_rows=self.max_rows)
            self.already_read[key] = list(found.records())
        return self.already_read[key]


def _dimensions_used(query: SemanticQuery, model: SemanticModel) -> set[str]:
    names = {*query.dimensions, *(part.dimension for part in query.filters)}
    return {name for name in names if model.dimension(name).column}


def _group_value(
    name: str, query: SemanticQuery, model: SemanticModel, lookups: Mapping[str, Callable[[Row], Value]], row: Row
) -> Value:
    if name in lookups:
        return lookups[name](row)
    granularity = group_dimension(name, query, model).granularity
    return _first_day(row[model.time_column.split(".")[1]], granularity or "day")


def _first_day(day: date, granularity: Granularity) -> date:
    match granularity:
        case "day":
            return date(day.year, day.month, day.day)
        case "week":
            return date.fromordinal(day.toordinal() - day.weekday())
        case "month":
            return date(day.year, day.month, 1)
        case "quarter":
            return date(day.year, day.month - (day.month - 1) % 3, 1)
        case "year":
            return date(day.year, 1, 1)


def _record(
    key: tuple[Value, ...], rows: Sequence[Row], query: SemanticQuery, model: SemanticModel, base: Interval | None
) -> dict[str, Value]:
    record: dict[str, Value] = dict(zip(group_names(query), key, strict=True))
    if base is None or query.interval is None:
        return record | {name: measure_value(model, name, rows) for name in query.measures}
    time = model.time_column.split(".")[1]
    now = [row for row in rows if query.interval.contains(row[time])]
    then = [row for row in rows if base.contains(row[time])]
    for name in query.measures:
        current, before = measure_value(model, name, now), measure_value(model, name, then)
        if current is None and model.measure(name).aggregate in EMPTY_IS_ZERO:
            current = 0
        record |= _comparison(name, current, before)
    return record


def _comparison(name: str, current: Number | None, base: Number | None) -> dict[str, Value]:
    difference = None if current is None or base is None else EXACT.subtract(Decimal(current), Decimal(base))
    change = None
    if difference is not None and base is not None and base > 0:
        change = rounded(Fraction(difference) / Fraction(base), _CHANGE_DIGITS)
    if base is None:
        status = BASE_MISSING
    elif base <= 0:
        status = BASE_NOT_POSITIVE
    else:
        status = CURRENT_MISSING if current is None else COMPARED
    return {
        f"{name}_current": current,
        f"{name}_base": base,
        f"{name}_difference": difference,
        f"{name}_change": change,
        f"{name}_status": status,
    }


def _changed_enough(record: Mapping[str, Any], query: SemanticQuery) -> bool:
    first, change = query.measures[0], query.change
    if change is None or record[f"{first}_status"] != COMPARED:
        return True
    ratio = Fraction(record[f"{first}_difference"]) / Fraction(record[f"{first}_base"])
    size = {"down": -ratio, "up": ratio, "any": abs(ratio)}[change.direction]
    return size > Fraction(change.threshold) or (change.inclusive and size == Fraction(change.threshold))


def _sorted(records: list[dict[str, Value]], query: SemanticQuery, model: SemanticModel) -> list[dict[str, Value]]:
    # Sorting is stable, so the least important key goes first; what has no value comes last either way.
    for name, descending in reversed(order_keys(query, model)):
        present: list[Any] = [record for record in records if record[name] is not None]
        absent = [record for record in records if record[name] is None]
        records = [*sorted(present, key=lambda record: record[name], reverse=descending), *absent]
    return records


def _limited(records: list[dict[str, Value]], query: SemanticQuery) -> list[dict[str, Value]]:
    if query.limit is None:
        return records
    if query.comparison is None:
        return records[: query.limit]
    status = f"{query.measures[0]}_status"
    counted = 0
    kept = []
    for record in records:
        counted += record[status] == COMPARED
        if record[status] != COMPARED or counted <= query.limit:
            kept.append(record)
    return kept
