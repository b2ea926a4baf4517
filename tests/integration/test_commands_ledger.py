"""`podium ledger`: on the audit ledger and on any folder, while somebody writes, and on damage."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.integration.command_line import podium
from tools.ledger.ledger import Ledger


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with five audit entries."""
    with _open(tmp_path / "audit") as ledger:
        for number in range(5):
            ledger.append({"caller": "anna", "number": number}, key=f"t/{number}")
    return tmp_path


def _open(folder: Path) -> Ledger:
    return Ledger(folder, clock=lambda: datetime(2026, 11, 29, 12, tzinfo=UTC))


@pytest.fixture
def in_use(data: Path) -> Iterator[Ledger]:
    """The same, while something writes to it."""
    with _open(data / "audit") as ledger:
        yield ledger


def test_show_gives_the_newest_or_those_after_a_number_or_of_a_key(in_use: Ledger, data: Path) -> None:
    every = podium("ledger", "show", "--data", str(data), "--json").json
    assert every["ledger"] == str(data / "audit")
    assert every["head"] == {"sequence": 5, "hash": in_use.head.hash}
    assert every["entries"][4] == {
        "sequence": 5,
        "time": "2026-11-29T12:00:00+00:00",
        "kind": "entry",
        "key": "t/4",
        "hash": in_use.head.hash,
        "redacted": False,
        "body": {"caller": "anna", "number": 4},
    }

    def shown(*options: str) -> list[int]:
        found = podium("ledger", "show", "--data", str(data), *options, "--json").json
        return [entry["sequence"] for entry in found["entries"]]

    assert shown() == [1, 2, 3, 4, 5]
    assert shown("--limit", "2") == [4, 5]
    assert shown("--after", "1", "--limit", "2") == [2, 3]
    assert shown("--key", "t/2") == [3]
    assert shown("--after", "9") == []
    plain = podium("ledger", "show", "--ledger", str(data / "audit"))
    assert plain.status == 0
    assert '{"caller": "anna", "number": 4}' in plain.out
    assert "5 shown; the ledger has 5." in plain.out


def test_what_was_recorded_cannot_move_the_cursor(tmp_path: Path) -> None:
    with _open(tmp_path) as ledger:
        ledger.append({"text": "\u202e\x9b2J [red]"}, key="[bold]k\u202e")
    plain = podium("ledger", "show", "--ledger", str(tmp_path))
    assert not {"\u202e", "\x9b"} & set(plain.out)
    assert "[red]" in plain.out
    assert "[bold]k" in plain.out


def test_verify_is_content_also_while_somebody_writes(in_use: Ledger, data: Path) -> None:
    found = podium("ledger", "verify", "--data", str(data), "--json")
    assert found.status == 0
    assert found.json == {
        "ledger": str(data / "audit"),
        "ok": True,
        "head": {"sequence": 5, "hash": in_use.head.hash},
        "redacted": 0,
        "unfinished_redactions": [],
        "torn_bytes": 0,
        "damage": None,
    }
    plain = podium("ledger", "verify", "--data", str(data))
    assert "5 entries are as they were written, 0 of them redacted." in plain.out
    assert f"head {in_use.head}" in plain.out


def test_verify_says_exactly_where_the_damage_is(data: Path) -> None:
    (path,) = (data / "audit").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(path.read_bytes().replace(b'"number":2', b'"number":3'))
    found = podium("ledger", "verify", "--data", str(data), "--json")
    assert found.status == 1
    assert found.json["ok"] is False
    assert found.json["head"]["sequence"] == 2
    assert found.json["damage"] == {
        "file": path.name,
        "offset": len(lines[0] + lines[1]),
        "length": len(lines[2]),
        "sequence": 3,
        "reason": "the body does not match its commitment",
    }
    plain = podium("ledger", "verify", "--data", str(data))
    assert plain.status == 1
    assert f"DAMAGED at {path}, byte {len(lines[0] + lines[1])} ({len(lines[2])} bytes), entry 3" in plain.out
    assert "Entries 1 to 2 are sound." in plain.out
    for command in (["show"], ["export", "--output", str(data / "out")], ["head"]):
        refused = podium("ledger", *command, "--data", str(data), "--json")
        assert refused.error["code"] == "LEDGER_CORRUPT"
    assert not (data / "out").exists()
    redact = ["redact", "--sequence", "1", "--reason", "r", "--by", "b"]
    assert podium("ledger", *redact, "--data", str(data), "--json").error["code"] == "LEDGER_CORRUPT"


