"""`kill -9` while a task waits for a person's plan, and right after the person decided: nothing is lost."""

import json
from pathlib import Path

import pytest

from podium.client import Client
from podium.status import ENDED
from podium.v1 import event_pb2, status_pb2, task_pb2
from tests.integration.server import ServerProcess


@pytest.mark.slow
def test_a_case_and_a_decision_survive_the_death_of_the_server(tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path / "data",
        environment={"PODIUM_PLANNER": "hybrid"},
        program=("-m", "tests.integration.hybrid_server"),
    )
    server.start()
    with Client(server.address) as client:
        task_id = client.submit("reckon these four words").task_id
        waiting = client.wait(task_id)
        assert waiting.status == status_pb2.TASK_STATUS_WAITING_REVIEW
    server.kill()

    server.start()
    with Client(server.address) as client:
        [case] = [review for review in client.reviews() if review.task_id == task_id]
        proposed = json.loads(case.proposed_plan_json)
        assert [step["tool"] for step in proposed["steps"]] == ["relay_count", "relay_tell"]
        assert client.get(task_id).route == waiting.route
        proposed["steps"][0]["arguments"] = {"text": "six words are in this text", "pause_ms": 1500}
        client.resolve_review(
            task_id, status_pb2.REVIEW_VERDICT_CORRECTED, plan_json=json.dumps(proposed).encode(), note="better"
        )
    # What was decided is on disk, whether or not its plan is in force by now.
    server.kill()

    server.start()
    with Client(server.address) as client:
        task = _ended(client, task_id)
        assert task.result.answer_markdown == "There are 6 words. [Source: S1]"
        assert (task.planner, task.result.planner) == ("person", "person")
        events = [response.event for response in client.watch(task_id)]
        assert client.reviews() == []
    assert server.stop() == 0
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds.count("review_requested") == kinds.count("review_resolved") == kinds.count("plan_adopted") == 1
    assert [event.header.sequence for event in events] == list(range(1, len(events) + 1))
    resolved = _only(events, "review_resolved").review_resolved
    assert (resolved.note, resolved.answer_step) == ("better", 1)


def _ended(client: Client, task_id: str) -> task_pb2.Task:
    for response in client.watch(task_id):
        if response.status in ENDED:
            break
    task = client.get(task_id)
    assert task.status == status_pb2.TASK_STATUS_SUCCEEDED, task.error
    return task


def _only(events: list[event_pb2.Event], kind: str) -> event_pb2.Event:
    [found] = [event for event in events if event.WhichOneof("payload") == kind]
    return found
