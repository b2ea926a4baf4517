"""A server whose agent is an ONNX model: versions change, bad ones are refused, and it is killed meanwhile."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podium.client import Client
from tests.integration.command_line import Ran, podium
from tests.integration.server import PACKS, ServerProcess
from tests.unit.tools.onnx.graphs import adding, crashing

RELAY = PACKS / "relay"
REQUEST = "relay the words please"  # four words
RULE = """rules:
  - name: words
    confidence: 0.9
    when: 'has(request.entities.relay)'
    steps:
      - {tool: word_model, arguments: {text: {request: text}}}
"""


def pack(folder: Path) -> Path:
    """A pack of one agent, whose engine is onnx."""
    place = folder / "packs" / "words"
    (place / "manifests").mkdir(parents=True)
    shutil.copy(RELAY / "vocabulary.yaml", place)
    (place / "rules.yaml").write_text(RULE)
    about = {"name": "words", "version": "1.0.0", "description": "A pack for a test of models."}
    files = {"agents": ["manifests/*.yaml"], "vocabulary": "vocabulary.yaml", "rules": "rules.yaml"}
    (place / "pack.yaml").write_text(yaml.safe_dump(about | files))
    manifest = yaml.safe_load((RELAY / "manifests" / "relay_tell.yaml").read_text())
    manifest |= {
        "name": "word_model",
        "description": "Tells how many words there are, for a test of models.",
        "engine": "onnx",
        "sla": {"timeout": "PT60S", "retries": 1},
        "settings": {
            "model": "words",
            "before": "tests.e2e.model_agents:counted",
            "after": "tests.e2e.model_agents:told",
        },
    }
    text = {"type": "string", "minLength": 1, "maxLength": 1000}
    manifest["input_schema"] = {
        "type": "object",
        "properties": {"text": text},
        "required": ["text"],
        "additionalProperties": False,
    }
    (place / "manifests" / "word_model.yaml").write_text(yaml.safe_dump(manifest))
    return folder / "packs"


class Release:
    """Who signs and promotes, with the command line and nothing else."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder, self._data, self._key = folder, data, folder / "key.pem"
        public = podium("artefacts", "keygen", str(self._key), "--json").json["public_key"]
        self.run("trust", public, "--label", "the release desk")

    def run(self, *arguments: str) -> Ran:
        return podium("artefacts", *arguments, "--data", str(self._data), "--by", "ann", "--json")

    def add(self, version: str, content: bytes) -> None:
        file = self._folder / f"{version}.onnx"
        file.write_bytes(content)
        added = self.run("add", f"model/words@{version}", str(file), "--key", str(self._key))
        assert added.status == 0, added.err


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "data", environment={"PODIUM_PACKS": str(pack(tmp_path))})
    server.data.mkdir()
    yield server
    server.kill()


def answer(server: ServerProcess) -> str:
    with Client(server.address) as client:
        task = client.wait(client.submit(REQUEST).task_id)
    return str(task.result.answer_markdown)


def until_answer(server: ServerProcess, wanted: str, before: str) -> None:
    """Ask until the new version answers; before it does, the old one must."""
    deadline = time.monotonic() + 60
    while wanted not in (said := answer(server)):
        assert before in said
        assert time.monotonic() < deadline


@pytest.mark.slow
def test_a_model_is_replaced_refused_rolled_back_and_survives_kill_9(
    server: ServerProcess, tmp_path: Path
) -> None:
    release = Release(tmp_path, server.data)
    release.add("1", adding(1))
    release.run("promote", "model/words@1")
    server.start()
    assert "There are 5 words." in answer(server)

    release.add("2", crashing())
    assert "SIGFPE" in release.run("promote", "model/words@2").error["message"]
    assert "There are 5 words." in answer(server)

    release.add("3", adding(30))
    release.run("promote", "model/words@3", "--why", "measured")
    until_answer(server, "There are 34 words.", before="There are 5 words.")

    server.kill()
    server.start()
    assert "There are 34 words." in answer(server)
    release.run("rollback", "model/words", "--why", "worse")
    until_answer(server, "There are 5 words.", before="There are 34 words.")
    release.run("promote", "model/words@3")
    assert server.stop() == 0

    recorded = podium("ledger", "show", "--data", str(server.data), "--json").json["entries"]
    moves = [item["body"]["action"] for item in recorded if item["key"].startswith("artefact/")]
    assert moves == ["artefact.promote", "artefact.promote", "artefact.rollback", "artefact.promote"]

    # One flipped byte in the current version, at rest: the one before it serves.
    shown = podium("artefacts", "show", "model/words", "--data", str(server.data), "--json").json
    assert shown["version"] == "3"
    sha256 = shown["sha256"]
    stored = server.data / "artefacts" / "files" / sha256[:2] / sha256
    damaged = bytearray(stored.read_bytes())
    damaged[-20] ^= 1
    stored.chmod(0o644)
    stored.write_bytes(damaged)
    server.start()
    assert "There are 5 words." in answer(server)
    logged = [json.loads(line)["message"] for line in server.log().splitlines() if "refused" in line]
    assert any("model version 3 is refused: ARTEFACT_CORRUPT" in line for line in logged)
