"""Each command does the same wherever the server is: in its own process, found, named in clear, named with TLS."""

import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.integration.command_line import podium
from tests.integration.server import ROOT, serving

RELAY = "relay the words please"
ANSWER = "There are 4 words. [Source: S1]"
SHIPPED = str(ROOT / "agents" / "packs")
WAYS = ("embedded", "found", "named", "tls")


@pytest.fixture(scope="module", params=WAYS)
def reach(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options that lead to a server."""
    data = tmp_path_factory.mktemp(request.param) / "data"
    elsewhere = str(data.parent / "elsewhere")
    match request.param:
        case "embedded":
            yield ["--data", str(data)]
        case "found":
            with serving(data):
                yield ["--data", str(data)]
        case "named":
            with serving(data) as server:
                yield ["--server", server.address, "--data", elsewhere]
        case "tls":
            with serving(data, insecure_loopback=False) as server:
                ca = str(data / "tls" / "ca.pem")
                token = ["--token-file", str(server.token_file)]
                yield ["--server", server.address, "--ca", ca, *token, "--data", elsewhere]
    assert not Path(elsewhere).exists(), "a named server needs no data directory here"


def test_a_task_from_submission_to_reward(reach: list[str]) -> None:
    request_id = str(uuid.uuid4())
    submitted = podium("submit", RELAY, "--request-id", request_id, "--json", *reach)
    assert submitted.status == 0, submitted.err
    task = submitted.json
    task_id = task["task_id"]
    assert (task["status"], task["answer"], task["request"]) == ("succeeded", ANSWER, RELAY)
    assert [source["id"] for source in task["sources"]][:1] == ["S1"]
    tools = [step["tool"] for step in task["plan"]["steps"]]
    assert tools == ["relay_count", "relay_ponder", "relay_mark", "relay_tell"]
    assert task["plan"]["parallel_groups"] == [[0, 1], [2], [3]]
    assert "relay_count ∥ relay_ponder → relay_mark → relay_tell" in submitted.err
    assert "step 3 relay_tell done after" in submitted.err

    again = podium("submit", RELAY, "--request-id", request_id.upper(), "--json", *reach)
    assert (again.status, again.json["task_id"]) == (0, task_id)
    assert podium("task", "get", task_id, "--json", *reach).json == task

    listed = podium("task", "list", "--limit", "1", "--status", "succeeded", "--json", *reach)
    assert listed.status == 0
    [summary] = listed.json["tasks"]
    assert (summary["task_id"], summary["status"], summary["request"]) == (task_id, "succeeded", RELAY)
    assert podium("task", "list", "--status", "failed", "--json", *reach).json["tasks"] == []

    watched = podium("task", "watch", task_id, "--after", "3", "--json", *reach)
    assert (watched.status, watched.json) == (0, task)
    numbers = [int(line.split()[0]) for line in watched.err.splitlines()]
    assert numbers == list(range(4, 4 + len(numbers)))

    spans = podium("task", "timeline", task_id, "--json", *reach).json["spans"]
    lanes = {span["step"]: span["lane"] for span in spans}
    assert lanes[0] != lanes[1], "the steps that ran side by side are in lanes of their own"
    assert all(datetime.fromisoformat(span["start"]) <= datetime.fromisoformat(span["end"]) for span in spans)

    diagnosis = podium("task", "diagnose", task_id, "--json", *reach)
    assert (diagnosis.status, diagnosis.json["found"]) == (0, False)
    reward = podium("reward-debug", "--task-id", task_id, "--json", *reach).json
    assert reward["reward"] == task["reward"]
    weighted = sum(weight * reward["reward"][name] for name, weight in reward["weights"].items())
    assert weighted == pytest.approx(reward["reward"]["final"], abs=1e-3)
    assert all(term["origin"] for term in reward["terms"])

    cancelled = podium("task", "cancel", task_id, "--json", *reach)
    assert cancelled.error["code"] == "CONFLICT"
    assert podium("task", "get", task_id, "--json", *reach).json == task


def test_a_task_that_asks_is_answered_or_cancelled(reach: list[str]) -> None:
    asked = podium("submit", "frobnicate the thing", "--json", *reach)
    assert (asked.status, asked.json["status"]) == (1, "waiting_input")
    assert "frobnicate" in asked.json["question"]["text"]
    task_id = asked.json["task_id"]
    stopped = podium("task", "watch", task_id, "--json", *reach)
    assert (stopped.status, stopped.json["status"]) == (1, "waiting_input")
    answered = podium("task", "answer", task_id, "relay", "--json", *reach)
    assert (answered.status, answered.json["status"]) == (0, "succeeded"), answered.err
    assert "accepted" not in answered.err, "what was seen before is not shown again"
    late = podium("task", "answer", task_id, "relay", "--json", *reach)
    assert "asks nothing" in late.error["message"]

    other = podium("submit", "frobnicate the thing", "--json", *reach).json["task_id"]
    cancelled = podium("task", "cancel", other, "--reason", "no use", "--json", *reach)
    assert (cancelled.status, cancelled.json["status"]) == (0, "cancelled")


def test_a_crash_is_diagnosed_and_its_task_rejected(reach: list[str]) -> None:
    failed = podium("submit", "stumble please", "--json", *reach)
    assert (failed.status, failed.json["status"], failed.json["answer"]) == (1, "waiting_review", None)
    assert failed.json["error"]["code"] == "AGENT_CRASHED"
    assert "step 0 relay_stumble failed after" in failed.err
    found = podium("task", "diagnose", failed.json["task_id"], "--json", *reach)
    assert found.status == 0
    named = {name: found.json[name] for name in ("found", "step", "agent", "agent_version", "code")}
    ran = {"agent": "relay_stumble", "agent_version": "1.0.0"}
    assert named == {"found": True, "step": 0, **ran, "code": "AGENT_CRASHED"}
    shown = podium("task", "diagnose", failed.json["task_id"], *reach)
    assert "First wrong: step 0 (relay_stumble 1.0.0), AGENT_CRASHED" in shown.out
    assert found.json["evidence"]
    assert datetime.fromisoformat(found.json["time"])
    rejected = podium("review", "resolve", failed.json["task_id"], "--reject", "--json", *reach)
    assert rejected.status == 0, rejected.err
    assert podium("task", "watch", failed.json["task_id"], "--json", *reach).json["status"] == "failed"


def test_what_is_on_duty_and_whether_all_is_well(reach: list[str]) -> None:
    agents = podium("agents", "list", "--pack", "relay", "--json", *reach).json["agents"]
    assert {"relay_count", "relay_tell"} < {agent["name"] for agent in agents}
    assert {agent["pack"] for agent in agents} == {"relay"}
    health = podium("health-check", "--json", *reach)
    assert (health.status, health.json["ok"]) == (0, True), health.out
    assert {check["name"] for check in health.json["checks"]} >= {"packs", "models", "disk", "server", "agents"}
    assert podium("review", "list", "--json", *reach).json == {"reviews": []}


def test_an_accepted_task_outlives_the_command_and_its_server(tmp_path: Path) -> None:
    reach = ["--data", str(tmp_path)]
    accepted = podium("submit", RELAY, "--no-wait", "--json", *reach)
    assert (accepted.status, accepted.json["status"]) == (0, "accepted")
    watched = podium("task", "watch", accepted.json["task_id"], "--json", *reach)
    assert (watched.status, watched.json["answer"]) == (0, ANSWER)
    # Each of these started a server of its own; none may be looked for afterwards.
    assert not (tmp_path / "server.json").exists()
    assert (tmp_path / "reports" / f"{accepted.json['task_id']}.md").read_text() == ANSWER


def test_planning_debugging_and_settings_need_no_server(tmp_path: Path) -> None:
    (tmp_path / "podium.toml").write_text("workers = 3\n")
    reach = ["--data", str(tmp_path)]
    plan = podium("plan", RELAY, "--now", "2026-01-05", "--json", *reach)
    assert plan.status == 0
    assert set(plan.json) == {
        "steps",
        "parallel_groups",
        "confidence",
        "planner",
        "origin",
        "warnings",
        "route",
        "for_person",
    }
    step = plan.json["steps"][2]
    assert step["tool"] == "relay_mark"
    assert step["candidates"][0]["tool"] == "relay_mark"
    assert step["arguments"] == {"words": {"step": 0, "field": "words"}, "pause_ms": 80}
    assert step["depends_on"] == [0, 1]

    normal = podium("debug", "--normalize", "relay the wrods", "--json", *reach).json
    assert normal["original"] == "relay the wrods"
    assert normal["entities"]["relay"][0]["values"] == ["count"]

    settings = podium("config", "show", "--json", *reach).json["settings"]
    assert (settings["workers"]["value"], settings["workers"]["source"]) == (3, f"file {tmp_path / 'podium.toml'}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["podium.toml"]


def test_agents_are_held_to_their_contracts(tmp_path: Path) -> None:
    kept = podium("validate", "relay_count", "--count", "5", "--json", "--data", str(tmp_path))
    assert kept.status == 0, kept.out
    assert kept.json["ok"] is True
    broken = podium("validate", "--all", "--count", "3", "--json", "--data", str(tmp_path))
    assert (broken.status, broken.json["ok"]) == (1, False)
    failed = {agent["agent"]: agent["violations"] for agent in broken.json["agents"] if not agent["passed"]}
    assert {"relay_babble", "relay_stumble"} <= set(failed)
    assert all(failed.values())


def test_the_packs_that_ship_keep_their_contracts() -> None:
    ran = podium("validate", "--all", "--count", "100", "--json", environment={"PODIUM_PACKS": SHIPPED})
    assert ran.status == 0, [agent for agent in ran.json["agents"] if not agent["passed"]]
    assert len(ran.json["agents"]) > 15
