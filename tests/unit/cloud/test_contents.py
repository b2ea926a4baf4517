"""A data directory knows what it had."""

import json
from pathlib import Path

import pytest

from cloud.contents import FILE, DataMissing, check_contents, note_contents
from podium.errors import DataCorrupt


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "events.sqlite").write_bytes(b"tasks")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "1.jsonl").write_bytes(b"{}")
    note_contents(tmp_path, ["events.sqlite", "audit", "never-made.sqlite"])
    return tmp_path


def test_a_new_directory_and_one_from_before_there_was_a_record_are_taken_as_they_are(tmp_path: Path) -> None:
    assert check_contents(tmp_path / "none") == 0
    (tmp_path / "events.sqlite").write_bytes(b"")
    assert check_contents(tmp_path) == 0


def test_what_is_there_is_counted(data: Path) -> None:
    assert check_contents(data) == 2


@pytest.mark.parametrize("harm", ["gone", "empty", "empty folder"])
def test_what_is_missing_is_named_with_the_way_out(data: Path, harm: str) -> None:
    events = data / "events.sqlite"
    events.unlink()
    if harm == "empty":
        events.touch()
    elif harm == "empty folder":
        events.mkdir()
    with pytest.raises(DataMissing) as refused:
        check_contents(data)
    assert str(events) in refused.value.message
    assert harm.split()[0] in refused.value.message
    assert 'remove "events.sqlite" from contents.json' in refused.value.next_step
    entry = json.loads((data / FILE).read_bytes())
    entry["files"].remove("events.sqlite")
    (data / FILE).write_text(json.dumps(entry))
    assert check_contents(data) == 1


def test_a_ledger_without_its_files_is_missing(data: Path) -> None:
    (data / "audit" / "1.jsonl").unlink()
    with pytest.raises(DataMissing, match="audit is empty"):
        check_contents(data)


def test_the_record_only_grows(data: Path) -> None:
    (data / "inbox.sqlite").write_bytes(b"x")
    note_contents(data, ["inbox.sqlite"])
    assert json.loads((data / FILE).read_bytes())["files"] == ["audit", "events.sqlite", "inbox.sqlite"]
    assert (data / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    ["", "null", "[]", '{"form": 2, "files": []}', '{"form": 1, "files": [1]}', '{"form": 1}', "[" * 99999],
)
def test_a_record_that_cannot_be_read_stops_the_server(data: Path, content: str) -> None:
    (data / FILE).write_text(content)
    for call in (lambda: check_contents(data), lambda: note_contents(data, ["audit"])):
        with pytest.raises(DataCorrupt, match=r"contents\.json cannot be read"):
            call()
