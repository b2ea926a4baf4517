"""`podium edge run --once`: a page in, one object out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command_line import podium
from tests.integration.server import ROOT, Running, serving

SAMPLES = ROOT / "agents" / "packs" / "invoice" / "samples"
FIELDS = ["number", "date", "due_date", "supplier", "currency", "total", "tax", "lines"]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = tmp_path_factory.mktemp("cloud") / "data"
    with serving(data, packs=ROOT / "agents" / "packs", insecure_loopback=False) as running:
        yield running


@pytest.fixture
def reach(cloud: Running) -> list[str]:
    ca, token = str(cloud.data / "tls" / "ca.pem"), str(cloud.token_file)
    return ["--server", cloud.address, "--ca", ca, "--token-file", token]


def test_a_clean_invoice_is_read_checked_and_printed(reach: list[str]) -> None:
    ran = podium("edge", "run", "--once", str(SAMPLES / "clean.png"), *reach, "--json")
    assert ran.status == 0, ran.err
    answer = ran.json
    assert set(answer) == {"task_id", "status", "fields", "findings", "needs_review"}
    assert (answer["status"], answer["findings"], answer["needs_review"]) == ("succeeded", [], [])
    assert set(answer["fields"]) == set(FIELDS)
    for field in answer["fields"].values():
        assert set(field) == {"value", "confidence", "box", "page"}
        if field["value"] is not None:
            assert len(field["box"]) == 4
    assert answer["fields"]["date"]["value"] == "2026-03-17"
    assert answer["fields"]["total"]["value"] == "10700.00"
    for said in ("reading clean.png", "read 1 page,", "waiting for task"):
        assert said in ran.err

    # The same task as a caller of the cloud sees it.
    task = podium("task", "get", answer["task_id"], *reach, "--json").json
    assert task["fields"]["fields"] == answer["fields"]
    shown = podium("task", "get", answer["task_id"], *reach).out
    assert "R2: Incoterms 2020" in shown
    assert "@v1" not in shown, "what only other steps used is for --json"
    renamed = [source["id"] for source in task["sources"] if "@" in source["id"]]
    assert renamed == ["D1@v1s0"], "the places of the fields; what the checks used is named already"


def test_people_see_the_fields_in_the_order_of_an_invoice(reach: list[str]) -> None:
    ran = podium("edge", "run", "--once", str(SAMPLES / "clean.png"), *reach)
    assert ran.status == 0, ran.err
    first, *rows = ran.out.splitlines()
    assert first.startswith("succeeded (task ")
    assert [row.split()[0] for row in rows] == FIELDS
    assert "tax        not found" in ran.out


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.png", b"", "IMAGE_"),
        ("words.png", b"not a picture at all", "IMAGE_UNKNOWN_FORMAT"),
        ("cut.png", (SAMPLES / "clean.png").read_bytes()[:2000], "IMAGE_"),
    ],
)
def test_a_file_that_is_no_page_is_refused(
    reach: list[str], tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    (tmp_path / name).write_bytes(content)
    refused = podium("edge", "run", "--once", str(tmp_path / name), *reach, "--json")
    assert refused.error["code"].startswith(code)


def test_an_absent_cloud_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.commands.ONCE_ATTEMPTS", 2)
    refused = podium("edge", "run", "--once", str(SAMPLES / "clean.png"), "--server", "127.0.0.1:1", "--json")
    assert refused.error["code"] == "SERVER_UNAVAILABLE"
    assert "nothing listens on 127.0.0.1:1" in refused.error["message"]
    assert refused.err.count("not connected") == 1
