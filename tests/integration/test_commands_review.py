"""What waits for a person, listed and settled on the command line."""

import json
from pathlib import Path

from tests.integration.command_line import podium
from tests.integration.server import Running


def _waiting(reach: list[str]) -> str:
    """The id of a task whose agent crashed and which therefore waits for a person."""
    crashed = podium("submit", "stumble please", "--json", *reach)
    assert (crashed.status, crashed.json["status"]) == (1, "waiting_review")
    return str(crashed.json["task_id"])


def test_a_review_is_listed_refused_and_settled(server: Running, tmp_path: Path) -> None:
    reach = ["--data", str(server.data)]
    task_id = _waiting(reach)
    listed = podium("review", "list", "--json", *reach)
    assert listed.status == 0
    [review] = listed.json["reviews"]
    assert (review["task_id"], review["step"], review["request"]) == (task_id, 0, "stumble please")
    assert review["input"] == {"text": "stumble please"}
    assert "markdown" in review["output_schema"]["required"]
    assert review["reason"]["message"]
    shown = podium("review", "list", *reach)
    assert task_id in shown.out
    assert f"podium review resolve ID --data {server.data}" in shown.out
    assert "podium review list" in podium("task", "get", task_id, *reach).out

    output = tmp_path / "output.json"
    output.write_text('{"markdown": 7}')
    refused = podium("review", "resolve", task_id, "--output", str(output), "--json", *reach)
    assert refused.error["code"] == "INVALID_REQUEST"
    assert "markdown" in " ".join([refused.error["message"], *refused.error["evidence"]])
    source = {"id": "P1", "kind": "person", "label": "counted by hand", "location": "the request", "sha256": ""}
    answer = {"markdown": "There are 2 words. [Source: P1]", "confidence_score": 1.0, "sources": [source]}
    output.write_text(json.dumps(answer))
    settled = podium("review", "resolve", task_id, "--output", str(output), "--note", "counted", "--json", *reach)
    assert (settled.status, settled.json["task_id"]) == (0, task_id), settled.err
    done = podium("task", "watch", task_id, "--json", *reach)
    assert (done.status, done.json["status"]) == (0, "succeeded")
    assert done.json["answer"] == answer["markdown"]
    assert podium("review", "list", "--json", *reach).json == {"reviews": []}


def test_a_task_is_rejected(server: Running) -> None:
    reach = ["--data", str(server.data)]
    task_id = _waiting(reach)
    rejected = podium("review", "resolve", task_id, "--reject", "--note", "not ours", "--json", *reach)
    assert rejected.status == 0, rejected.err
    assert podium("task", "watch", task_id, "--json", *reach).json["status"] == "failed"
    again = podium("review", "resolve", task_id, "--reject", "--json", *reach)
    assert again.error["code"] == "CONFLICT"
