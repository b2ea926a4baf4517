"""Logs recorded by earlier versions still fold, to the same end."""

import pytest

from conductor.diagnose import diagnose
from conductor.state import fold
from conductor.timeline import render, timeline
from conductor.view import task_view
from podium.v1 import event_pb2, status_pb2, task_pb2
from tests.fakes.agents import registry_of
from tests.golden.recording import load


def test_a_log_with_every_kind_of_event_folds_to_its_end() -> None:
    state = fold(load("2026-11-all-kinds"))
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
    assert state.last_sequence == 44
    assert state.plan_version == 3
    assert [(step.uid, step.agent, step.attempts) for step in state.steps] == [
        ("v2s0", "parse", 1),
        ("v2s1", "scan", 2),
        ("v3s2", "browse", 1),
        ("v3s3", "decorate", 2),
        ("v3s4", "add", 2),
        ("v3s5", "report", 1),
    ]
    assert state.steps[3].status == status_pb2.STEP_STATUS_SKIPPED
    assert [item.answer for item in state.clarifications] == ["east"]
    assert state.avoid == {"fetch", "add"}
    assert state.reviews_settled == 1
    assert state.result is not None
    assert state.result.answer_markdown == "It is 3 [Source: S1]"
    assert len(state.result.degraded) == 1
    assert state.reward is not None
    assert state.reward.final == pytest.approx(0.8907, abs=0.0001)


def test_its_views_are_what_they_were() -> None:
    events = load("2026-11-all-kinds")
    task = task_view(fold(events))
    assert task_pb2.Task.FromString(task.SerializeToString()) == task
    assert task.plan_version == 3
    assert [step.status for step in task.steps] == [3, 3, 3, 5, 3, 3]
    spans = timeline(events)
    waits = [(span.kind, (span.end - span.start).total_seconds()) for span in spans if span.kind != "step"]
    assert waits == [("question", 0.0), ("device", 20.0), ("review", 200.0)]
    assert {span.lane for span in spans} >= {0, 1, 2}
    assert "waits for device pi-1" in render(spans)


def test_what_went_wrong_first_is_named() -> None:
    found = diagnose(load("2026-11-all-kinds"), registry_of())
    assert (found.code, found.agent) == ("AGENT_CRASHED", "fetch")


def test_a_log_with_a_persons_plan_folds_to_its_end() -> None:
    events = load("2026-11-a-persons-plan")
    waiting = fold(events[:3])
    assert waiting.status == status_pb2.TASK_STATUS_WAITING_REVIEW
    assert waiting.reviews[0].proposed is not None
    assert waiting.reviews[0].proposed.plan.confidence == 0.55
    given = fold(events[:4])
    assert given.status == status_pb2.TASK_STATUS_RUNNING
    assert given.person_plan is not None
    assert (given.person_plan.person, given.person_plan.answer) == ("ada", 1)
    state = fold(events)
    assert (state.status, state.last_sequence) == (status_pb2.TASK_STATUS_SUCCEEDED, 11)
    assert (state.tenant, state.planner, state.origin) == ("acme", "person", "ada")
    assert state.result is not None
    assert state.result.planner == "person"
    assert [entry.planner for entry in state.result.route] == ["rules", "policy", "person"]
    assert state.result.route[1].confidence == 0.55


def test_events_of_a_newer_writer_are_passed_over() -> None:
    events = load("2026-11-all-kinds")
    # Field 4000 of Event: a payload that this version does not know.
    newer = event_pb2.Event.FromString(events[9].SerializeToString() + b"\x82\xfa\x01\x02\x08\x01")
    assert newer.header == events[9].header
    unknown = event_pb2.Event.FromString(b"\x82\xfa\x01\x02\x08\x01")
    unknown.header.CopyFrom(events[-1].header)
    unknown.header.sequence = 45
    state = fold([*events, unknown])
    assert state.last_sequence == 45
    assert state.status == status_pb2.TASK_STATUS_SUCCEEDED
