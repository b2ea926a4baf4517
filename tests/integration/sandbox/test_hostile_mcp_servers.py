"""Hostile MCP servers in the sandbox, on four kinds of machine, beside a healthy one.

Each kind is played once, by `tests.cases.hostile_mcp` as a process of its own; the tests read what became of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.sandbox import confinement
from agents.sandbox.process_tree import tree_use
from tests.cases.hostile_calls import CANNOT, KINDS
from tests.cases.hostile_mcp import OUTCOMES
from tests.integration.sandbox.test_hostile_processes import ISOLATION
from tests.integration.server import ROOT

FEW = ("good", "hoard", "fork_bomb", "big_file", "daemon", "read_secrets", "call_out")
"""What depends on how a machine confines; the rest is measured alike everywhere."""


def _environment(folder: str) -> dict[str, str]:
    more = {"PLANTED_SECRET": "SECRET", "TMPDIR": folder, "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"}
    return os.environ | more


@pytest.fixture(scope="module", params=list(KINDS))
def seen(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    kind = request.param
    if os.geteuid() != 0 and KINDS[kind][0] == 0:
        pytest.skip("only root can be root")
    # Not below pytest's own folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="podium-hostile-") as name:
        Path(name).chmod(0o755)
        words = OUTCOMES if kind == "root" else FEW
        done = subprocess.run(
            [sys.executable, "-m", "tests.cases.hostile_mcp", kind, name, *words],
            capture_output=True,
            text=True,
            timeout=250,
            cwd=ROOT,
            env=_environment(name),
        )
        if done.returncode == CANNOT:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        if found["isolation"] != ISOLATION[kind]:
            pytest.skip(f"this machine refuses namespaces: {found['isolation']}")
        yield found


@pytest.mark.slow
def test_every_word_ends_in_its_own_typed_error_and_the_next_call_gets_a_fresh_server(
    seen: dict[str, Any],
) -> None:
    assert {word: said for word, said in seen["words"].items() if said["code"] != OUTCOMES[word]} == {}
    assert {word: said for word, said in seen["words"].items() if said.get("next", "ok") != "ok"} == {}


def test_over_a_limit_names_the_limit(seen: dict[str, Any]) -> None:
    limits = {
        "hoard": "memory_bytes",
        "hoard_shared": "memory_bytes",
        "hoard_in_children": "memory_bytes",
        "fork_bomb": "max_processes",
        "thread_bomb": "max_processes",
        "spin": "cpu_seconds",
        "big_file": "scratch_bytes",
    }
    said = {word: (seen["words"][word]["message"], name) for word, name in limits.items() if word in seen["words"]}
    assert {word: message for word, (message, name) in said.items() if name not in message} == {}


def test_nobody_is_left_running_nothing_is_left_on_disk_and_the_neighbour_answers(seen: dict[str, Any]) -> None:
    assert {word: said["left"] for word, said in seen["words"].items() if said["left"]} == {}
    assert {word: said["neighbour"] for word, said in seen["words"].items() if said["neighbour"]} == {}
    assert seen["left"] == 0
    assert [name for name in seen["files_left"] if name not in ("secret", "written")] == []


def test_it_reaches_neither_other_processes_nor_their_secrets_nor_the_network(seen: dict[str, Any]) -> None:
    read = seen["words"]["read_secrets"]["message"]
    assert seen["words"]["call_out"]["message"] == "refused"
    if seen["isolation"] == confinement.SAME_USER:
        # Files of the same user are within reach there, as docs/architecture.md says; processes are not.
        assert "/proc" not in read
    else:
        assert read == ""
        assert not seen["written"]


SERVER = """
import asyncio, sys
from pathlib import Path
from tests.cases.hostile_calls import KINDS, become, invocation
become(sys.argv[1], Path(sys.argv[2]))
from tests.cases.hostile_mcp import mcp_engine, mcp_spec

async def main():
    engine = mcp_engine(namespaces=KINDS[sys.argv[1]][1])
    await engine.invoke(invocation(mcp_spec("idle"), "daemon", limit_s=30))
    await engine.invoke(invocation(mcp_spec("busy"), "good", limit_s=30))
    busy = asyncio.create_task(engine.invoke(invocation(mcp_spec("busy"), "deaf", limit_s=600)))
    await asyncio.sleep(0)
    print("ready", flush=True)
    await busy

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["root", "user_without_namespaces"])
def test_kill_9_of_the_server_leaves_no_process_and_no_file(kind: str) -> None:
    if os.geteuid() != 0 and KINDS[kind][0] == 0:
        pytest.skip("only root can be root")
    with tempfile.TemporaryDirectory(prefix="podium-hostile-") as name:
        Path(name).chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-c", SERVER, kind, name],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=_environment(name),
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            pids = tree_use(server.pid).pids
            assert len(pids) >= 5  # two wardens, two programs, a daemon
            assert os.listdir(name)
            server.kill()
        deadline = time.monotonic() + 20
        while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(_runs(pid) for pid in pids)
        assert os.listdir(name) == []


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in (b"Z", b"X")
