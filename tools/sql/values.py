"""How exact values travel: Decimals and dates keep their meaning through JSON and hashes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from tools.sql.errors import QueryInvalid

Value = bool | int | float | Decimal | str | date | datetime | None
"""What a cell or a parameter can hold."""


def plain(value: Value) -> bool | int | float | str | None:
    """The JSON form of one cell: Decimals in full decimal notation, dates and times in ISO 8601."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)  # JSON has no word for these
    return value


def canonical_rows(rows: Sequence[Sequence[Value]]) -> bytes:
    """Rows as compact UTF-8 JSON, the same bytes for the same rows on every machine."""
    cells = [[plain(cell) for cell in row] for row in rows]
    return json.dumps(cells, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def snapshot_sha256(rows: Sequence[Sequence[Value]]) -> str:
    """SHA-256 of `canonical_rows`, in hex: names the data an answer rests on."""
    return hashlib.sha256(canonical_rows(rows)).hexdigest()


def parameters_to_json(parameters: Mapping[str, Value]) -> dict[str, dict[str, object]]:
    """Parameters with their types, `{"start": {"date": "2026-07-01"}}`, so that JSON does not blur them."""
    return {name: {_type_name(value): plain(value)} for name, value in parameters.items()}


def parameters_from_json(document: Mapping[str, Mapping[str, object]]) -> dict[str, Value]:
    """The inverse of `parameters_to_json`.

    Raises:
        QueryInvalid: A parameter that is not one `{type: value}` pair of a known type.
    """
    return {name: _typed_value(name, pair) for name, pair in document.items()}


def _type_name(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, datetime):
        return "timestamp"
    return {bool: "boolean", int: "integer", float: "double", Decimal: "decimal", str: "text", date: "date"}[
        type(value)
    ]


def _typed_value(name: str, pair: Mapping[str, object]) -> Value:
    try:
        [(kind, raw)] = pair.items()
        match kind, raw:
            case ("null", None):
                return None
            case ("boolean", bool()):
                return raw
            case ("integer", int()) if not isinstance(raw, bool):
                return raw
            case ("double", float() | int()):
                return float(raw)
            case ("decimal", str()):
                return Decimal(raw)
            case ("text", str()):
                return raw
            case ("date", str()):
                return date.fromisoformat(raw)
            case ("timestamp", str()):
                return datetime.fromisoformat(raw)
    except (ValueError, ArithmeticError, AttributeError, TypeError) as error:
        raise _bad_parameter(name, pair) from error
    raise _bad_parameter(name, pair)


def _bad_parameter(name: str, pair: object) -> QueryInvalid:
    return QueryInvalid(
        f"Parameter {name!r} is not a typed value: {pair!r}.",
        next_step='Send {"date": "2026-07-01"}, {"decimal": "0.15"}, {"integer": 3} or {"text": "shanghai"}.',
    )
