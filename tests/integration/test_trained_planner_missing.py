"""A server without its trained planner: it plans by rules and says so, or does not start if it must have it."""

from pathlib import Path

import pytest

from podium.errors import PodiumError
from tests.integration.command_line import podium
from tests.integration.server import serving


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
