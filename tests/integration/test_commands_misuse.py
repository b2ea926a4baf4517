"""Wrong calls are told what is wrong and what to do, as an object with --json; what waits is waited for."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
import typer
from rich.cells import cell_len

from cloud.lock import DataLock
from podium import cli
from podium.client import AsyncClient, Client
from podium.errors import ServerUnavailable
from podium.link import Address
from tests.integration.command_line import Ran, podium
from tests.integration.server import Running, ServerProcess, serving

RELAY = "relay the words please"
NOWHERE = "127.0.0.1:1"

CALLED_WRONGLY = [
    (["frob"], "No such command 'frob'"),
    (["task", "frob"], "No such command 'frob'"),
    (["task", "get"], "Missing argument 'ID'"),
    (["submit"], "Missing argument 'TEXT'"),
    (["submit", "x", "--frob"], "No such option"),
    (["task", "list", "--limit", "0"], "0 is not in the range"),
    (["validate", "--count", "many"], "not a valid int"),
    (["reward-debug"], "Missing option '--task-id'"),
]
REFUSED = [
    (["task", "get", "nobody"], "NOT_FOUND", "nobody"),
    (["task", "watch", "nobody"], "NOT_FOUND", "nobody"),
    (["task", "answer", "nobody", "x"], "NOT_FOUND", "nobody"),
    (["task", "cancel", "nobody"], "NOT_FOUND", "nobody"),
    (["task", "diagnose", "nobody"], "NOT_FOUND", "nobody"),
    (["task", "timeline", "nobody"], "NOT_FOUND", "nobody"),
    (["reward-debug", "--task-id", "nobody"], "NOT_FOUND", "nobody"),
    (["task", "list", "--status", "frob"], "INVALID_REQUEST", "waiting_input"),
    (["task", "list", "--page-token", "nobody"], "INVALID_REQUEST", "page_token"),
    (["submit", "  "], "INVALID_REQUEST", "text"),
    (["submit", "a\0b", "--request-id", "x"], "INVALID_REQUEST", "request_id"),
    (["submit", "x", "--now", "yesterday"], "INVALID_REQUEST", "yesterday"),
    (["submit", "x", "--file", "/nowhere/a.png"], "INVALID_REQUEST", "/nowhere/a.png"),
    (["plan", " "], "INVALID_REQUEST", "empty"),
    (["debug", "--normalize", ""], "INVALID_REQUEST", "empty"),
    (["validate"], "INVALID_REQUEST", "--all"),
    (["validate", "nobody"], "NOT_FOUND", "nobody"),
    (["review", "resolve", "nobody"], "INVALID_REQUEST", "--reject"),
    (["review", "resolve", "nobody", "--reject"], "NOT_FOUND", "nobody"),
    (["edge", "run"], "INVALID_REQUEST", "--watch"),
    (["edge", "run", "--once", "/nowhere/a.png"], "INVALID_REQUEST", "/nowhere/a.png"),
    (["edge", "run", "--watch", "/nowhere"], "INVALID_REQUEST", "not a folder"),
]
NEED_A_SERVER = [
    ["submit", RELAY],
    ["task", "list"],
    ["task", "get", "x"],
    ["task", "watch", "x"],
    ["agents", "list"],
    ["review", "list"],
    ["reward-debug", "--task-id", "x"],
]


def _commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _commands(child, (*path, name))
    else:
        yield path, command


COMMANDS = list(_commands(typer.main.get_command(cli.build())))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=["-".join(path) for path, _ in COMMANDS])
def test_every_command_explains_itself_and_every_option(path: tuple[str, ...], command: click.Command) -> None:
    shown = podium(*path, "--help", columns=100)
    assert shown.status == 0
    assert (command.help or "").strip().splitlines()[0].split()[0] in shown.out
    names = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in names
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{' '.join(path)} {parameter.name} has no help"


@pytest.mark.parametrize(("arguments", "said"), CALLED_WRONGLY)
def test_wrong_arguments_are_an_error_like_any(arguments: list[str], said: str) -> None:
    wrong = podium(*arguments, "--json")
    assert wrong.status == 2
    assert said in wrong.error["message"]
    assert "--help" in wrong.error["next_step"]
    for_people = podium(*arguments, columns=200)
    assert (for_people.status, for_people.out) == (2, "")
    assert said in for_people.err


@pytest.mark.parametrize(("arguments", "code", "about"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_what_cannot_be_done_is_told_with_what_to_do(
    server: Running, arguments: list[str], code: str, about: str
) -> None:
    local = arguments[0] in ("plan", "debug", "validate", "edge")
    reach = [] if local else ["--data", str(server.data)]
    refused = podium(*arguments, "--json", *reach)
    assert refused.status == 1
    assert refused.error["code"] == code
    assert about in refused.error["message"]
    for_people = podium(*arguments, *reach)
    assert (for_people.status, for_people.out) == (1, "")
    assert code in for_people.err
    assert "What to do:" in for_people.err


@pytest.mark.parametrize("arguments", NEED_A_SERVER, ids=[" ".join(case) for case in NEED_A_SERVER])
def test_a_server_that_is_not_there_is_named(arguments: list[str], tmp_path: Path) -> None:
    refused = podium(*arguments, "--server", NOWHERE, "--data", str(tmp_path), "--json")
    assert refused.error["code"] == "SERVER_UNAVAILABLE"
    assert refused.error["message"] == f"nothing listens on {NOWHERE}"


def test_both_clients_tell_a_watcher_that_no_server_is_there() -> None:
    address = Address.of(NOWHERE)

    async def watch() -> None:
        async with AsyncClient(address) as client:
            async for _ in client.watch("x"):
                pass

    with Client(address) as client, pytest.raises(ServerUnavailable, match="nothing listens"):
        list(client.watch("x"))
    with pytest.raises(ServerUnavailable, match="nothing listens"):
        asyncio.run(watch())


def test_why_tls_fails_is_said_in_words(tmp_path: Path) -> None:
    with serving(tmp_path / "tls", insecure_loopback=False) as server, serving(tmp_path / "other") as plain:
        own_ca = str(tmp_path / "tls" / "tls" / "ca.pem")

        def listed(*reach: str) -> Ran:
            return podium("task", "list", "--json", "--data", str(tmp_path / "none"), "--server", *reach)

        assert listed(server.address, "--ca", own_ca).error["code"] == "UNAUTHENTICATED"
        assert listed(server.address, "--ca", own_ca, "--token-file", str(server.token_file)).status == 0
        assert "without TLS" in listed(server.address).error["message"]
        assert "does not speak TLS" in listed(plain.address, "--ca", own_ca).error["message"]
        with serving(tmp_path / "stranger", insecure_loopback=False):
            other_ca = str(tmp_path / "stranger" / "tls" / "ca.pem")
            assert "not vouched for" in listed(server.address, "--ca", other_ca).error["message"]
        assert "no certificate" in listed(server.address, "--ca", __file__).error["message"]
        assert "HOST:PORT" in listed("nowhere").error["message"]
        assert "--ca" in listed("192.0.2.1:7443").error["next_step"]
        health = podium("health-check", "--server", server.address, "--json", "--data", str(tmp_path / "none"))
        assert (health.status, health.json["ok"]) == (1, False)
        details = {check["name"]: check["detail"] for check in health.json["checks"] if not check["ok"]}
        assert "without TLS" in details["server"]


@pytest.mark.parametrize("data", ["a-file", "/proc/nowhere"])
def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path, data: str) -> None:
    (tmp_path / "a-file").touch()
    refused = podium("task", "list", "--json", "--data", str(tmp_path / data))
    assert str(tmp_path / data) in refused.error["message"]


def test_settings_that_are_wrong_are_named_with_their_source(tmp_path: Path) -> None:
    (tmp_path / "podium.toml").write_text("workers = 0\nfrob = 1\n")
    for arguments in (["config", "show"], ["plan", RELAY], ["submit", RELAY]):
        refused = podium(*arguments, "--json", "--data", str(tmp_path))
        assert refused.error["code"] == "SETTINGS_INVALID"
        assert any("workers" in item and "podium.toml" in item for item in refused.error["evidence"])


def test_what_a_killed_server_left_behind_misleads_nobody(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    server.kill()
    assert (tmp_path / "data" / "server.json").exists()
    assert podium("submit", RELAY, "--json", "--data", str(tmp_path / "data")).json["status"] == "succeeded"


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[threading.Thread, list[Ran]]]:
    done: list[Ran] = []
    thread = threading.Thread(target=lambda: done.append(podium(*arguments)))
    thread.start()
    yield thread, done
    thread.join(60)
    assert not thread.is_alive()


def test_a_directory_that_another_command_uses_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = threading.Event()
    monkeypatch.setattr("cloud.commands.connection.say", lambda text: "waiting" in text and said.set())
    lock = DataLock.acquire(tmp_path)
    try:
        with _running("task", "list", "--json", "--data", str(tmp_path)) as (_, done):
            assert said.wait(30)
            assert not done
            lock.release()
    finally:
        assert done[0].json == {"tasks": [], "next_page_token": ""}


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.commands.connection.PATIENCE_S", 0.2)
    lock = DataLock.acquire(tmp_path)
    try:
        refused = podium("task", "list", "--json", "--data", str(tmp_path))
    finally:
        lock.release()
    assert refused.error["code"] == "DATA_DIRECTORY_IN_USE"


def test_what_people_see_fits_80_columns(server: Running) -> None:
    reach = ["--data", str(server.data)]
    long = "relay the words please " + "对比华东和华南区域上季度销售额" * 5
    task_id = podium("submit", RELAY, "--json", *reach).json["task_id"]
    podium("submit", long, "--no-wait", *reach)
    shown = {
        "list": podium("task", "list", *reach).out,
        "get": podium("task", "get", task_id, *reach).out,
        "timeline": podium("task", "timeline", task_id, *reach).out,
        "plan": podium("plan", RELAY).out,
        "debug": podium("debug", "--normalize", RELAY).out,
        "reward": podium("reward-debug", "--task-id", task_id, *reach).out,
        "agents": podium("agents", "list", *reach).out,
        "settings": podium("config", "show", "--data", "var").out,
    }
    for name, text in shown.items():
        too_long = [line for line in text.splitlines() if cell_len(line) > 80]
        assert not too_long, (name, too_long)
    assert task_id in shown["list"], "an id is to be copied, so it is whole"
    assert "relay_count ∥ relay_ponder → relay_mark → relay_tell" in shown["plan"].replace("\n", " ")
    assert "There are 4 words. [Source: S1]" in shown["get"]
    assert shown["get"].count("S1:") == 1, "each cited source is shown once"


def test_what_is_suggested_leads_to_the_same_server(server: Running, tmp_path: Path) -> None:
    data = str(server.data)
    asked = podium("submit", "frobnicate the thing", "--data", data)
    assert asked.status == 1
    hint = next(line for line in asked.out.splitlines() if line.startswith("Answer with: podium "))
    task_id = hint.split()[5]
    assert hint.endswith(f'podium task answer {task_id} "..." --data {data}')
    named = podium("task", "get", task_id, "--server", server.address, "--data", str(tmp_path))
    assert f"--server {server.address}" in named.out
    assert f"--data {tmp_path / 'x'}" in podium("task", "list", "--data", str(tmp_path / "x")).out
