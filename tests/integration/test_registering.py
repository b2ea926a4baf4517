"""Agents that come to a running server: looked over, tried, kept over restarts, switched, weighed and compared."""

import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud.audit import LedgerAuditLog
from podium.client import Client
from podium.errors import Conflict, InvalidRequest, NotFound, PodiumError
from podium.link import Address
from tests.integration.command_line import podium
from tests.integration.server import Running, serving

SOURCE = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^S[1-9][0-9]{0,3}$"},
        "kind": {"enum": ["sql", "document", "rule", "list", "request", "agent", "person"]},
        "label": {"type": "string", "maxLength": 500},
        "location": {"type": "string", "maxLength": 500},
        "sha256": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
    },
    "required": ["id", "kind", "label", "location", "sha256"],
    "additionalProperties": False,
}
ALLOWED: dict[str, Any] = {"agent_modules": "tests.integration.registered_agents"}


def manifest(function: str = "cities", **changes: Any) -> dict[str, Any]:
    """An agent that lists cities."""
    return {
        "name": "city_lister",
        "version": "1.0.0",
        "description": "Lists the cities of a country in the order of their size.",
        "capability_tags": ["cities"],
        "engine": "python",
        "settings": {"callable": f"tests.integration.registered_agents:{function}"},
        "input_schema": {
            "type": "object",
            "properties": {"country": {"type": "string", "maxLength": 100}},
            "required": ["country"],
            "additionalProperties": False,
            "examples": [{"country": "Switzerland"}],
        },
        "output_schema": {
            "type": "object",
            "properties": {
                "cities": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 100}},
                "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
                "sources": {"type": "array", "maxItems": 200, "items": SOURCE},
            },
            "required": ["cities", "confidence_score", "sources"],
            "additionalProperties": False,
        },
        **changes,
    }


def _text(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path / "data", **ALLOWED) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(Address.of(server.address)) as client:
        yield client


def _audited(data: Path) -> list[tuple[str, dict[str, Any]]]:
    log = LedgerAuditLog(data / "audit", clock=_never)
    try:
        return [
            (str(entry["action"]), dict(entry["details"]))  # type: ignore[call-overload]  # a JSON object
            for entry in log.entries()
            if str(entry["action"]).startswith("agent.")
        ]
    finally:
        log.close()


def _never() -> Any:
    raise AssertionError("nothing is appended here")


