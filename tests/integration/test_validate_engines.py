"""`podium validate` runs agents by their own engines, and tells one that is broken from one that is away."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from podium.client import Client
from podium.link import Address
from tests.integration.command_line import podium
from tests.integration.server import PACKS, ROOT, serving

PACK = """name: elsewhere
version: 1.0.0
description: Agents that run in processes of their own or behind an address.
agents: [manifests/*.yaml]
vocabulary: vocabulary.yaml
rules: rules.yaml
"""


@pytest.fixture
def examples() -> Iterator[Path]:
    """The examples of docs/agents.md, where the user that an agent runs as can read them."""
    with tempfile.TemporaryDirectory(prefix="podium-examples-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for one in ("reading_time", "elevation", "blurb"):
            shutil.copytree(ROOT / "docs" / "examples" / one, folder / one)
        for manifest in folder.glob("*/*.yaml"):
            manifest.write_text(manifest.read_text().replace("/srv/podium/agents", name))
        yield folder


@pytest.fixture
def packs(examples: Path, tmp_path: Path) -> Path:
    manifests = tmp_path / "packs" / "elsewhere" / "manifests"
    manifests.mkdir(parents=True)
    (manifests.parent / "pack.yaml").write_text(PACK)
    for name in ("vocabulary.yaml", "rules.yaml"):
        shutil.copy(PACKS / "relay" / name, manifests.parent)
    (manifests.parent / "rules.yaml").write_text("rules: []\n")
    for source in ("reading_time/reading_time", "elevation/elevation_stdio", "blurb/blurb"):
        text = (examples / f"{source}.yaml").read_text()
        # Nobody listens there.
        (manifests / f"{Path(source).name}.yaml").write_text(text.replace("127.0.0.1:7503", "127.0.0.1:9"))
    return tmp_path / "packs"


def _wardens() -> list[int]:
    found = psutil.Process().children(recursive=True)
    return [child.pid for child in found if "agents.sandbox.warden" in " ".join(child.cmdline())]


def test_agents_run_by_their_engines_and_one_that_is_away_is_not_called_broken(
    packs: Path, tmp_path: Path
) -> None:
    # As where the environment is activated: `python3` is the one that has what Podium needs.
    environment = {
        "PODIUM_PACKS": str(packs),
        "PODIUM_AGENT_KEY": "none",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ran = podium(
        "validate", "--all", "--count", "3", "--data", str(tmp_path / "data"), "--json", environment=environment
    )
    found = {agent["agent"]: agent for agent in ran.json["agents"]}
    assert found["reading_time"]["passed"], found["reading_time"]
    assert found["reading_time"]["answered"] >= 3
    assert found["elevation"]["passed"], found["elevation"]
    assert (found["blurb"]["passed"], found["blurb"]["violations"]) == (False, [])
    assert "cannot be reached" in found["blurb"]["unreachable"]
    assert ran.status == 1
    assert _wardens() == []


def test_registered_agents_of_a_data_directory_are_run_too_and_nothing_of_a_trial_stays(
    examples: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    manifest = (examples / "reading_time" / "reading_time.yaml").read_text()
    with (
        serving(data, agent_folders=str(examples)) as server,
        Client(Address.of(server.address)) as client,
    ):
        assert client.register_agent(manifest).answered
        assert _wardens() == []
    allowed = {"PODIUM_AGENT_FOLDERS": str(examples)}
    ran = podium("validate", "reading_time", "--data", str(data), "--json", "--count", "3", environment=allowed)
    assert (ran.status, ran.json["agents"][0]["skipped"]) == (0, ""), ran.out
    left_out = podium("validate", "reading_time", "--data", str(data), "--json")
    assert left_out.error["code"] == "NOT_FOUND"
    assert "agent_folders" in left_out.err
