"""What a warehouse holds, for whoever must decide whether a question can be answered from it."""

from dataclasses import dataclass
from datetime import date, timedelta

from sqlglot import exp

from tools.sql.errors import SemanticModelInvalid
from tools.sql.intent import Interval
from tools.sql.model import SemanticModel
from tools.sql.warehouse import QueryResult, Warehouse

_LOW_CARDINALITY = 200
_TIMEOUT = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """One table: its columns with their DuckDB types, how many rows it has, what a row is."""

    name: str
    meaning: str
    columns: tuple[tuple[str, str], ...]
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseDescription:
    """What there is to ask about.

    Attributes:
        tables: The tables that the model declares.
        coverage: From the first day with rows up to, but without, the day after the last; none in an empty table.
        values: For each text dimension with at most 200 values, these in order.
    """

    tables: tuple[TableDescription, ...]
    coverage: Interval | None
    values: dict[str, tuple[str, ...]]

    def schema(self) -> dict[str, dict[str, str]]:
        """Tables and columns in the form that `tools.sql.guard.check` takes."""
        return {table.name: dict(table.columns) for table in self.tables}

    def covers(self, interval: Interval) -> bool:
        """Whether the rows span every day of the interval."""
        if self.coverage is None:
            return False
        return self.coverage.start <= interval.start and interval.end <= self.coverage.end

    def as_json(self) -> dict[str, object]:
        """The description for a JSON document."""
        return {
            "tables": [
                {"name": t.name, "meaning": t.meaning, "columns": dict(t.columns), "row_count": t.row_count}
                for t in self.tables
            ],
            "coverage": self.coverage.model_dump(mode="json") if self.coverage else None,
            "values": {name: list(values) for name, values in self.values.items()},
        }


def describe(warehouse: Warehouse, model: SemanticModel) -> WarehouseDescription:
    """Look at the tables that the model declares.

    Raises:
        SemanticModelInvalid: The model names tables or columns that the warehouse does not have.
    """
    schema = warehouse.tables()
    if problems := _absent(model, schema):
        raise SemanticModelInvalid(problems)
    tables = tuple(
        TableDescription(
            name=name,
            meaning=meaning,
            columns=tuple(schema[name].items()),
            row_count=_count(_ask(warehouse, exp.select(exp.Count(this=exp.Star())).from_(exp.to_table(name)))),
        )
        for name, meaning in model.tables.items()
    )
    return WarehouseDescription(
        tables=tables, coverage=_coverage(warehouse, model), values=_dimension_values(warehouse, model)
    )


def _absent(model: SemanticModel, schema: dict[str, dict[str, str]]) -> list[str]:
    columns = [model.time_column, *(side for join in model.joins for side in (join.many, join.one))]
    columns += [dimension.column for dimension in model.dimensions.values() if dimension.column]
    problems = [f"the warehouse has no table {table}" for table in model.tables if table not in schema]
    for dotted in dict.fromkeys(columns):
        table, column = dotted.split(".")
        if table in schema and column not in schema[table]:
            problems.append(f"table {table} has no column {column}")
    return problems


def _coverage(warehouse: Warehouse, model: SemanticModel) -> Interval | None:
    day = exp.column(model.time_column.split(".")[1])
    found = _ask(
        warehouse, exp.select(exp.Min(this=day), exp.Max(this=day.copy())).from_(exp.to_table(model.grain))
    )
    first, last = found.rows[0]
    if not isinstance(first, date) or not isinstance(last, date):
        return None
    return Interval(start=first, end=last + timedelta(days=1))


def _dimension_values(warehouse: Warehouse, model: SemanticModel) -> dict[str, tuple[str, ...]]:
    values = {}
    for name, dimension in model.dimensions.items():
        if dimension.column is None:
            continue
        table, column = dimension.column.split(".")
        distinct = (
            exp.select(exp.column(column)).distinct().from_(exp.to_table(table)).order_by(exp.column(column))
        )
        found = _ask(warehouse, distinct, max_rows=_LOW_CARDINALITY)
        if not found.truncated:
            values[name] = tuple(str(value) for (value,) in found.rows if value is not None)
    return values


def _ask(warehouse: Warehouse, statement: exp.Select, *, max_rows: int = 1) -> QueryResult:
    return warehouse.query(statement.sql(dialect="duckdb"), max_rows=max_rows, timeout=_TIMEOUT)


def _count(found: QueryResult) -> int:
    [[number]] = found.rows
    return int(str(number))
