"""`podium artefacts ...` as people and scripts use it."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command_line import Ran, podium
from tests.unit.tools.onnx.graphs import adding, crashing


@pytest.fixture
def place(tmp_path: Path) -> "Place":
    return Place(tmp_path)


class Place:
    """A data directory, a key that is trusted there, and files to add."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "var"
        self.key = folder / "key.pem"
        self.made = podium("artefacts", "keygen", str(self.key), "--json").json
        self.run("trust", self.made["public_key"], "--label", "the release desk")

    def run(self, *arguments: str) -> Ran:
        return podium("artefacts", *arguments, "--data", str(self.data), "--by", "ann", "--json")

    def look(self, *arguments: str) -> Ran:
        return podium("artefacts", *arguments, "--data", str(self.data), "--json")

    def plain(self, *arguments: str) -> str:
        ran = podium("artefacts", *arguments, "--data", str(self.data), columns=200)
        assert ran.status == 0, ran.err
        return ran.out

    def file(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def add(self, reference: str, content: bytes, *more: str, name: str = "model.onnx") -> dict[str, Any]:
        return self.run("add", reference, self.file(name, content), "--key", str(self.key), *more).json


def test_from_a_key_to_a_current_version_and_back(place: Place) -> None:
    assert stat.S_IMODE(place.key.stat().st_mode) == 0o600
    first = place.add("model/defects@1.0.0", adding(1), "--metrics", '{"recall": 0.9}', "--why", "first")
    assert (first["media_type"], first["signed_by"]) == ("application/onnx", [place.made["key_id"]])
    place.add("model/defects@1.1.0", adding(2), "--parent", "model/defects@1.0.0", "--metrics", '{"recall": 0.95}')
    promoted = place.run("promote", "model/defects@1.0.0", "--why", "measured").json
    assert (promoted["version"], promoted["pinned"]) == ("1.0.0", False)
    place.run("promote", "model/defects@1.1.0", "--expected", "1.0.0")
    assert place.run("promote", "model/defects@1.0.0", "--expected", "1.0.0").error["code"] == (
        "ARTEFACT_CURRENT_CHANGED"
    )
    assert place.run("pin", "model/defects").json["pinned"]
    assert place.run("rollback", "model/defects").error["code"] == "ARTEFACT_PINNED"
    assert not place.run("unpin", "model/defects").json["pinned"]
    assert place.run("rollback", "model/defects", "--why", "worse").json["version"] == "1.0.0"
    changes = place.look("history", "model/defects").json["changes"]
    assert [item["action"] for item in changes] == ["promote", "promote", "pin", "unpin", "rollback"]
    assert {item["by"] for item in changes} == {"ann"}
    shown = place.look("show", "model/defects").json
    assert (shown["version"], shown["current"], shown["fault"]) == ("1.0.0", True, None)
    assert shown["onnx"]["inputs"] == {"x": {"dtype": "float32", "shape": [None, 2]}}
    listed = place.look("list", "--kind", "model").json
    assert [item["version"] for item in listed["artefacts"]] == ["1.0.0", "1.1.0"]
    assert listed["current"][0]["version"] == "1.0.0"
    assert place.look("verify").json == {"ok": True, "checked": 2, "faults": [], "unused_files": []}


def test_two_versions_side_by_side(place: Place) -> None:
    place.add("model/defects@1", adding(1), "--metrics", '{"recall": 0.9}')
    place.add("model/defects@2", adding(1, width=3), "--metrics", '{"recall": 0.8, "size": 2}')
    fields = place.look("diff", "model/defects@1", "model/defects@2").json["fields"]
    by_name = {item["field"]: item for item in fields}
    assert by_name["onnx.input.x"] == {
        "field": "onnx.input.x",
        "left": "float32[?, 2]",
        "right": "float32[?, 3]",
        "differs": True,
    }
    assert (by_name["metrics.recall"]["left"], by_name["metrics.recall"]["right"]) == (0.9, 0.8)
    assert by_name["metrics.size"]["left"] is None
    assert not by_name["onnx.ir_version"]["differs"]
    assert place.run("promote", "model/defects@1").status == 0
    assert "input 'x'" in place.run("promote", "model/defects@2").error["message"]
    assert place.run("promote", "model/defects@2", "--new-interface").json["version"] == "2"


def test_a_signature_made_elsewhere(place: Place) -> None:
    file = place.file("site.zip", b"a bundle")
    signed = podium("artefacts", "sign", "bundle/site@1", file, "--key", str(place.key), "--json").json
    assert signed["signature_file"] == file + ".signature"
    assert place.run("add", "bundle/site@1", file).error["code"] == "ARTEFACT_UNSIGNED"
    wrong = place.run("add", "bundle/site@2", file, "--signature", file + ".signature")
    assert wrong.error["code"] == "ARTEFACT_UNTRUSTED"
    added = place.run("add", "bundle/site@1", file, "--signature", file + ".signature").json
    assert added["media_type"] == "application/zip"
    second = podium("artefacts", "keygen", str(place.folder / "second.pem"), "--json").json
    place.run("trust", second["public_key"], "--label", "ann")
    place.run("sign", "bundle/site@1", "--key", str(place.folder / "second.pem"))
    assert set(place.look("show", "bundle/site@1").json["signed_by"]) == {place.made["key_id"], second["key_id"]}


def test_a_distrusted_key_says_what_it_concerns(place: Place) -> None:
    place.add("planner/rules@1", b"rules: []", name="rules.yaml")
    place.run("promote", "planner/rules@1")
    told = place.run("distrust", place.made["key_id"], "--why", "lost").json
    assert told["current_not_loaded_any_more"] == ["planner/rules@1"]
    assert not place.look("keys").json["keys"][0]["trusted"]
    verified = place.look("verify")
    assert (verified.status, verified.json["faults"][0]["code"]) == (1, "ARTEFACT_UNTRUSTED")
    assert place.look("show", "planner/rules").json["fault"]["code"] == "ARTEFACT_UNTRUSTED"
    assert place.run("promote", "planner/rules@1").json["version"] == "1"  # it is current already


def test_a_key_ends_on_a_day(place: Place) -> None:
    place.run("trust", place.made["public_key"], "--label", "old", "--expires", "2020-01-31")
    (key,) = place.look("keys").json["keys"]
    assert key["expires_at"] == datetime(2020, 1, 31, tzinfo=UTC).isoformat()
    file = place.file("x.onnx", adding())
    refused = place.run("add", "model/x@1", file, "--key", str(place.key)).error
    assert "expired" in refused["message"]


def test_a_packaged_model_needs_no_signature(place: Place) -> None:
    added = place.run("add", "model/turned@3.10.0", "--package", "ppocr-cls").json
    assert (added["package_model"], added["signed_by"], added["media_type"]) == (
        "ppocr-cls",
        [],
        "application/onnx",
    )
    assert place.run("promote", "model/turned@3.10.0").json["version"] == "3.10.0"
    assert place.run("add", "model/turned@1", "--package", "other").error["code"] == "MODEL_NOT_PINNED"


def test_a_crash_in_the_loader_is_an_answer(place: Place) -> None:
    place.add("model/bad@1", crashing())
    refused = place.run("promote", "model/bad@1").error
    assert refused["code"] == "ONNX_TRIAL_FAILED"
    assert "SIGFPE" in refused["message"]


def test_wrong_calls_are_typed(place: Place) -> None:
    file = place.file("x.onnx", adding())
    key = ("--key", str(place.key))
    assert place.run("add", "model/x@1").error["code"] == "INVALID_REQUEST"
    assert place.run("add", "model/x@1", file, "--package", "ppocr-cls").error["code"] == "INVALID_REQUEST"
    assert place.run("add", "x", file, *key).error["code"] == "ARTEFACT_INVALID"
    assert place.run("add", "model/x@1", file, *key, "--metrics", "[1]").error["code"] == "ARTEFACT_INVALID"
    assert place.run("add", "model/x@1", file, *key, "--metrics", "@none").error["code"] == "ARTEFACT_INVALID"
    assert place.run("add", "model/x@1", file, "--signature", file).error["code"] == "ARTEFACT_INVALID"
    assert place.run("add", "model/x@1", file, "--key", file).error["code"] == "ARTEFACT_INVALID"
    assert place.look("show", "model/x").error["code"] == "ARTEFACT_NOTHING_CURRENT"
    assert place.look("show", "model/x@1").error["code"] == "ARTEFACT_NOT_FOUND"
    assert place.look("list", "--kind", "robot").error["code"] == "INVALID_REQUEST"
    assert place.run("trust", "AAAA", "--label", "x").error["code"] == "ARTEFACT_INVALID"
    elsewhere = podium("artefacts", "list", "--data", str(place.folder / "typo"), "--json")
    assert elsewhere.error["code"] == "ARTEFACT_NOT_FOUND"
    assert not (place.folder / "typo").exists()
    assert place.run("distrust", "0" * 32).error["code"] == "ARTEFACT_NOT_FOUND"


def test_a_key_that_others_can_read_is_not_used_and_none_is_overwritten(place: Place) -> None:
    before = place.key.read_bytes()
    assert podium("artefacts", "keygen", str(place.key), "--json").error["code"] == "ARTEFACT_INVALID"
    assert place.key.read_bytes() == before
    place.key.chmod(0o644)
    refused = place.run("add", "model/x@1", place.file("x.onnx", adding()), "--key", str(place.key)).error
    assert "read by others" in refused["message"]
    assert "chmod 600" in refused["next_step"]


def test_a_private_key_is_printed_nowhere(place: Place) -> None:
    body = "".join(place.key.read_text().splitlines()[1:-1])
    file = place.file("x.onnx", adding())
    ran = (
        place.run("add", "model/x@1", file, "--key", str(place.key)),
        podium("artefacts", "sign", "model/x@2", file, "--key", str(place.key)),
        podium("artefacts", "keygen", str(place.folder / "other.pem")),
    )
    assert not [item for item in ran if body in item.out + item.err or "PRIVATE" in item.out + item.err]
    assert body not in json.dumps([path.read_bytes().decode("latin-1") for path in place.data.rglob("*.json")])


def test_people_read_tables(place: Place) -> None:
    place.add("model/defects@1", adding(1), "--why", "[bold]\x1b[2J")
    place.run("promote", "model/defects@1", "--why", "\x1b[2J")
    place.add("model/defects@2", adding(2), "--metrics", '{"[/red]": "[/bold]"}')
    assert "current" in place.plain("list")
    assert "promote model/defects" in place.plain("history")
    beside = place.plain("diff", "model/defects@1", "model/defects@2")
    assert all(said in beside for said in ("sha256", "metrics.[/red]", "[/bold]"))
    assert "2 versions checked, 0 faults" in place.plain("verify")
    assert "the release desk" in place.plain("keys")
    shown = place.plain("show", "model/defects@1")
    assert "float32" in shown
    assert "\x1b" not in shown + beside + place.plain("history")
