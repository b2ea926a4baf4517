from pathlib import Path

import pytest

from cloud.settings import SettingsInvalid, load_settings


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    config = tmp_path / "podium.toml"
    config.write_text('workers = 2\ntasks_per_worker = 3\nagent_threads = 5\nlog_level = "debug"\n')
    loaded = load_settings(
        flags={"data": tmp_path, "workers": 4, "listen": None},
        environment={"PODIUM_WORKERS": "9", "PODIUM_TASKS_PER_WORKER": "7", "HOME": "/"},
    )
    assert (loaded.settings.workers, loaded.sources["workers"]) == (4, "flag --workers")
    assert loaded.settings.tasks_per_worker == 7
    assert loaded.sources["tasks_per_worker"] == "environment PODIUM_TASKS_PER_WORKER"
    assert (loaded.settings.agent_threads, loaded.sources["agent_threads"]) == (5, f"file {config}")
    assert (loaded.settings.listen, loaded.sources["listen"]) == ("127.0.0.1:7443", "default")
    shown = loaded.to_json()
    assert shown["log_level"]["value"] == "debug"
    assert all(entry["meaning"] for entry in shown.values())


def test_a_named_file_wins_over_the_one_in_the_data_directory(tmp_path: Path) -> None:
    (tmp_path / "podium.toml").write_text("workers = 2\n")
    other = tmp_path / "other.toml"
    other.write_text(f'workers = 3\ndata = "{tmp_path}"\n')
    loaded = load_settings(flags={}, environment={}, config=other)
    assert loaded.settings.workers == 3
    assert loaded.settings.data == tmp_path


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("wrokers = 2", "wrokers"),
        ("workers = 0", "workers"),
        ('workers = "many"', "workers"),
        ("grace_seconds = nan", "grace_seconds"),
        ('listen = "7443"', "listen"),
        ('listen = "127.0.0.1:70000"', "listen"),
        ('tls_key = "k.pem"', "tls_certificate"),
        ("workers = = 1", "podium.toml"),
        ('planner = "oracle"', "planner"),
        ("[plan_thresholds.default]\nrun = 1.2", "plan_thresholds"),
        ("[plan_thresholds.acme]\nrun = nan", "plan_thresholds"),
        ("[plan_thresholds.acme]\nwalk = 0.2", "walk"),
        ("[plan_thresholds.acme]\nrun = 0.2\nask_person = 0.4", "ask_person 0.4 is above run 0.2"),
        ('plan_thresholds = "{"', "plan_thresholds"),
        ("\x00", "podium.toml"),
    ],
)
def test_wrong_settings_are_named_with_their_file(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / "podium.toml").write_text(content)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(flags={"data": tmp_path}, environment={})
    assert named in caught.value.message


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid):
        load_settings(flags={}, environment={}, config=tmp_path / "no.toml")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "example.org", "[::]"])
def test_without_tls_only_loopback_is_served(host: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(flags={"listen": f"{host}:0", "insecure_loopback": True, "data": "/nowhere"}, environment={})
    assert "loopback" in caught.value.message
    load_settings(flags={"listen": f"{host}:0", "data": "/nowhere"}, environment={})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.8.8"])
def test_loopback_may_be_served_without_tls(host: str) -> None:
    flags = {"listen": f"{host}:0", "insecure_loopback": True, "data": "/nowhere"}
    assert load_settings(flags=flags, environment={}).settings.insecure_loopback


@pytest.mark.parametrize(
    ("given", "machines"),
    [
        ({}, "127.0.0.1:7444"),
        ({"listen": "0.0.0.0:9000"}, "0.0.0.0:9001"),
        ({"listen": "127.0.0.1:0"}, "127.0.0.1:0"),
        ({"listen_machines": "[::]:7"}, "[::]:7"),
        ({"listen_machines": "off"}, ""),
        ({"insecure_loopback": True}, ""),
    ],
)
def test_machines_have_the_next_port(given: dict[str, object], machines: str) -> None:
    assert load_settings(flags=given, environment={}).settings.machines_listen == machines


@pytest.mark.parametrize(
    "given",
    [
        {"listen_machines": "here"},
        {"machines_address": "host:port"},
        {"machines_address": "off"},
        {"machine_lifetime_hours": 0},
        {"machine_grace_hours": -1},
        {"tls_ca": "ca.pem"},
        {"listen": "127.0.0.1:65535"},
    ],
)
def test_settings_of_machines_that_cannot_be(given: dict[str, object]) -> None:
    with pytest.raises(SettingsInvalid):
        load_settings(flags=given, environment={})


def test_thresholds_stand_in_tables_of_the_file_or_in_a_variable(tmp_path: Path) -> None:
    (tmp_path / "podium.toml").write_text(
        'planner = "rules"\n'
        "[plan_thresholds.default]\nrun = 0.8\nask_person = 0.4\n"
        "[plan_thresholds.acme]\nrun = 0.9\n"
    )
    loaded = load_settings(flags={"data": tmp_path}, environment={})
    assert loaded.settings.planner == "rules"
    assert loaded.settings.plan_thresholds["acme"].run == 0.9
    shown = loaded.to_json()["plan_thresholds"]
    assert shown["value"]["default"] == {"run": 0.8, "ask_person": 0.4, "rules": None}
    assert shown["source"] == f"file {tmp_path / 'podium.toml'}"
    exported = {"PODIUM_PLAN_THRESHOLDS": '{"default": {"run": 0.7}}', "PODIUM_PLANNER": "policy"}
    loaded = load_settings(flags={"data": tmp_path}, environment=exported)
    assert loaded.settings.plan_thresholds["default"].run == 0.7
    assert loaded.settings.planner == "policy"
    assert load_settings(flags={}, environment={"PODIUM_PLAN_THRESHOLDS": ""}).settings.plan_thresholds == {}
