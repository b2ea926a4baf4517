"""Measures computed from raw rows with Python's own parser and Decimals: the second opinion on the engine."""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from operator import itemgetter
from typing import Any

from tools.sql.errors import SemanticModelInvalid
from tools.sql.model import Measure, SemanticModel

Number = int | Decimal
Row = Mapping[str, Any]

EXACT = Context(prec=80)
"""Wide enough that no sum of DECIMAL(38) is rounded."""


def measure_value(model: SemanticModel, name: str, rows: Sequence[Row]) -> Number | None:
    """A measure over raw rows; None where SQL would give NULL."""
    measure = model.measure(name)
    if not measure.is_ratio:
        return _aggregated(measure, rows)
    above = _aggregated(model.measures[str(measure.numerator)], rows)
    below = _aggregated(model.measures[str(measure.denominator)], rows)
    if above is None or below is None or below <= 0:
        return None
    return rounded(Fraction(above) / Fraction(below), measure.scale)


def measure_columns(model: SemanticModel, name: str) -> set[str]:
    """The columns of the grain that a measure reads."""
    measure = model.measure(name)
    if measure.is_ratio:
        return measure_columns(model, str(measure.numerator)) | measure_columns(model, str(measure.denominator))
    return {node.id for node in ast.walk(ast.parse(str(measure.expression))) if isinstance(node, ast.Name)}


def _aggregated(measure: Measure, rows: Iterable[Row]) -> Number | None:
    evaluate = _function(ast.parse(str(measure.expression), mode="eval").body)
    values: list[Number] = [value for row in rows if (value := evaluate(row)) is not None]
    match measure.aggregate:
        case "count":
            return len(values)
        case "count_distinct":
            return len(set(values))
        case _ if not values:
            return None
        case "min":
            return min(values)
        case "max":
            return max(values)
        case _:
            return _total(values)


def _total(values: Iterable[Number]) -> Number:
    total: Number = 0
    for value in values:
        total = total + value if isinstance(total, int) and isinstance(value, int) else EXACT.add(total, value)
    return total


def _function(node: ast.expr) -> Callable[[Row], Any]:
    """An expression as a function of a row; None where any part is."""
    match node:
        case ast.Constant(value=int(number)):
            return lambda row: number
        case ast.Name(id=name):
            return itemgetter(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _function(operand)
            return lambda row: None if (value := inner(row)) is None else -value
        case ast.BinOp(left=left, op=op, right=right):
            first, second, whole, exact = _function(left), _function(right), *_operations(op)

            def combined(row: Row) -> Any:
                a, b = first(row), second(row)
                if a is None or b is None:
                    return None
                return whole(a, b) if isinstance(a, int) and isinstance(b, int) else exact(a, b)

            return combined
    raise SemanticModelInvalid([f"{ast.unparse(node)!r} is more than + - * over columns"])


def _operations(op: ast.operator) -> tuple[Callable[[int, int], int], Callable[[Number, Number], Decimal]]:
    """An operator over whole numbers, and over anything exact."""
    match op:
        case ast.Add():
            return operator.add, EXACT.add
        case ast.Sub():
            return operator.sub, EXACT.subtract
        case ast.Mult():
            return operator.mul, EXACT.multiply
    raise SemanticModelInvalid([f"{type(op).__name__} is not + - *"])


def rounded(ratio: Fraction, digits: int) -> Decimal:
    """A ratio as a Decimal, rounded half away from zero."""
    whole = math.floor(abs(ratio) * 10**digits + Fraction(1, 2))
    return EXACT.scaleb(Decimal(whole if ratio >= 0 else -whole), -digits)
