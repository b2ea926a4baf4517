"""From a structured question to SQL: built as an expression tree, every value a bound parameter."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tools.sql.arithmetic import CHANGE_SCALE, exact_ratio, measure_sql
from tools.sql.intent import Change, Filter, Interval, SemanticQuery
from tools.sql.model import Dimension, SemanticModel
from tools.sql.shape import (
    BASE_MISSING,
    BASE_NOT_POSITIVE,
    COMPARED,
    COMPARISON_PARTS,
    CURRENT_MISSING,
    EMPTY_IS_ZERO,
    ResultColumn,
    check_query,
    group_dimension,
    group_names,
    order_keys,
    result_columns,
)
from tools.sql.values import Value, parameters_to_json
from tools.sql.wording import describe_query


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSql:
    """A statement ready to run.

    Attributes:
        sql: One DuckDB SELECT with `$name` placeholders.
        params: A value for each placeholder.
        description: What it computes, in one English sentence.
        columns: What each column of the result means, in order.
        interval: The days it looks at; none for all.
        base_interval: The days it compares with; none without a comparison.
    """

    sql: str
    params: Mapping[str, Value]
    description: str
    columns: tuple[ResultColumn, ...]
    interval: Interval | None
    base_interval: Interval | None

    def as_json(self) -> dict[str, object]:
        """The statement for a JSON document; parameters keep their types."""
        return {
            "sql": self.sql,
            "params": parameters_to_json(self.params),
            "description": self.description,
            "columns": [{"name": c.name, "role": c.role, "of": c.of} for c in self.columns],
        }


@dataclass(slots=True)
class _Parameters:
    values: dict[str, Value] = field(default_factory=dict)

    def bind(self, name: str, value: Value) -> exp.Expr:
        self.values[name] = value
        return exp.Placeholder(this=name)

    def bind_numbered(self, prefix: str, value: Value) -> exp.Expr:
        number = 1
        while f"{prefix}_{number}" in self.values:
            number += 1
        return self.bind(f"{prefix}_{number}", value)


def build(
    query: SemanticQuery, model: SemanticModel, *, known_values: Mapping[str, Collection[str]] | None = None
) -> CompiledSql:
    """Build the SQL of a question.

    With a comparison each measure gives five columns: `<m>_current`, `<m>_base`, `<m>_difference`, `<m>_change`
    (difference / base, exact to six decimals) and `<m>_status`. A `change` filter is decided on the exact
    difference, not on the rounded ratio. Rows that cannot be compared (status is not `compared`) are always kept.

    Args:
        query: The question.
        model: What the data means.
        known_values: Values each dimension has, for dimensions whose values the model does not list.

    Raises:
        UnknownName: A measure, dimension or value does not exist.
        QueryInvalid: The parts of the question contradict each other.
    """
    check_query(query, model, known_values or {})
    parameters = _Parameters()
    grouped = _grouped(query, model, parameters)
    statement = grouped
    if query.comparison is not None:
        statement = _compared(grouped, query, model)
    if query.change is not None:
        statement = statement.where(_changed_enough(query, query.change, parameters))
    statement = _order_and_limit(statement, query, model, parameters)
    return CompiledSql(
        sql=statement.sql(dialect="duckdb", pretty=True),
        params=parameters.values,
        description=describe_query(query),
        columns=result_columns(query, model),
        interval=query.interval,
        base_interval=query.base_interval(),
    )


def _grouped(query: SemanticQuery, model: SemanticModel, parameters: _Parameters) -> exp.Select:
    groups = {name: group_dimension(name, query, model) for name in group_names(query)}
    filtered = [model.dimension(part.dimension) for part in query.filters]
    statement = _from_joined(model, [*groups.values(), *filtered])
    for name, dimension in groups.items():
        statement = statement.select(exp.alias_(_group_sql(dimension, model), name), copy=False)
    current = _within(query.interval, model, parameters, "")
    base = _within(query.base_interval(), model, parameters, "base_")
    for name in query.measures:
        if base is None:
            statement = statement.select(exp.alias_(measure_sql(model, name, None), name), copy=False)
            continue
        now = measure_sql(model, name, current)
        if model.measure(name).aggregate in EMPTY_IS_ZERO:
            now = exp.Coalesce(this=now, expressions=[exp.Literal.number(0)])
        statement = statement.select(exp.alias_(now, f"{name}_current"), copy=False)
        statement = statement.select(exp.alias_(measure_sql(model, name, base), f"{name}_base"), copy=False)
    if current is not None:
        statement = statement.where(current if base is None else exp.or_(current, base), copy=False)
    for part, dimension in zip(query.filters, filtered, strict=True):
        statement = statement.where(_filter_sql(part, dimension, parameters), copy=False)
    return (
        statement.group_by(*[_group_sql(d, model) for d in groups.values()], copy=False) if groups else statement
    )


def _from_joined(model: SemanticModel, dimensions: Sequence[Dimension]) -> exp.Select:
    statement = exp.select().from_(exp.to_table(model.grain))
    joined: set[str] = set()
    for dimension in dimensions:
        for join in model.joins_to(dimension.column.split(".")[0]) if dimension.column else []:
            table = join.one.split(".")[0]
            if table in joined:
                continue
            joined.add(table)
            match = exp.EQ(this=_column(join.many), expression=_column(join.one))
            # LEFT: a row whose key has no partner still counts in totals.
            statement = statement.join(exp.to_table(table), on=match, join_type="left", copy=False)
    return statement


def _column(dotted: str) -> exp.Column:
    table, column = dotted.split(".")
    return exp.column(column, table=table)


def _group_sql(dimension: Dimension, model: SemanticModel) -> exp.Expr:
    if dimension.column:
        return _column(dimension.column)
    unit = exp.var(str(dimension.granularity).upper())
    return exp.cast(exp.TimestampTrunc(this=_column(model.time_column), unit=unit), "DATE")


def _within(
    interval: Interval | None, model: SemanticModel, parameters: _Parameters, prefix: str
) -> exp.Expr | None:
    if interval is None:
        return None
    time = _column(model.time_column)
    return exp.and_(
        exp.GTE(this=time, expression=parameters.bind(f"{prefix}start", interval.start)),
        exp.LT(this=time.copy(), expression=parameters.bind(f"{prefix}end", interval.end)),
    )


def _filter_sql(part: Filter, dimension: Dimension, parameters: _Parameters) -> exp.Expr:
    column = _column(str(dimension.column))
    listed = exp.In(this=column, expressions=[parameters.bind_numbered(part.dimension, v) for v in part.values])
    if part.operator == "in":
        return listed
    # Without this a row that has no value at all would vanish.
    return exp.or_(exp.not_(listed), exp.Is(this=column.copy(), expression=exp.null()))


def _compared(grouped: exp.Select, query: SemanticQuery, model: SemanticModel) -> exp.Select:
    """Two steps on top of the sums: difference and status of each comparison, then the ratio of the change."""
    groups = [exp.column(name) for name in group_names(query)]
    compared = exp.select(*groups).from_("grouped")
    changed = exp.select(*groups).from_("compared")
    for name in query.measures:
        current, base, difference, change, status = (exp.column(f"{name}_{part}") for part in COMPARISON_PARTS)
        difference_sql = exp.Sub(this=current, expression=base)
        change_sql = exact_ratio(difference, base, scale=model.measure(name).scale, digits=CHANGE_SCALE)
        compared = compared.select(
            current,
            base,
            exp.alias_(difference_sql, difference.name),
            exp.alias_(_status(current, base), status.name),
        )
        changed = changed.select(current, base, difference, exp.alias_(change_sql, change.name), status)
    columns = [exp.column(column.name) for column in result_columns(query, model)]
    statement = exp.select(*columns).from_("changed")
    for name, step in (("grouped", grouped), ("compared", compared), ("changed", changed)):
        statement = statement.with_(name, as_=step)
    return statement


def _status(current: exp.Expr, base: exp.Expr) -> exp.Expr:
    return (
        exp.case()
        .when(exp.Is(this=base.copy(), expression=exp.null()), exp.Literal.string(BASE_MISSING))
        .when(exp.LTE(this=base.copy(), expression=exp.Literal.number(0)), exp.Literal.string(BASE_NOT_POSITIVE))
        .when(exp.Is(this=current.copy(), expression=exp.null()), exp.Literal.string(CURRENT_MISSING))
        .else_(exp.Literal.string(COMPARED))
    )


def _changed_enough(query: SemanticQuery, change: Change, parameters: _Parameters) -> exp.Expr:
    first = query.measures[0]
    difference: exp.Expr = exp.column(f"{first}_difference")
    bound: exp.Expr = exp.Mul(
        this=parameters.bind("threshold", change.threshold), expression=exp.column(f"{first}_base")
    )
    if change.direction == "any":
        difference = exp.Abs(this=difference)
    comparison: type[exp.Binary]
    if change.direction == "down":
        comparison, bound = (exp.LTE if change.inclusive else exp.LT), exp.Neg(this=exp.paren(bound))
    else:
        comparison = exp.GTE if change.inclusive else exp.GT
    enough = comparison(this=difference, expression=bound)
    return exp.or_(exp.NEQ(this=exp.column(f"{first}_status"), expression=exp.Literal.string(COMPARED)), enough)


def _order_and_limit(
    statement: exp.Select, query: SemanticQuery, model: SemanticModel, parameters: _Parameters
) -> exp.Select:
    ordered = [
        exp.Ordered(this=exp.column(name), desc=descending, nulls_first=False)
        for name, descending in order_keys(query, model)
    ]
    if query.limit is not None:
        limit = parameters.bind("limit", query.limit)
        if query.comparison is None:
            statement = statement.limit(limit)
        else:
            # The limit counts only comparable groups, so that none of the others is cut off unseen.
            status = exp.column(f"{query.measures[0]}_status")
            is_compared = exp.EQ(this=status, expression=exp.Literal.string(COMPARED))
            rank = exp.Window(
                this=exp.RowNumber(),
                partition_by=[is_compared],
                order=exp.Order(expressions=[key.copy() for key in ordered]),
            )
            kept = exp.or_(
                exp.NEQ(this=status.copy(), expression=exp.Literal.string(COMPARED)),
                exp.LTE(this=rank, expression=limit),
            )
            statement.set("qualify", exp.Qualify(this=kept))
    return statement.order_by(*ordered) if ordered else statement
