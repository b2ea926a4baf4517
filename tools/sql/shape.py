"""What a question must satisfy, and the shape of its answer: shared by the SQL and by the recomputation."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from tools.sql.errors import QueryInvalid, UnknownName
from tools.sql.intent import Filter, Order, SemanticQuery, repeated
from tools.sql.model import Dimension, SemanticModel

# What `<measure>_status` can say; only compared rows have a change.
COMPARED = "compared"
BASE_MISSING = "base_missing"
BASE_NOT_POSITIVE = "base_not_positive"
CURRENT_MISSING = "current_missing"

EMPTY_IS_ZERO = ("sum", "count", "count_distinct")
"""Aggregates whose current value is 0, not unknown, without rows: a city that sold nothing fell by 100 %."""

ColumnRole = Literal["dimension", "period", "value", "current", "base", "difference", "change", "status"]
COMPARISON_PARTS: tuple[ColumnRole, ...] = ("current", "base", "difference", "change", "status")
"""What each measure of a comparison has a column for, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn:
    """What a column of the result means.

    Attributes:
        name: Its name in the result.
        role: `dimension`, `period` (first day of one), `value` (of a measure) or a part of a comparison.
        of: The dimension or measure it belongs to.
    """

    name: str
    role: ColumnRole
    of: str


def check_query(query: SemanticQuery, model: SemanticModel, known_values: Mapping[str, Collection[str]]) -> None:
    """Demand that every name exists and that the parts fit together.

    Raises:
        UnknownName: A measure, dimension or value does not exist.
        QueryInvalid: The parts of the question contradict each other.
    """
    for name in query.measures:
        model.measure(name)
    for name in query.dimensions:
        model.dimension(name)
    for part in query.filters:
        _check_filter(part, model, known_values)
    if twice := repeated([*query.measures, *group_names(query)]):
        raise QueryInvalid(f"{', '.join(twice)} is asked for twice.", next_step="Name each once.")
    _check_comparison(query, model)
    for order in query.order:
        _check_order(order, query)


def group_names(query: SemanticQuery) -> list[str]:
    """Names of the columns a question groups by; a granularity adds the period's."""
    names = list(query.dimensions)
    if query.granularity and query.granularity not in names:
        names.append(query.granularity)
    return names


def group_dimension(name: str, query: SemanticQuery, model: SemanticModel) -> Dimension:
    """The dimension behind a group column; a bare granularity stands for its period."""
    if name in query.dimensions:
        return model.dimension(name)
    return Dimension(granularity=query.granularity, labels={})


def result_columns(query: SemanticQuery, model: SemanticModel) -> tuple[ResultColumn, ...]:
    """What each column of the result means, in order."""
    columns = []
    for name in group_names(query):
        role: ColumnRole = "period" if group_dimension(name, query, model).granularity else "dimension"
        columns.append(ResultColumn(name=name, role=role, of=name))
    for measure in query.measures:
        if query.comparison is None:
            columns.append(ResultColumn(name=measure, role="value", of=measure))
        else:
            columns += [ResultColumn(name=f"{measure}_{part}", role=part, of=measure) for part in COMPARISON_PARTS]
    return tuple(columns)


def order_keys(query: SemanticQuery, model: SemanticModel) -> list[tuple[str, bool]]:
    """The full sort order, `(column, descending)`: as asked, then by every group column.

    Unless asked otherwise the largest change or value comes first, but periods follow each other in time.
    """
    keys = []
    for order in query.order:
        is_group = order.by in group_names(query)
        keys.append(
            (order.by if is_group or query.comparison is None else f"{order.by}_{order.part}", order.descending)
        )
    first = query.measures[0]
    if not keys and query.comparison is not None:
        keys = [(f"{first}_change", query.change is not None and query.change.direction == "up")]
    elif not keys and not any(group_dimension(name, query, model).granularity for name in group_names(query)):
        keys = [(first, True)]
    named = {key for key, _ in keys}
    return [*keys, *((name, False) for name in group_names(query) if name not in named)]


def _check_filter(part: Filter, model: SemanticModel, known_values: Mapping[str, Collection[str]]) -> None:
    dimension = model.dimension(part.dimension)
    if dimension.granularity:
        raise QueryInvalid(
            f"{part.dimension!r} is a period and cannot be filtered by value.", next_step="Use the interval."
        )
    known = known_values.get(part.dimension) or [value.value for value in dimension.values]
    for value in part.values:
        if known and value not in known:
            raise UnknownName(kind=part.dimension, name=value, known=known)


def _check_comparison(query: SemanticQuery, model: SemanticModel) -> None:
    if query.comparison is None:
        if query.change is not None:
            raise QueryInvalid("A change needs something to compare with.", next_step="Add a comparison.")
        return
    if query.interval is None:
        raise QueryInvalid("A comparison needs an interval.", next_step="Say which days to look at.")
    base = query.base_interval()
    if base is not None and base.overlaps(query.interval):
        raise QueryInvalid("The two intervals overlap.", next_step="Compare intervals that share no day.")
    if any(group_dimension(name, query, model).granularity for name in group_names(query)):
        raise QueryInvalid(
            "A comparison of two intervals cannot be grouped by period as well.",
            next_step="Ask for the comparison, or for the values by period.",
        )


def _check_order(order: Order, query: SemanticQuery) -> None:
    if order.by not in {*group_names(query), *query.measures}:
        raise UnknownName(kind="column to sort by", name=order.by, known={*group_names(query), *query.measures})
    if order.by in query.measures and (order.part == "value") != (query.comparison is None):
        raise QueryInvalid(
            f"{order.by!r} cannot be sorted by its {order.part!r} part here.",
            next_step="Use part value without a comparison; current, base, difference or change with one.",
        )