def test_a_head_that_was_noted_finds_a_cut_off_end(data: Path) -> None:
    head = podium("ledger", "head", "--data", str(data)).out.strip()
    noted = podium("ledger", "head", "--data", str(data), "--json").json["head"]
    assert head == f"{noted['sequence']}:{noted['hash']}"
    assert podium("ledger", "verify", "--data", str(data), "--head", head).status == 0
    (path,) = (data / "audit").glob("*.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert podium("ledger", "verify", "--data", str(data)).status == 0
    found = podium("ledger", "verify", "--data", str(data), "--head", head, "--json")
    assert found.status == 1
    assert found.json["damage"]["reason"] == "entries 5 to 5 are missing at the end"
    wrong = podium("ledger", "verify", "--data", str(data), "--head", "5", "--json")
    assert wrong.error["code"] == "INVALID_REQUEST"


def test_a_body_is_taken_out_and_the_export_verifies(data: Path, tmp_path: Path) -> None:
    redact = ["ledger", "redact", "--data", str(data), "--sequence", "2", "--reason", "asked to", "--by", "anna"]
    found = podium(*redact, "--json").json
    assert (found["sequence"], found["recorded_as"], found["duplicate"]) == (2, 6, False)
    assert "was redacted before; entry 6 says why." in podium(*redact).out
    shown = podium("ledger", "show", "--data", str(data), "--json").json["entries"]
    assert (shown[1]["redacted"], shown[1]["body"], shown[1]["key"]) == (True, None, "t/1")
    assert shown[5]["kind"] == "redaction"
    assert "redacted" in podium("ledger", "show", "--data", str(data)).out

    copy = tmp_path / "copy"
    copy.mkdir()
    output = copy / "000000000000000001.jsonl"
    told = podium("ledger", "export", "--data", str(data), "--output", str(output), "--json").json
    assert told == {
        "ledger": str(data / "audit"),
        "output": str(output),
        "entries": 6,
        "redacted": 1,
        "head": found["head"],
    }
    assert [json.loads(line)["sequence"] for line in output.read_text().splitlines()] == [1, 2, 3, 4, 5, 6]
    head = f"{found['head']['sequence']}:{found['head']['hash']}"
    assert podium("ledger", "verify", "--ledger", str(copy), "--head", head).status == 0
    assert f"6 entries in {output}" in podium("ledger", "export", "--data", str(data), "--output", str(output)).out


def test_nothing_is_redacted_while_somebody_writes(in_use: Ledger, data: Path) -> None:
    redact = ["ledger", "redact", "--data", str(data), "--sequence", "2", "--reason", "r", "--by", "b", "--json"]
    refused = podium(*redact)
    assert refused.error["code"] == "LEDGER_IN_USE"
    assert "podium serve" in refused.error["next_step"]
    assert in_use.head.sequence == 5


def test_where_there_is_no_ledger_commands_say_so_and_make_none(tmp_path: Path) -> None:
    for command in (
        ["show"],
        ["verify"],
        ["head"],
        ["export", "--output", str(tmp_path / "x")],
        ["redact", "--sequence", "1", "--reason", "r", "--by", "b"],
    ):
        refused = podium("ledger", *command, "--ledger", str(tmp_path / "none"), "--json")
        assert refused.error["code"] == "NOT_FOUND"
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_told(data: Path) -> None:
    refused = podium("ledger", "export", "--data", str(data), "--output", str(data / "no" / "x"), "--json")
    assert "cannot be written" in refused.error["message"]
