"""Logger: appends what was done to the audit log, once."""

from collections.abc import Mapping
from typing import Any

from agents.audit import AuditEntry, AuditLog
from agents.invocation import AgentContext
from podium.errors import InternalError

RESOURCE = "audit_log"
"""Name of the audit log among the resources."""


def log(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Append `inputs.action` with its details under the step's idempotency key.

    Raises:
        InternalError: the process has no audit log.
        StorageFull: there is no room for the entry.
    """
    audit_log = context.resources.entries.get(RESOURCE)
    if not isinstance(audit_log, AuditLog):
        raise InternalError(
            f"resource {RESOURCE!r} is not configured", next_step="Start the server with an audit log."
        )
    receipt = audit_log.append(
        AuditEntry(
            key=context.idempotency_key,
            at=context.now,
            task_id=context.task_id,
            caller=context.caller.name,
            action=inputs["action"],
            details={name: inputs[name] for name in ("sources", "snapshot_sha256", "note") if name in inputs},
        )
    )
    return {
        "sequence": receipt.sequence,
        "entry_sha256": receipt.sha256,
        "duplicate": receipt.duplicate,
        "confidence_score": 1.0,
        "sources": [],
    }
