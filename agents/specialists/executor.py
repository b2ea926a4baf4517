"""Executor: runs statements that carry a valid capability token, read-only, and names the data it read."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from agents.canonical import sha256_of
from agents.capability import CapabilityAuthority
from agents.dataset import Dataset
from agents.invocation import AgentContext
from agents.specialists.security import grant_for
from podium.errors import CapabilityDenied
from tools.sql.errors import SqlTooManyRows
from tools.sql.shape import BASE_MISSING
from tools.sql.values import parameters_from_json

_MAX_ROWS = 5_000
_TIMEOUT = timedelta(seconds=20)


def execute(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Run every statement of `inputs.statements` under the token of the same index.

    Raises:
        CapabilityExpired: a token's time is over.
        CapabilityDenied: a token is missing, or for another statement, task or caller.
        SqlTooManyRows: a result is larger than 5,000 rows; a part of it would mislead.
        SqlTimeout: a statement took longer than 20 s.
    """
    dataset = Dataset.of(context, inputs["dataset"])
    authority = context.resources.get(CapabilityAuthority.RESOURCE, CapabilityAuthority)
    statements, tokens = inputs["statements"], inputs["tokens"]
    if len(statements) != len(tokens):
        raise CapabilityDenied(f"{len(statements)} statements came with {len(tokens)} capability tokens")
    # Every token first: nothing runs unless everything may.
    for statement, token in zip(statements, tokens, strict=True):
        authority.demand(token, grant_for(dataset.name, statement["sql"], statement["params"], context))
    results = [_run(dataset, statement) for statement in statements]
    return {
        "results": results,
        "empty": all(
            _says_nothing(result, statement["columns"])
            for result, statement in zip(results, statements, strict=True)
        ),
        "snapshot_sha256": sha256_of([result["sha256"] for result in results]),
        "confidence_score": 1.0,
        "sources": [
            {
                "id": f"S{number}",
                "kind": "sql",
                "label": statement["description"][:500],
                "location": f"{dataset.name}.{dataset.model.grain}",
                "sha256": result["sha256"],
            }
            for number, (statement, result) in enumerate(zip(statements, results, strict=True), start=1)
        ],
    }


def _run(dataset: Dataset, statement: Mapping[str, Any]) -> dict[str, Any]:
    params = parameters_from_json(statement["params"])
    # EXPLAIN binds every name and type: what cannot run fails before it reads a row.
    dataset.warehouse.explain(statement["sql"], params)
    found = dataset.warehouse.query(statement["sql"], params, max_rows=_MAX_ROWS, timeout=_TIMEOUT)
    if found.truncated:
        raise SqlTooManyRows(max_rows=_MAX_ROWS)
    table = found.as_json()
    return {
        "purpose": statement["purpose"],
        "columns": table["columns"],
        "types": table["types"],
        "rows": table["rows"],
        "sha256": found.snapshot_sha256,
    }


def _says_nothing(result: Mapping[str, Any], columns: Sequence[Mapping[str, str]]) -> bool:
    """Whether no cell of the result holds a measurement: no rows, or only sums over nothing."""
    told = {"value", "current", "base"}
    for row in result["rows"]:
        cells = dict(zip(result["columns"], row, strict=True))
        for column in columns:
            # A sum over no rows counts as 0 in a comparison; without a base it is nothing.
            of_nothing = cells.get(f"{column['of']}_status") == BASE_MISSING and _is_zero(cells[column["name"]])
            if column["role"] in told and cells[column["name"]] is not None and not of_nothing:
                return False
    return True


def _is_zero(cell: Any) -> bool:
    return cell is not None and not isinstance(cell, bool) and float(cell) == 0
