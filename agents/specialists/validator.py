"""Validator: answers the question again from the raw rows, by another path, and compares exactly."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.question import Question
from podium.errors import InputContractBroken
from tools.sql.recompute import RowsRead, differences, recompute
from tools.sql.values import Value
from tools.sql.warehouse import QueryResult

_MAX_SHOWN = 50


def validate(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Recompute every result of `inputs.results`; contradictions are named with both values.

    Raises:
        SqlTooManyRows: there are more raw rows than can be read.
    """
    dataset = Dataset.of(context, inputs["dataset"])
    queries = Question.from_json(inputs["intent"]).queries(dataset.model)
    found: list[dict[str, str]] = []
    results = {result["purpose"]: result for result in inputs["results"]}
    already_read: RowsRead = {}
    rows_read = cells = 0
    for purpose, query in queries.items():
        if purpose not in results:
            found.append({"purpose": purpose, "evidence": "there is no result for this query"})
            continue
        again = recompute(dataset.warehouse, dataset.model, query, already_read=already_read)
        rows_read += again.rows_read
        cells += sum(len(row) for row in again.rows)
        reported = _result(results[purpose])
        found.extend({"purpose": purpose, "evidence": line[:500]} for line in differences(reported, again))
    found.extend(
        {"purpose": purpose, "evidence": "nobody asked for this result"}
        for purpose in sorted(set(results) - set(queries))
    )
    return {
        "agrees": not found,
        "contradictions": found[:_MAX_SHOWN],
        "cells_checked": cells,
        "rows_read": rows_read,
        "confidence_score": 0.0 if found else 1.0,
        "sources": [
            {
                "id": "S1",
                "kind": "sql",
                "label": f"{dataset.name}: recomputed from {rows_read} raw rows",
                "location": f"dataset {dataset.name}, {dataset.model.grain}",
                "sha256": "",
            }
        ],
    }


def _result(result: Mapping[str, Any]) -> QueryResult:
    types = tuple(result["types"])
    if any(len(cells) != len(result["columns"]) for cells in (types, *result["rows"])):
        raise InputContractBroken(f"result {result['purpose']} has rows that are not as long as its header")
    rows = tuple(tuple(_cell(kind, cell) for kind, cell in zip(types, row, strict=True)) for row in result["rows"])
    return QueryResult(
        columns=tuple(result["columns"]),
        types=types,
        rows=rows,
        row_count=len(rows),
        truncated=False,
    )


def _cell(kind: str, cell: Any) -> Value:
    """A JSON cell as the value it stands for."""
    try:
        if isinstance(cell, str):
            if kind.startswith("DECIMAL"):
                return Decimal(cell)
            if kind == "DATE":
                return date.fromisoformat(cell)
            if kind.startswith("TIMESTAMP"):
                return datetime.fromisoformat(cell)
    except (ValueError, ArithmeticError) as error:
        raise InputContractBroken(f"{cell!r} is not a {kind}") from error
    value: Value = cell
    return value
