"""A server without its trained planner: it plans by rules and says so, or does not start if it must have it."""

from dataclasses import replace
from pathlib import Path

import pytest

from conductor.policy.model import COMMITTED
from podium.errors import PodiumError
from tests.integration.command_line import podium
from tests.integration.server import serving
from tools.models.pinned import PinnedModels, committed_models


def test_a_server_that_must_have_the_trained_planner_does_not_start_without_it(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("conductor.policy.serving.COMMITTED", "a-planner-that-nobody-listed")
        with pytest.raises(PodiumError) as caught, serving(tmp_path / "policy", planner="policy"):
            raise AssertionError("it started")
        assert caught.value.code == "MODEL_NOT_PINNED"
        with serving(tmp_path / "hybrid", planner="hybrid") as running:
            reach = ["--data", str(running.data)]
            asked = podium("submit", "sing a song", "--json", *reach)
            assert asked.json["status"] == "waiting_input"
            assert "not available, MODEL_NOT_PINNED" in asked.json["route"][1]["reason"]
            assert podium("submit", "relay the words please", "--json", *reach).status == 0
            assert _planner_check(reach) == (True, "rules alone plan: no trained planner ships with this build")


def test_a_trained_planner_with_other_bytes_is_refused_and_everybody_hears_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listed = replace(next(iter(committed_models())), name=COMMITTED, sha256="0" * 64)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("conductor.policy.serving.committed_models", lambda: PinnedModels({COMMITTED: listed}))
        with serving(tmp_path / "data", planner="hybrid") as running:
            for reach in (["--data", str(running.data)], ["--server", running.address]):
                ok, detail = _planner_check(reach)
                assert not ok
                assert "rules alone plan, the planner that ships is refused, MODEL_HASH_MISMATCH" in detail
        # A server that the command runs for itself loads nothing; the file is looked at all the same.
        assert "MODEL_HASH_MISMATCH" in _planner_check(["--data", str(tmp_path / "other")], planner="hybrid")[1]
        assert _planner_check(["--data", str(tmp_path / "other")])[0] is True
        assert "the trained planner cannot be used, rules alone plan: MODEL_HASH_MISMATCH" in caplog.text


def _planner_check(reach: list[str], *, planner: str = "rules") -> tuple[bool, str]:
    checks = podium("health-check", "--json", *reach, environment={"PODIUM_PLANNER": planner}).json["checks"]
    [found] = [check for check in checks if check["name"] == "planner"]
    return found["ok"], found["detail"]
