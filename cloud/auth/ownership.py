"""Whose a task is, and who else may see or touch it."""

from cloud.auth.principal import Principal
from cloud.auth.roles import OPERATOR, REVIEWER, VIEWER, implied
from podium.errors import NotFound, PermissionDenied


def reads_all(principal: Principal) -> bool:
    """Whether it sees everybody's tasks: viewers and operators do."""
    return VIEWER in implied(principal.roles)


def reads_all_blobs(principal: Principal) -> bool:
    """Whether it reads everybody's blobs: who sees all tasks, and who settles what they wait with."""
    return reads_all(principal) or REVIEWER in principal.roles


def check_may_read(principal: Principal, owner: str, task_id: str) -> None:
    """Let only those see a task who may.

    Raises:
        NotFound: it is another caller's. In the words that a task which is not there is told with, so that ids
            do not leak.
    """
    if owner != principal.caller and not reads_all(principal):
        raise NotFound(f"there is no task {task_id!r}")


def check_may_change(principal: Principal, owner: str, task_id: str) -> None:
    """Let only those cancel or answer a task who may: its caller and operators.

    Raises:
        NotFound: it is another caller's.
        PermissionDenied: it is another caller's, and this one may see it but not change it.
    """
    check_may_read(principal, owner, task_id)
    if owner != principal.caller and OPERATOR not in implied(principal.roles):
        raise PermissionDenied(
            f"task {task_id} is another caller's, and {principal.caller} may only read it",
            next_step="Ask its caller or an operator.",
        )
