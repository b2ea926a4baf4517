"""Rules, then the trained planner, then a person or the caller: through a real server and its commands."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloud import planners
from podium.client import Client
from podium.link import Address
from podium.v1 import event_pb2, status_pb2
from tests.integration.command_line import podium
from tests.integration.hybrid_server import worded
from tests.integration.server import Running, serving

COUNTED = "There are {} words. [Source: S1]"
THRESHOLDS = {"default": {"run": 0.8, "ask_person": 0.4}, "acme": {"run": 0.95}}


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planners, "planner_of", worded)
        data = tmp_path_factory.mktemp("data")
        with serving(data, planner="hybrid", plan_thresholds=THRESHOLDS, insecure_loopback=False) as running:
            yield running


@pytest.fixture
def reach(hybrid: Running) -> list[str]:
    return ["--data", str(hybrid.data)]


def log_of(hybrid: Running, task_id: str) -> list[event_pb2.Event]:
    with Client(hybrid.tls_address()) as client:
        return [response.event for response in client.watch(task_id)]


@pytest.mark.parametrize(
    ("text", "planner", "route"),
    [
        ("relay the words please", "rules", [("rules", True)]),
        ("tally these very words", "policy", [("rules", False), ("policy", True)]),
    ],
)
def test_who_planned_is_in_the_answer_the_log_and_on_the_terminal(
    hybrid: Running, reach: list[str], text: str, planner: str, route: list[tuple[str, bool]]
) -> None:
    done = podium("submit", text, "--json", *reach)
    assert (done.status, done.json["answer"]) == (0, COUNTED.format(4)), done.err
    assert done.json["planner"] == planner
    assert [(entry["planner"], entry["taken"]) for entry in done.json["route"]] == route
    assert f"(by {planner}" in done.err
    shown = podium("task", "get", done.json["task_id"], *reach)
    assert f"Planner {planner}" in shown.out
    [adopted] = [
        event.plan_adopted for event in log_of(hybrid, done.json["task_id"]) if event.HasField("plan_adopted")
    ]
    [succeeded] = [
        event.task_succeeded for event in log_of(hybrid, done.json["task_id"]) if event.HasField("task_succeeded")
    ]
    assert [(entry.planner, entry.taken) for entry in adopted.route] == route
    assert list(succeeded.result.route) == list(adopted.route)
    assert succeeded.result.planner == planner
    if planner == "policy":
        assert done.json["route"][1]["confidence"] == pytest.approx(0.92)
        assert done.json["route"][1]["threshold"] == 0.8
        page = hybrid.data / "page.html"
        assert podium("task", "timeline", done.json["task_id"], "--html", str(page), *reach).status == 0
        assert "Planner policy (0.92 sure, 0.80 needed)" in page.read_text()


@pytest.mark.parametrize(("text", "sure"), [("guess what", 0.11), ("sing a song", None)])
def test_the_caller_is_asked_where_nobody_is_sure(reach: list[str], text: str, sure: float | None) -> None:
    asked = podium("submit", text, "--json", *reach)
    assert (asked.status, asked.json["status"]) == (1, "waiting_input")
    assert asked.json["question"]["text"]
    assert [entry["confidence"] for entry in asked.json["route"]] == [None, sure]


def test_a_person_is_asked_and_their_plan_is_followed(hybrid: Running, reach: list[str], tmp_path: Path) -> None:
    waiting = podium("submit", "reckon these four words", "--json", *reach)
    assert (waiting.status, waiting.json["status"], waiting.json["plan"]) == (1, "waiting_review", None)
    assert waiting.json["error"]["code"] == "PLAN_UNSURE"
    task_id = waiting.json["task_id"]
    listed = podium("review", "list", "--json", *reach)
    [case] = [review for review in listed.json["reviews"] if review["task_id"] == task_id]
    assert (case["step"], case["request"]) == (None, "reckon these four words")
    assert case["normalised_request"]["text"] == "reckon these four words"
    assert [step["tool"] for step in case["proposed_plan"]["steps"]] == ["relay_count", "relay_tell"]
    assert [entry["planner"] for entry in case["route"]] == ["rules", "policy"]
    shown = podium("review", "list", *reach)
    assert "Proposed: relay_count → relay_tell" in shown.out
    assert "Asked: policy (0.55 sure, 0.80 needed)" in shown.out
    assert "--accept | --plan FILE | --reject" in shown.out

    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"steps": [{"tool": "relay_sing", "arguments": {}}]}))
    refused = podium("review", "resolve", task_id, "--plan", str(plan), "--json", *reach)
    assert refused.error["code"] == "PLAN_REJECTED"
    assert any("relay_sing" in line for line in refused.error["evidence"])
    for wrong, field in (("[]", "plan_json"), ('{"steps": [], "answer_step": 3}', "answer_step"), ("{", "plan")):
        plan.write_text(wrong)
        assert field in podium("review", "resolve", task_id, "--plan", str(plan), "--json", *reach).out
    both = podium("review", "resolve", task_id, "--accept", "--reject", "--json", *reach)
    assert both.error["code"] == "INVALID_REQUEST"
    assert podium("task", "get", task_id, "--json", *reach).json["status"] == "waiting_review"

    mended = {**case["proposed_plan"], "confidence": 1.0}
    mended["steps"][0]["arguments"]["text"] = "just three words"
    plan.write_text(json.dumps(mended))
    settled = podium("review", "resolve", task_id, "--plan", str(plan), "--note", "count this", "--json", *reach)
    assert settled.status == 0, settled.err
    done = podium("task", "watch", task_id, "--json", *reach)
    assert (done.status, done.json["answer"]) == (0, COUNTED.format(3)), done.err
    assert done.json["planner"] == "person"
    assert "a person has decided for the plan relay_count → relay_tell" in done.err
    resolved = next(
        event.review_resolved for event in log_of(hybrid, task_id) if event.HasField("review_resolved")
    )
    assert (resolved.reviewer, resolved.note) == ("operator", "count this")
    assert resolved.verdict == status_pb2.REVIEW_VERDICT_CORRECTED


def test_a_proposed_plan_is_accepted(reach: list[str]) -> None:
    waiting = podium("submit", "reckon these five words now", "--json", *reach)
    settled = podium("review", "resolve", waiting.json["task_id"], "--accept", "--json", *reach)
    assert settled.status == 0, settled.err
    done = podium("task", "watch", waiting.json["task_id"], "--json", *reach)
    assert (done.status, done.json["answer"]) == (0, COUNTED.format(5)), done.err


def test_thresholds_are_those_of_the_callers_tenant(hybrid: Running, reach: list[str], tmp_path: Path) -> None:
    acme = podium(
        "token", "issue", "--subject", "ann", "--role", "caller", "--tenant", "acme", "--json", *reach
    )  # fmt: skip
    assert acme.json["tenant"] == "acme"
    address = Address.of(hybrid.address, hybrid.data / "tls" / "ca.pem", token=acme.json["token"])
    with Client(address) as client:
        task = client.submit("tally these very words")
        task = client.wait(task.task_id)
    assert task.status == status_pb2.TASK_STATUS_WAITING_REVIEW, "acme's plans must be 0.95 sure"
    assert task.route[1].threshold == 0.95
    accepted = next(event.task_accepted for event in _now(hybrid, task.task_id, task.last_sequence))
    assert (accepted.tenant, accepted.caller) == ("acme", "ann")
    bad = podium("token", "issue", "--subject", "ann", "--role", "caller", "--tenant", "a c", "--json", *reach)
    assert bad.error["code"] == "INVALID_REQUEST"
    assert podium("review", "resolve", task.task_id, "--reject", *reach).status == 0


def _now(hybrid: Running, task_id: str, last: int) -> list[event_pb2.Event]:
    events = []
    with Client(hybrid.tls_address()) as client:
        for response in client.watch(task_id):
            events.append(response.event)
            if response.event.header.sequence >= last:
                break
    return events


def test_what_people_decided_becomes_a_training_set(hybrid: Running, reach: list[str], tmp_path: Path) -> None:
    """Beside the running server; the tests before this one left what people decided."""
    for text in ("reckon a first set", "reckon a second set"):
        waiting = podium("submit", text, "--json", *reach)
        assert podium("review", "resolve", waiting.json["task_id"], "--accept", *reach).status == 0
        assert podium("task", "watch", waiting.json["task_id"], *reach).status == 0
    built = podium("dataset", "build", "--json", *reach)
    assert built.status == 0, built.err
    told = built.json["manifest"]
    assert told["rows"] >= 2
    assert set(told["tenants"]) == {"operator"}
    again = podium("dataset", "build", "--json", *reach)
    assert (again.json["manifest"]["version"], again.json["new"]) == (told["version"], False)
    text = podium("dataset", "build", *reach).out
    assert f"{told['rows']} rows, version {told['version'][:16]}" in text
    other = podium(
        "dataset", "build", "--out", str(tmp_path / "set"), "--without-tenant", "operator", "--json", *reach
    )
    assert other.json["manifest"]["rows"] == 0
    assert other.json["manifest"]["left_out"]["the tenant is left out"] == told["rows"]
    waiting = podium("submit", "reckon a third set", "--json", *reach)
    assert podium("review", "resolve", waiting.json["task_id"], "--accept", *reach).status == 0
    assert podium("task", "watch", waiting.json["task_id"], *reach).status == 0
    newer = podium("dataset", "build", "--json", *reach).json["manifest"]
    assert newer["parent"] == told["version"]
    listed = podium("dataset", "list", "--json", *reach).json["sets"]
    assert [item["manifest"]["version"] for item in listed] == [newer["version"], told["version"]]
    assert "corrections" in podium("dataset", "list", *reach).out
    found = podium("dataset", "diff", told["version"][:12], "corrections", "--json", *reach).json
    assert (found["added"], found["removed"], found["changed"]) == ([waiting.json["task_id"]], [], [])
    assert found["same"] == told["rows"]
    assert (
        f"+ {waiting.json['task_id']}"
        in podium("dataset", "diff", told["version"][:12], "corrections", *reach).out
    )
    gone = podium(
        "dataset", "diff", str(tmp_path / "set"), f"corrections@{newer['version'][:8]}", "--json", *reach
    )
    assert len(gone.json["added"]) == newer["rows"]


@pytest.mark.parametrize("reference", ["nothing", "cor", "corrections@0000000", "ffffffffff"])
def test_a_training_set_that_is_not_there_is_told(reach: list[str], reference: str) -> None:
    assert podium("dataset", "diff", reference, reference, "--json", *reach).error["code"] == "NOT_FOUND"


def test_a_training_set_that_was_changed_is_told(reach: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "set"
    assert podium("dataset", "build", "--out", str(folder), *reach).status == 0
    (folder / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes() + b"{}\n")
    assert (
        podium("dataset", "diff", str(folder), str(folder), "--json", *reach).error["code"]
        == "TRAINING_SET_DAMAGED"
    )
    (folder / "manifest.json").write_text("{")
    assert (
        podium("dataset", "diff", str(folder), str(folder), "--json", *reach).error["code"]
        == "TRAINING_SET_DAMAGED"
    )
    assert podium("dataset", "build", "--name", "A/../b", "--json", *reach).error["code"] == "INVALID_REQUEST"
    nowhere = podium("dataset", "build", "--data", str(tmp_path), "--json")
    assert nowhere.error["code"] == "INVALID_REQUEST"
