"""Decisions about failed steps, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from conductor.failure import FailurePolicy, on_failure
from conductor.progress import StepProgress, TaskState
from podium.errors import (
    AgentCrashed,
    AgentTimeout,
    AgentUnreachable,
    CapabilityDenied,
    CapabilityExpired,
    DataCorrupt,
    DeviceLost,
    DeviceOffline,
    InputContractBroken,
    InvalidRequest,
    LowConfidence,
    PodiumError,
    ValidatorFailed,
)
from podium.v1 import status_pb2
from tests.fakes.agents import agent_spec

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
STATE = TaskState(task_id="t", expire_time=NOW + timedelta(hours=1))
STEP = StepProgress(uid="v1s0", index=0, tool="fetch", agent="fetch", agents_tried=("fetch",), attempts=1)
CRASH = AgentCrashed("it fell over")

RETRY = status_pb2.RECOVERY_RETRY
FALLBACK = status_pb2.RECOVERY_FALLBACK
REPLAN = status_pb2.RECOVERY_REPLAN
REVIEW = status_pb2.RECOVERY_REVIEW
DEGRADE = status_pb2.RECOVERY_DEGRADE
FAIL = status_pb2.RECOVERY_FAIL
WAIT = status_pb2.RECOVERY_WAIT_DEVICE


def decide(error: PodiumError, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "state": STATE,
        "step": STEP,
        "spec": agent_spec("fetch"),
        "alternatives": (),
        "degradable": False,
        "policy": FailurePolicy(),
        "now": NOW,
        **changes,
    }
    return on_failure(given.pop("state"), given.pop("step"), error, **given)


USED_UP = replace(STEP, failures=1)
ON_DEVICE = replace(STATE, device_id="pi")
WRITER = agent_spec("fetch", side_effects="write")
SAFE_WRITER = agent_spec(
    "fetch", side_effects="write", settings={"callable": "tests.fakes.agents:never_called", "idempotent": True}
)


@pytest.mark.parametrize(
    ("error", "changes", "expected"),
    [
        (CRASH, {}, RETRY),
        (ValidatorFailed("no"), {}, RETRY),
        (LowConfidence("unsure"), {}, REPLAN),
        (LowConfidence("unsure"), {"alternatives": ("fetch", "spare")}, FALLBACK),
        (CRASH, {"step": USED_UP}, REPLAN),
        (CRASH, {"step": USED_UP, "alternatives": ("spare",)}, FALLBACK),
        (CRASH, {"step": USED_UP, "alternatives": ("fetch",)}, REPLAN),
        (CRASH, {"step": USED_UP, "degradable": True}, DEGRADE),
        (CRASH, {"step": USED_UP, "state": replace(STATE, replans=3)}, REVIEW),
        (CRASH, {"step": USED_UP, "policy": FailurePolicy(max_replans=0, reviewers=False)}, FAIL),
        (InputContractBroken("wrong"), {}, REPLAN),
        (InvalidRequest("no image"), {"alternatives": ("spare",)}, FAIL),
        (DataCorrupt("bad bytes"), {}, FAIL),
        (CapabilityDenied("no token"), {"alternatives": ("spare",)}, FAIL),
        (CRASH, {"spec": WRITER}, REVIEW),
        (CRASH, {"spec": WRITER, "alternatives": ("spare",)}, REVIEW),
        (CRASH, {"spec": SAFE_WRITER}, RETRY),
        (CRASH, {"spec": SAFE_WRITER, "step": USED_UP, "alternatives": ("spare",)}, REVIEW),
        (CapabilityExpired("late"), {"alternatives": ("spare",)}, REPLAN),
        (CapabilityExpired("late"), {"state": replace(STATE, replans=3)}, FAIL),
        (DeviceOffline("away"), {"spec": WRITER, "state": ON_DEVICE}, WAIT),
        (DeviceLost("gone"), {"state": ON_DEVICE}, WAIT),
        (DeviceLost("gone"), {"spec": WRITER, "state": ON_DEVICE}, REVIEW),
        (DeviceLost("gone"), {"spec": SAFE_WRITER, "state": ON_DEVICE}, WAIT),
        (InputContractBroken("wrong"), {"spec": WRITER, "alternatives": ("spare",)}, FALLBACK),
        (DeviceOffline("gone"), {"state": ON_DEVICE}, WAIT),
        (DeviceOffline("gone"), {}, REVIEW),
        (DeviceOffline("gone"), {"alternatives": ("spare",)}, FALLBACK),
        (
            DeviceOffline("gone"),
            {"state": ON_DEVICE, "step": replace(STEP, device_deadline=NOW)},
            REVIEW,
        ),
    ],
)
def test_decisions(error: PodiumError, changes: dict[str, Any], expected: int) -> None:
    assert decide(error, **changes).recovery == expected


def test_delays_grow_for_agents_in_trouble_and_bad_outputs_are_asked_again_at_once() -> None:
    patient = agent_spec("fetch", sla={"timeout": 1, "retries": 5})
    delays = [
        decide(AgentTimeout("slow"), spec=patient, step=replace(STEP, failures=n)).delay.total_seconds()
        for n in range(5)
    ]
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert decide(ValidatorFailed("no")).delay == timedelta(0)
    assert decide(AgentUnreachable("gone")).delay == timedelta(milliseconds=200)


@pytest.mark.parametrize(("asked_s", "given_s"), [(0, 0.2), (7, 7), (3600, 60)])
def test_an_agent_that_says_when_to_come_back_is_given_that_time(asked_s: int, given_s: float) -> None:
    busy = AgentUnreachable("busy", retry_after=timedelta(seconds=asked_s))
    assert decide(busy).delay == timedelta(seconds=given_s)


def test_a_device_is_waited_for_no_longer_than_the_task_has() -> None:
    state = replace(STATE, device_id="pi", expire_time=NOW + timedelta(minutes=1))
    assert decide(DeviceOffline("gone"), state=state).deadline == NOW + timedelta(minutes=1)
    assert decide(DeviceOffline("gone"), state=replace(STATE, device_id="pi")).deadline == NOW + timedelta(
        minutes=30
    )


def test_a_write_that_was_certainly_not_called_is_tried_again_and_then_goes_to_another_agent() -> None:
    unreached = AgentUnreachable("nobody listens there")
    assert decide(unreached, spec=WRITER, alternatives=("other",)).recovery is REVIEW
    unreached.before_call = True
    assert decide(unreached, spec=WRITER, alternatives=("other",)).recovery is RETRY
    assert decide(unreached, spec=WRITER, step=USED_UP, alternatives=("other",)).recovery is FALLBACK
