"""Security: checks statements and the caller's rights, and permits exactly what it has checked."""

from collections.abc import Mapping
from typing import Any

from agents.capability import CapabilityAuthority, Grant
from agents.dataset import Dataset
from agents.invocation import AgentContext
from podium.errors import CapabilityDenied
from tools.sql.guard import require

EXECUTOR = "executor"
"""The agent that tokens are for."""


def grant_for(dataset: str, sql: str, params: Mapping[str, Any], context: AgentContext) -> Grant:
    """What running one statement of this task needs; security issues it, the executor demands it."""
    return Grant.for_query(
        sql,
        params,
        task_id=context.task_id,
        audience=EXECUTOR,
        scope=f"sql:read:{dataset}",
        subject=context.caller.name,
    )


def secure(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Give back the statements as they may run, with a token for each.

    Raises:
        CapabilityDenied: the caller has none of the roles that may read the dataset.
        SqlRefused: a statement is not one plain SELECT over the dataset's tables; every reason is listed.
    """
    dataset = Dataset.of(context, inputs["dataset"])
    if not dataset.reader_roles & context.caller.roles:
        raise CapabilityDenied(
            f"{context.caller.name} may not read dataset {dataset.name}",
            next_step=f"Ask the operator for one of the roles {', '.join(sorted(dataset.reader_roles))}.",
            evidence=[f"roles: {', '.join(sorted(context.caller.roles)) or 'none'}"],
        )
    authority = context.resources.get(CapabilityAuthority.RESOURCE, CapabilityAuthority)
    schema = dataset.description.schema()
    checked, tokens, expiries = [], [], []
    for statement in inputs["statements"]:
        sql = require(statement["sql"], schema=schema)
        token, expires = authority.issue(grant_for(dataset.name, sql, statement["params"], context))
        checked.append({**statement, "sql": sql})
        tokens.append(token)
        expiries.append(expires)
    return {
        "statements": checked,
        "tokens": tokens,
        "expires": min(expiries).isoformat(timespec="seconds"),
        "confidence_score": 1.0,
        "sources": [],
    }