def test_a_registered_agent_is_tried_and_kept_over_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        response = client.register_agent(_text(manifest()))
        assert response.answered > 5
        assert (response.agent.weight, response.agent.enabled) == (1000, True)
        client.register_agent(_text(manifest(version="1.1.0")))
        client.set_agent_weights("city_lister", {"1.0.0": 900, "1.1.0": 100})
        client.set_agent_enabled("city_lister", False, version="1.1.0")
        client.set_agent_enabled("relay_mark", False)
    with serving(data, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        found = {(agent.name, agent.version): agent for agent in client.agents()}
        first, second = found["city_lister", "1.0.0"], found["city_lister", "1.1.0"]
        assert (first.weight, first.enabled, first.registered_by) == (900, True, "local")
        assert first.HasField("register_time")
        assert (second.weight, second.enabled) == (100, False)
        assert not found["relay_mark", "1.0.0"].enabled
        assert found["relay_count", "1.0.0"].registered_by == ""
        one = client.agent("city_lister")
        assert one.agent.manifest_sha256 == first.manifest_sha256
        assert json.loads(one.manifest_json)["settings"] == manifest()["settings"]
    assert [action for action, _ in _audited(data)] == [
        "agent.register",
        "agent.register",
        "agent.weights",
        "agent.disable",
        "agent.disable",
    ]


def test_what_no_longer_loads_is_left_out_and_the_server_starts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        client.register_agent(_text(manifest()))
        client.register_agent(_text(manifest(name="town_lister")))
        client.register_agent(_text(manifest(name="village_lister")))
    with sqlite3.connect(data / "registrations.sqlite") as file:
        file.execute("UPDATE registrations SET manifest = '{}' WHERE name = 'town_lister'")
        file.execute("UPDATE registrations SET manifest = 'no JSON' WHERE name = 'village_lister'")
    file.close()
    with serving(data, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        problems = {agent.name: agent.problem for agent in client.agents() if not agent.enabled}
        assert set(problems) == {"town_lister", "village_lister"}
        assert all(problem.startswith("left out at start: ") for problem in problems.values())
        with pytest.raises(NotFound, match="left out at start"):
            client.agent("town_lister", "1.0.0")
        assert client.agent("city_lister").agent.problem == ""
        listed = podium("agents", "list", "--data", str(data))
        assert "town_lister 1.0.0 (does not serve)\n    problem: left out at start: " in listed.out
    with serving(data) as server, Client(Address.of(server.address)) as client:
        # The operator took the module off the list.
        (city_lister,) = (agent for agent in client.agents() if agent.name == "city_lister")
        assert not city_lister.enabled
        assert "agent_modules" in city_lister.problem


def test_an_agent_that_breaks_its_contract_is_refused_with_everything(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, **ALLOWED) as server, Client(Address.of(server.address)) as client:
        with pytest.raises(InvalidRequest) as refused:
            client.register_agent(_text(manifest("joined")))
        assert refused.value.code == "TRIAL_FAILED"
        assert refused.value.evidence[0].startswith("LIST_AS_TEXT $.cities: a list came as text: 'Zurich, Geneva'")
        assert any("OUTPUT_CONTRACT_BROKEN" in line for line in refused.value.evidence)
        with pytest.raises(NotFound):
            client.agent("city_lister")
    ((action, details),) = _audited(data)
    assert action == "agent.register.refused"
    assert (details["agent"], details["code"]) == ("city_lister", "TRIAL_FAILED")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"settings": {"callable": "os:system"}}, "CODE_NOT_ALLOWED"),
        ({"output_hook": "subprocess:run"}, "CODE_NOT_ALLOWED"),
        ({"validators": [{"name": "v", "python": "shutil:rmtree"}]}, "CODE_NOT_ALLOWED"),
        ({"description": "Does things with stuff for you."}, "DESCRIPTION_VAGUE"),
        ({"input_schema": {"$include": "pack.yaml#name"}}, "INCLUDE_REFUSED"),
        ({"name": "relay_count", "version": "9.0.0", "side_effects": "write"}, "VERSION_WIDENS"),
    ],
)
def test_a_manifest_that_is_not_sound_is_refused(client: Client, changes: Mapping[str, Any], code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.register_agent(_text(manifest(**changes)))
    assert refused.value.code == "MANIFEST_INVALID"
    assert any(code in line for line in refused.value.evidence)


def test_a_dry_run_keeps_nothing_and_a_version_is_taken_once(client: Client) -> None:
    response = client.register_agent(_text(manifest()), dry_run=True, trial_count=3)
    assert response.agent.name == "city_lister"
    with pytest.raises(NotFound):
        client.agent("city_lister")
    client.register_agent(_text(manifest()))
    with pytest.raises(Conflict, match="registered already"):
        client.register_agent(_text(manifest()))


def test_an_agent_that_never_answers_is_refused_in_time(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "data", trial_seconds=0.5, **ALLOWED) as server,
        Client(Address.of(server.address)) as client,
    ):
        with pytest.raises(PodiumError) as refused:
            client.register_agent(_text(manifest("asleep")))
        assert refused.value.code == "AGENT_TIMEOUT"
        # One that writes is not tried at all.
        response = client.register_agent(_text(manifest("asleep", side_effects="write", sla={"retries": 0})))
        assert "TRIAL_SKIPPED" in {finding.code for finding in response.findings}


