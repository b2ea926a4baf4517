"""Hostile agents in processes of their own, on four kinds of machine, beside a healthy neighbour.

Each kind is played once, by `tests.cases.hostile_calls` as a process of its own; the tests read what became of it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.sandbox import confinement
from tests.cases.hostile_calls import CANNOT, KINDS
from tests.cases.hostile_process.misbehaving import OUTCOMES
from tests.integration.server import ROOT

ISOLATION = {
    "root": confinement.ROOT_NAMESPACES,
    "root_without_namespaces": confinement.OTHER_USER,
    "user": confinement.USER_NAMESPACES,
    "user_without_namespaces": confinement.SAME_USER,
}
SLOWEST_NEIGHBOUR_S = 3.0
"""The machine that runs the tests has other work too; without it the slowest call takes some hundredths."""


@pytest.fixture(scope="module", params=list(KINDS))
def seen(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind = request.param
    if os.geteuid() != 0 and KINDS[kind][0] == 0:
        pytest.skip("only root can be root")
    # Not below pytest's own folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="podium-hostile-") as name:
        Path(name).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-m", "tests.cases.hostile_calls", kind, name],
            capture_output=True,
            text=True,
            timeout=200,
            cwd=ROOT,
            env=os.environ
            | {"PLANTED_SECRET": "SECRET", "TMPDIR": name, "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        )
        if done.returncode == CANNOT:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        if found["isolation"] != ISOLATION[kind]:
            pytest.skip(f"this machine refuses namespaces: {found['isolation']}")
        yield found


def test_every_word_ends_in_its_own_typed_error_with_the_agents_name(seen: dict[str, Any]) -> None:
    wrong = {
        word: said
        for word, said in seen["words"].items()
        if said["code"] != OUTCOMES[word] or said["agent"] != "hostile" or len(said["message"]) > 2000
    }
    assert wrong == {}
    assert set(seen["words"]) == set(OUTCOMES)


def test_over_a_limit_names_the_limit(seen: dict[str, Any]) -> None:
    limits = {
        "gigabyte": "memory_bytes",
        "claim_a_gigabyte": "max_output_bytes",
        "hoard_shared": "memory_bytes",
        "hoard_in_children": "memory_bytes",
        "fork_bomb": "max_processes",
        "thread_bomb": "max_processes",
        "spin": "cpu_seconds",
        "big_file": "scratch_bytes",
    }
    assert {word: name for word, name in limits.items() if name not in seen["words"][word]["message"]} == {}


def test_nobody_is_left_running_and_nothing_is_left_on_disk(seen: dict[str, Any]) -> None:
    assert {word: said["left"] for word, said in seen["words"].items() if said["left"]} == {}
    assert seen["left"] == 0
    assert [name for name in seen["files_left"] if name not in ("secret", "written")] == []


def test_the_neighbour_answers_all_along(seen: dict[str, Any]) -> None:
    disturbed = {
        word: said["neighbour"]
        for word, said in seen["words"].items()
        if said["neighbour"]["failures"] or said["neighbour"]["worst_s"] > SLOWEST_NEIGHBOUR_S
    }
    assert disturbed == {}


def test_it_reaches_neither_other_processes_nor_their_secrets_nor_the_network(seen: dict[str, Any]) -> None:
    said = {word: seen["words"][word]["message"] for word in ("kill_everybody", "read_secrets", "call_out")}
    if seen["isolation"] == confinement.SAME_USER:
        # Files of the same user are within reach there, as docs/architecture.md says; processes are not.
        assert "/proc" not in said.pop("read_secrets")
    else:
        assert said.pop("read_secrets") == ""
        assert not seen["written"]
    assert said == {"kill_everybody": "killed []", "call_out": "refused"}
