"""`podium edge run` as people and service managers use it."""

import json
import os
import signal
import subprocess
import sys

from edge.commands import answer_of
from podium.v1 import status_pb2, task_pb2


def test_an_answer_holds_what_the_issue_promises():
    task = task_pb2.Task(task_id="t", status=status_pb2.TASK_STATUS_SUCCEEDED)
    fields = {"fields": {"number": 1}, "findings": [2], "needs_review": [3], "risk": "low"}
    task.result.fields_json = json.dumps(fields).encode()
    assert answer_of(task) == {
        "task_id": "t",
        "status": "succeeded",
        "fields": {"number": 1},
        "findings": [2],
        "needs_review": [3],
    }


def test_a_task_without_an_answer_says_why():
    task = task_pb2.Task(task_id="t", status=status_pb2.TASK_STATUS_FAILED)
    task.error.code, task.error.message, task.error.next_step = "X", "it broke", "mend it"
    answer = answer_of(task)
    assert answer["error"] == {"code": "X", "message": "it broke", "next_step": "mend it"}
    assert answer["fields"] == {}
    asked = task_pb2.Task(task_id="t", status=status_pb2.TASK_STATUS_WAITING_INPUT)
    asked.question.text = "Which?"
    assert answer_of(asked)["question"] == "Which?"


def test_a_service_manager_stops_it_cleanly(tmp_path):
    command = [
        sys.executable,
        "-m",
        "podium.cli",
        "edge",
        "run",
        "--server",
        "127.0.0.1:1",
        "--watch",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "not connected" in line:
                break
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "stopped" in said
    assert process.returncode == 0


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    command = [sys.executable, "-m", "podium.cli", "edge", "run", "--json", "--watch", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "INVALID_REQUEST"
