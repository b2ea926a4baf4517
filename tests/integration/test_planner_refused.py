"""A promoted planner that cannot be used: the old one answers, and operators are told which is refused and why."""

import hashlib
import time
from pathlib import Path

import pytest

from conductor.policy.model import COMMITTED
from podium.client import Client
from podium.link import Address
from tests.fakes.drafting import ScriptedDrafter
from tests.integration.command_line import podium
from tests.integration.server import serving
from tests.unit.conductor.policy.test_serving import planner_file
from tests.unit.tools.onnx.graphs import adding
from tools.models.pinned import OWN_PACKAGE, PinnedModel, PinnedModels

PATIENCE_S = 60.0


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner of a few bytes in the place of the one that ships; drafts are scripted."""
    data = planner_file("that ships")
    file = tmp_path / "planner.onnx"
    file.write_bytes(data)
    listed = PinnedModel(
        name=COMMITTED,
        package=OWN_PACKAGE,
        version="1",
        file=str(file),
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
        licence="Apache-2.0",
    )
    monkeypatch.setattr("conductor.policy.serving.committed_models", lambda: PinnedModels({COMMITTED: listed}))
    monkeypatch.setattr("cloud.planning.Drafter", lambda *_: ScriptedDrafter(lambda text, cards: [[]]))


def _promote(folder: Path, data: Path, version: str, content: bytes) -> None:
    reach, key, file = (
        ["--data", str(data), "--by", "ann", "--json"],
        folder / "key.pem",
        folder / f"{version}.onnx",
    )
    if not key.exists():
        made = podium("artefacts", "keygen", str(key), "--json").json
        assert podium("artefacts", "trust", made["public_key"], "--label", "ann", *reach).status == 0
    file.write_bytes(content)
    reference = f"planner/podium-planner@{version}"
    added = podium("artefacts", "add", reference, str(file), "--key", str(key), *reach)
    assert added.status == 0, added.err
    assert podium("artefacts", "promote", reference, *reach).status == 0


def _check(*reach: str) -> tuple[bool, str]:
    checks = podium("health-check", "--json", *reach).json["checks"]
    [found] = [check for check in checks if check["name"] == "planner"]
    return found["ok"], found["detail"]


@pytest.mark.usefixtures("shipped")
def test_a_refused_promotion_is_told_until_another_is_promoted_and_the_old_one_answers(tmp_path: Path) -> None:
    data = tmp_path / "var"
    with serving(data, planner="hybrid") as running, Client(Address.of(running.address)) as client:

        def wait_for(version: str, refused: list[str]) -> None:
            ends_s = time.monotonic() + PATIENCE_S
            while True:
                state = client.planner()
                if (state.model_version, [one.version for one in state.refused]) == (version, refused):
                    return
                assert time.monotonic() < ends_s, state
                time.sleep(0.05)

        wait_for("shipped", [])
        assert _check("--data", str(data)) == (
            True,
            "everything that the setting planner names is in use, the trained planner in version shipped",
        )
        _promote(tmp_path, data, "2", adding())
        wait_for("shipped", ["2"])
        for reach in (["--data", str(data)], ["--server", running.address]):
            ok, detail = _check(*reach)
            assert not ok
            assert detail.startswith("the promoted version 2 is refused, PLANNER_MODEL_INVALID: ")
            assert "; version shipped plans instead" in detail
        asked = podium("submit", "sing a song", "--json", "--data", str(data))
        assert "not available" not in asked.json["route"][1]["reason"], "the old one answers"

        _promote(tmp_path, data, "3", planner_file("three"))
        wait_for("3", [])
        assert _check("--data", str(data))[0]
        assert client.planner().planner == "hybrid"


def test_a_server_that_plans_by_rules_alone_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as running, Client(Address.of(running.address)) as client:
        state = client.planner()
        assert (state.planner, state.model_version, list(state.refused)) == ("rules", "", [])
        assert _check("--data", str(tmp_path)) == (True, "everything that the setting planner names is in use")
