"""What a start finds and puts right."""

from pathlib import Path

import pytest

from podium.client import Client
from podium.errors import ServerUnavailable
from podium.link import Address
from podium.status import task_status_name
from tests.integration.server import serving


def test_a_report_that_is_missing_is_written_at_the_next_start(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
        task_id = client.wait(client.submit("relay the words please").task_id).task_id
    report = tmp_path / "data" / "reports" / f"{task_id}.md"
    assert report.exists()  # the stop waited for it
    report.unlink()
    with serving(tmp_path / "data"):
        assert report.read_text() == "There are 4 words. [Source: S1]"


def test_a_question_stays_open_over_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
        task_id = client.wait(client.submit("frobnicate the thing").task_id).task_id
    with serving(tmp_path / "data") as server, Client(Address.of(server.address)) as client:
        assert task_status_name(client.get(task_id).status) == "waiting_input"
        client.answer(task_id, "relay the words please")
        assert task_status_name(client.wait(task_id).status) in ("succeeded", "waiting_input")


def test_ipv6_and_names_are_listened_on_too(tmp_path: Path) -> None:
    for number, host in enumerate(("[::1]", "localhost")):
        with serving(tmp_path / str(number), listen=f"{host}:0") as server:
            assert server.address.startswith(f"{host}:")
            with Client(Address.of(server.address)) as client:
                assert client.list().tasks == []
    with Client(Address.of(server.address)) as client, pytest.raises(ServerUnavailable):
        client.list()
