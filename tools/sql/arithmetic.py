"""The SQL of measures: row arithmetic, aggregates, and division that does not go through floating point."""

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from tools.sql.errors import SemanticModelInvalid
from tools.sql.model import Measure, SemanticModel

CHANGE_SCALE = 6
"""Digits after the decimal point of a change ratio."""

_ROW_NODES = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Column, exp.Identifier)


def measure_sql(model: SemanticModel, name: str, condition: exp.Expr | None) -> exp.Expr:
    """The aggregate expression of a measure, over the rows that meet `condition` (all rows without one)."""
    measure = model.measure(name)
    if not measure.is_ratio:
        return _aggregate(model, measure, condition)
    above, below = model.measures[str(measure.numerator)], model.measures[str(measure.denominator)]
    scale = max(above.scale, below.scale)
    return exact_ratio(
        _aggregate(model, above, condition), _aggregate(model, below, condition), scale=scale, digits=measure.scale
    )


def exact_ratio(above: exp.Expr, below: exp.Expr, *, scale: int, digits: int) -> exp.Expr:
    """`above / below` as DECIMAL(38, digits), rounded half away from zero; NULL where `below` is not positive.

    DuckDB divides DECIMALs as doubles, so both are scaled to whole numbers and divided as such:
    round(n / d) = (2 n + d) // (2 d) for n >= 0, d > 0.

    Args:
        above: Numerator, with at most `scale` decimals.
        below: Denominator, with at most `scale` decimals.
        scale: Decimals that the two have.
        digits: Decimals of the result.
    """
    top, bottom = _whole(above, scale), _whole(below, scale)
    doubled = exp.Mul(this=exp.Abs(this=top), expression=exp.Literal.number(2 * 10**digits))
    quotient = exp.IntDiv(
        this=exp.paren(exp.Add(this=doubled, expression=bottom)),
        expression=exp.paren(exp.Mul(this=exp.Literal.number(2), expression=bottom.copy())),
    )
    signed = exp.cast(exp.Mul(this=exp.Sign(this=above.copy()), expression=exp.paren(quotient)), "DECIMAL(38, 0)")
    unit = exp.Literal.number(f"0.{'0' * (digits - 1)}1" if digits else "1")
    scaled = exp.Mul(this=signed, expression=unit)
    positive = exp.GT(this=below.copy(), expression=exp.Literal.number(0))
    return exp.Case().when(positive, scaled)


def row_sql(expression: str, table: str) -> exp.Expr:
    """Row arithmetic such as `quantity * (1 - discount)` as a tree, its columns qualified with the table.

    Raises:
        SemanticModelInvalid: It holds anything but `+ - *`, parentheses, whole numbers and columns.
    """
    try:
        tree = parse_one(expression, dialect="duckdb")
    except SqlglotError as error:
        raise SemanticModelInvalid([f"expression {expression!r} cannot be read"]) from error
    for node in tree.walk():
        whole_number = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
        if not (whole_number or isinstance(node, _ROW_NODES)) or node.comments:
            raise SemanticModelInvalid([f"expression {expression!r} holds more than + - * over columns"])
    for column in list(tree.find_all(exp.Column)):
        if column.table:
            raise SemanticModelInvalid(
                [f"expression {expression!r} names a table; its columns are those of the grain"]
            )
        column.set("table", exp.to_identifier(table))
    return tree


def _aggregate(model: SemanticModel, measure: Measure, condition: exp.Expr | None) -> exp.Expr:
    rows = row_sql(str(measure.expression), model.grain)
    call: exp.Expr
    match measure.aggregate:
        case "sum":
            call = exp.Sum(this=rows)
        case "min":
            call = exp.Min(this=rows)
        case "max":
            call = exp.Max(this=rows)
        case "count_distinct":
            call = exp.Count(this=exp.Distinct(expressions=[rows]))
        case _:
            call = exp.Count(this=rows)
    if condition is None:
        return call
    return exp.Filter(this=call, expression=exp.Where(this=condition.copy()))


def _whole(number: exp.Expr, scale: int) -> exp.Expr:
    scaled = exp.Mul(this=number.copy(), expression=exp.Literal.number(10**scale)) if scale else number.copy()
    return exp.cast(scaled, "HUGEINT")