def test_switches_that_make_no_sense_change_nothing(client: Client) -> None:
    client.register_agent(_text(manifest()))
    for name, version in (("nobody", ""), ("city_lister", "7.0.0")):
        with pytest.raises(NotFound):
            client.set_agent_enabled(name, True, version=version)
    for weights in ({"1.0.0": 0}, {"1.0.0": 5000}, {"9.9.9": 5}, {}):
        with pytest.raises(PodiumError):
            client.set_agent_weights("city_lister", weights)
    assert client.agent("city_lister").agent.weight == 1000


def test_a_registered_agent_takes_part_in_tasks_and_its_disabling_ends_that(
    server: Running, client: Client
) -> None:
    counting = json.loads(client.agent("relay_count").manifest_json)
    better = {**counting, "version": "1.5.0", "settings": {"callable": f"{ALLOWED['agent_modules']}:count"}}
    client.register_agent(_text(better))

    def counted() -> str:
        return client.wait(client.submit("relay the words please").task_id).result.answer_markdown

    assert counted() == "There are 104 words. [Source: S1]"
    client.set_agent_enabled("relay_count", False, version="1.5.0")
    assert counted() == "There are 4 words. [Source: S1]"


def test_the_commands(server: Running, tmp_path: Path) -> None:
    reach = ("--server", server.address, "--json")
    file = tmp_path / "city_lister.yaml"
    file.write_text(_text(manifest()))
    looked = podium("register", "--file", str(file), "--lint-only", "--json", "--data", str(tmp_path / "none"))
    assert (looked.status, looked.json["ok"], looked.json["kept"]) == (0, True, False)
    tried = podium("register", "--file", str(file), "--dry-run", *reach)
    assert (tried.status, tried.json["kept"]) == (0, False)
    kept = podium("register", "--file", str(file), *reach)
    assert (kept.status, kept.json["kept"], kept.json["agent"]["name"]) == (0, True, "city_lister")
    assert podium("register", "--file", str(file), *reach).error["code"] == "CONFLICT"

    narrower = manifest(version="2.0.0")
    narrower["input_schema"]["properties"]["country"]["maxLength"] = 50
    file.write_text(_text(narrower))
    assert podium("register", "--file", str(file), *reach).status == 0
    shown = podium("agents", "show", "city_lister", *reach).json
    assert shown["agent"]["version"] == "2.0.0"
    assert [agent["weight"] for agent in shown["versions"]] == [0, 1000]
    differs = podium("agents", "diff", "city_lister", *reach).json
    assert (differs["from"], differs["to"], differs["compatible"]) == ("1.0.0", "2.0.0", False)
    assert differs["breaking"] == ["input_schema.properties.country.maxLength: 100 became 50"]
    back = podium("agents", "diff", "city_lister", "2.0.0", "1.0.0", *reach).json
    assert back["compatible"] is True

    shared = podium("agents", "weights", "city_lister", "1.0.0=900", "2.0.0=100", *reach).json["agents"]
    assert [agent["weight"] for agent in shared] == [900, 100]
    assert podium("agents", "weights", "city_lister", "1.0.0", *reach).error["code"] == "INVALID_REQUEST"
    off = podium("agents", "disable", "city_lister", "--version", "1.0.0", *reach).json["agents"]
    assert [agent["enabled"] for agent in off] == [False, True]
    on = podium("agents", "enable", "city_lister", *reach).json["agents"]
    assert all(agent["enabled"] for agent in on)
    person = podium("agents", "list", "--server", server.address)
    assert "city_lister 2.0.0 (python, computes only, weight 100)" in person.out
    there = podium("validate", "city_lister", "--count", "5", *reach)
    assert there.status == 0, there.out
    assert [agent["answered"] for agent in there.json["agents"]] == [6, 6]


