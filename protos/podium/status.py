"""Statuses by name: the wire's enums as types, and as the lower-case words that JSON and people see."""

from typing import Any, Final, Protocol, TypeAlias

from podium.v1 import status_pb2

TaskStatus: TypeAlias = "status_pb2.TaskStatus.ValueType"
StepStatus: TypeAlias = "status_pb2.StepStatus.ValueType"
Recovery: TypeAlias = "status_pb2.Recovery.ValueType"
Priority: TypeAlias = "status_pb2.Priority.ValueType"
ReviewVerdict: TypeAlias = "status_pb2.ReviewVerdict.ValueType"

ENDED: Final = frozenset(
    {
        status_pb2.TASK_STATUS_SUCCEEDED,
        status_pb2.TASK_STATUS_FAILED,
        status_pb2.TASK_STATUS_CANCELLED,
        status_pb2.TASK_STATUS_EXPIRED,
    }
)
"""A task in one of these states never changes again."""

WAITS_FOR_PERSON: Final = frozenset({status_pb2.TASK_STATUS_WAITING_INPUT, status_pb2.TASK_STATUS_WAITING_REVIEW})
"""A task in one of these states goes on when somebody answers."""


def task_status_name(status: TaskStatus) -> str:
    """``waiting_input`` for TASK_STATUS_WAITING_INPUT; a number from a newer writer becomes ``unknown_N``."""
    return _name(status_pb2.TaskStatus, status, "TASK_STATUS_")


def step_status_name(status: StepStatus) -> str:
    """``succeeded`` for STEP_STATUS_SUCCEEDED; a number from a newer writer becomes ``unknown_N``."""
    return _name(status_pb2.StepStatus, status, "STEP_STATUS_")


def recovery_name(recovery: Recovery) -> str:
    """``retry`` for RECOVERY_RETRY; a number from a newer writer becomes ``unknown_N``."""
    return _name(status_pb2.Recovery, recovery, "RECOVERY_")


def task_status_of(name: str) -> TaskStatus:
    """The status of that lower-case name.

    Raises:
        ValueError: there is none.
    """
    return status_pb2.TaskStatus.Value(f"TASK_STATUS_{name.upper()}")


class _Enum(Protocol):
    def Name(self, number: Any) -> str: ...  # noqa: N802 - protobuf's own name


def _name(enum: _Enum, number: int, prefix: str) -> str:
    try:
        return enum.Name(number).removeprefix(prefix).lower()
    except ValueError:
        return f"unknown_{number}"