def test_types_that_drift_are_named_where_the_agent_is_tried(server: Running, tmp_path: Path) -> None:
    reach = ("--server", server.address)
    counting = manifest("pointed", name="city_counter")
    counting["output_schema"]["properties"]["cities"] = {"type": "integer", "minimum": 0}
    file = tmp_path / "city_counter.yaml"
    file.write_text(_text(counting))
    kept = podium("register", "--file", str(file), "--trial-count", "2", *reach)
    assert kept.status == 0
    assert "INTEGER_WITH_POINT $.cities: is declared an integer and came with a decimal point" in " ".join(
        kept.out.split()
    )
    (told,) = podium("validate", "city_counter", "--count", "2", *reach, "--json").json["agents"]
    (drift,) = told["drift"]
    assert (drift["kind"], drift["place"], drift["times"]) == ("INTEGER_WITH_POINT", "$.cities", None)
    assert drift["message"].endswith("decimal point: 2.0 (in 3 outputs)")
    assert "INTEGER_WITH_POINT $.cities" in podium("validate", "city_counter", "--count", "2", *reach).out


def test_a_person_sees_the_line_and_a_caret(tmp_path: Path) -> None:
    file = tmp_path / "loose.yaml"
    loose = _text(manifest()).replace("  additionalProperties: false\n  examples:", "  examples:")
    file.write_text(loose)
    ran = podium("register", "--file", str(file), "--lint-only", "--data", str(tmp_path))
    assert ran.status == 1
    line = loose.splitlines().index("input_schema:") + 1
    assert f"loose.yaml:{line}: UNKNOWN_FIELDS_ALLOWED input_schema:" in ran.err
    assert f"{line:>6} | input_schema:\n       | ^\n" in ran.err
    as_json = podium("register", "--file", str(file), "--lint-only", "--json", "--data", str(tmp_path))
    assert as_json.json["ok"] is False
    assert [finding["line"] for finding in as_json.json["findings"] if finding["fatal"]] == [line]
    missing = podium("register", "--file", str(tmp_path / "none.yaml"), "--json")
    assert missing.error["code"] == "INVALID_REQUEST"


@pytest.fixture
def code() -> Iterator[Path]:
    """A folder with an agent's code, which a process of another user can read."""
    with tempfile.TemporaryDirectory(prefix="podium-agent-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        source = (Path(__file__).parent / "registered_agents.py").read_text("utf-8")
        # An isolated agent has the installed packages, and nothing of the server's own.
        plain = source.replace("from agents.invocation import AgentContext", "AgentContext = Any")
        (path / "city_lister.py").write_text(plain, encoding="utf-8")
        (path / "city_lister.py").chmod(0o644)
        yield path


def test_a_function_that_may_not_run_in_the_server_runs_in_a_process_of_its_own(
    tmp_path: Path, code: Path
) -> None:
    settings = {"callable": "city_lister:cities", "path": str(code)}
    isolated = manifest(settings=settings, engine="process")
    with (
        serving(tmp_path / "data", agent_folders=str(code)) as server,
        Client(Address.of(server.address)) as client,
    ):
        with pytest.raises(InvalidRequest, match="CODE_NOT_ALLOWED"):
            client.register_agent(_text(manifest()))
        assert client.register_agent(_text(isolated)).answered > 5
        isolated["settings"] = {"callable": "city_lister:joined", "path": str(code)}
        with pytest.raises(InvalidRequest) as refused:
            client.register_agent(_text({**isolated, "version": "2.0.0"}))
        assert refused.value.evidence[0].startswith("LIST_AS_TEXT $.cities")
    with serving(tmp_path / "other") as server, Client(Address.of(server.address)) as client:
        with pytest.raises(InvalidRequest, match="FOLDER_NOT_ALLOWED"):
            client.register_agent(_text(isolated))
        other = manifest(name="other_lister", settings={"callable": "tests.integration.registered_agents:cities"})
        with pytest.raises(InvalidRequest) as refused:
            # The engine is replaced: the function is not found there, where nothing of this checkout is.
            client.register_agent(_text(other), engine="process")
        assert refused.value.code == "TRIAL_FAILED"
