"""Agents in processes of their own that mean well, and a server that dies."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.engines.process import ProcessEngine
from agents.sandbox.process_tree import tree_use
from agents.spec import AgentSpec, ManifestInvalid
from podium.errors import AgentCrashed, AgentTimeout, AgentUnreachable, OutputContractBroken
from tests.cases.hostile_calls import FOLDER, KINDS, hostile_spec, invocation
from tests.integration.server import ROOT

FUNCTIONS = """
import os

CALLS = []

def tell(inputs, context):
    CALLS.append(1)
    return {"said": f"{context.caller.name} {context.attempt} {context.now.tzinfo} {os.getpid()} {len(CALLS)}",
            "confidence_score": 1, "sources": []}

def refuse(inputs, context):
    raise KeyError("no such thing")

def written(inputs, context):
    return '{"said": "caf\\u00e9"}'
"""
ECHO = """#!/bin/sh
# A program in another language: reads four bytes of length and that much JSON, over and over.
while size=$(head -c 4 | od -An -tu1) && [ -n "$size" ]; do
  set -- $size
  head -c $(( $1 * 16777216 + $2 * 65536 + $3 * 256 + $4 )) > /dev/null
  echo "prints go to stderr" >&2
  printf '\\000\\000\\000\\033{"output":{"said":"hello"}}'
done
"""


def spec_of(folder: Path, **settings: object) -> AgentSpec:
    return hostile_spec("mine", settings={"path": str(folder), **settings}, limits={"max_processes": 8})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "mine.py").write_text(FUNCTIONS)
    (code / "echo.sh").write_text(ECHO)
    (code / "echo.sh").chmod(0o755)
    return code


@asynccontextmanager
async def engine_of(max_processes: int = 8) -> AsyncIterator[ProcessEngine]:
    engine = ProcessEngine(max_processes=max_processes)
    try:
        yield engine
    finally:
        await engine.close()


def test_a_function_gets_its_context_and_stays_warm(folder: Path) -> None:
    async def run() -> list[str]:
        async with engine_of() as engine:
            spec = spec_of(folder, callable="mine:tell")
            return [(await engine.invoke(invocation(spec, "")))["said"] for _ in range(3)]

    first, second, third = asyncio.run(run())
    assert first.startswith("somebody 1 UTC")
    assert [said.rsplit(" ", 1)[1] for said in (first, second, third)] == ["1", "2", "3"]


def test_an_error_of_its_own_keeps_the_process_and_text_is_passed_on(folder: Path) -> None:
    async def run() -> None:
        async with engine_of() as engine:
            for _ in range(2):
                with pytest.raises(AgentCrashed, match="mine raised KeyError: 'no such thing'") as caught:
                    await engine.invoke(invocation(spec_of(folder, callable="mine:refuse"), ""))
                assert caught.value.agent == "mine"
            assert len(tree_use(os.getpid()).pids) == 2  # a warden and its agent
            said = await engine.invoke(invocation(spec_of(folder, callable="mine:written"), ""))
            assert said == '{"said": "café"}'

    asyncio.run(run())


def test_a_program_in_any_language_speaks_frames(folder: Path) -> None:
    async def run() -> None:
        async with engine_of() as engine:
            spec = spec_of(folder, command=["./echo.sh"])
            for _ in range(3):
                assert await engine.invoke(invocation(spec, "")) == {"said": "hello"}
            prose = spec_of(folder, command=["/bin/echo", "Certainly! Here it comes."])
            with pytest.raises(OutputContractBroken) as caught:
                await engine.invoke(invocation(prose, ""))
            assert "Certainly!" in caught.value.evidence[0]
            with pytest.raises(AgentCrashed, match="status 1"):
                await engine.invoke(invocation(spec_of(folder, command=["/bin/false"]), ""))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"callable": "mine:tell", "path": "/no/such/folder"}, "is no folder"),
        ({"command": ["./not-there"]}, "is no program"),
    ],
)
def test_what_is_not_there_is_named(folder: Path, settings: dict[str, object], message: str) -> None:
    async def run() -> None:
        async with engine_of() as engine:
            with pytest.raises(ManifestInvalid, match=message):
                await engine.invoke(invocation(spec_of(folder, **settings), ""))

    asyncio.run(run())


def test_calls_beyond_the_workers_wait_and_idle_processes_end(folder: Path) -> None:
    async def run() -> None:
        async with engine_of(max_processes=2) as engine:
            one = spec_of(folder, callable="mine:tell", workers=1)
            said = await asyncio.gather(*(engine.invoke(invocation(one, "")) for _ in range(5)))
            assert len({answer["said"].split()[3] for answer in said}) == 1
            # Three agents in room for two: who is idle makes room.
            for name in ("a", "b", "c"):
                await engine.invoke(invocation(one.model_copy(update={"name": f"agent_{name}"}), ""))
            assert len(tree_use(os.getpid()).pids) <= 4
            brief = spec_of(folder, callable="mine:tell", idle_seconds=0)
            await engine.invoke(invocation(brief, ""))
            await engine.forget("agent_b")
            await engine.forget("agent_c")
            await _until_nobody_runs()

    asyncio.run(run())


async def _until_nobody_runs() -> None:
    async with asyncio.timeout(10):
        while tree_use(os.getpid()).pids:  # noqa: ASYNC110 - processes set no event
            await asyncio.sleep(0.01)


def test_a_call_that_is_given_up_ends_its_process(folder: Path) -> None:
    async def run() -> None:
        async with engine_of() as engine:
            call = asyncio.create_task(engine.invoke(invocation(hostile_spec(), "sleep", limit_s=60)))
            async with asyncio.timeout(10):
                while len(tree_use(os.getpid()).pids) < 2:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await _until_nobody_runs()
            busy = hostile_spec(settings={"callable": "misbehaving:misbehave", "path": str(FOLDER), "workers": 1})
            first = asyncio.create_task(engine.invoke(invocation(busy, "sleep", limit_s=1.0)))
            await asyncio.sleep(0)
            with pytest.raises(AgentTimeout, match=r"hostile did not answer within 0\.2 s"):
                await engine.invoke(invocation(busy, "good", limit_s=0.2))
            with pytest.raises(AgentTimeout):
                await first

    asyncio.run(run())


UNSAFE = """
import asyncio, sys
from pathlib import Path
from podium.errors import AgentUnreachable
from tests.cases.hostile_calls import become, hostile_spec, invocation
become("user_without_namespaces", Path(sys.argv[1]))
from agents.engines.process import ProcessEngine

async def main():
    try:
        await ProcessEngine(namespaces=False).invoke(invocation(hostile_spec(), "good"))
    except AgentUnreachable as error:
        print(error.next_step)

asyncio.run(main())
"""


def test_without_isolation_an_agent_runs_only_if_the_operator_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNSAFE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
    )
    assert "agent_weak_isolation" in done.stdout, done.stderr


SERVER = """
import asyncio, sys
from pathlib import Path
from tests.cases.hostile_calls import KINDS, become
become(sys.argv[1], Path(sys.argv[2]))
from agents.engines.process import ProcessEngine
from tests.cases.hostile_calls import hostile_spec, invocation

async def main():
    engine = ProcessEngine(namespaces=KINDS[sys.argv[1]][1], weak_isolation=True)
    await engine.invoke(invocation(hostile_spec("idle"), "good"))
    busy = asyncio.create_task(engine.invoke(invocation(hostile_spec("busy"), "deaf", limit_s=600)))
    print("ready", flush=True)
    await busy

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", list(KINDS))
def test_kill_9_of_the_server_leaves_no_process_and_no_file(kind: str) -> None:
    if os.geteuid() != 0 and KINDS[kind][0] == 0:
        pytest.skip("only root can be root")
    # Not below pytest's own folder, which nobody but its owner may enter.
    with tempfile.TemporaryDirectory(prefix="podium-hostile-") as name:
        Path(name).chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-c", SERVER, kind, name],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"TMPDIR": name, "PYTHONPATH": f"{ROOT}:{ROOT / 'protos'}"},
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 20
            while len(pids := tree_use(server.pid).pids) < 4 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(pids) == 4
            assert os.listdir(name)
            server.kill()
        while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(_runs(pid) for pid in pids)
        assert os.listdir(name) == []


def _state(pid: int) -> str:
    """As /proc names it; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _runs(pid: int) -> bool:
    return _state(pid) not in ("", "Z", "X")


def test_a_process_that_died_between_two_calls_is_replaced(folder: Path) -> None:
    async def run() -> None:
        async with engine_of() as engine:
            spec = spec_of(folder, callable="mine:tell")
            await engine.invoke(invocation(spec, ""))
            _, agent = sorted(tree_use(os.getpid()).pids)
            os.kill(agent, signal.SIGKILL)
            async with asyncio.timeout(10):
                while _runs(agent):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
            assert (await engine.invoke(invocation(spec, "")))["said"].endswith(" 1")

    asyncio.run(run())


def test_a_warden_that_dies_takes_its_agent_along() -> None:
    async def run() -> None:
        async with engine_of() as engine:
            await engine.invoke(invocation(hostile_spec(), "good"))
            warden, agent = sorted(tree_use(os.getpid()).pids)
            call = asyncio.create_task(engine.invoke(invocation(hostile_spec(), "deaf", limit_s=60)))
            async with asyncio.timeout(10):
                while _state(agent) == "T":  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
            os.kill(warden, signal.SIGKILL)
            with pytest.raises(AgentUnreachable, match="lost") as caught:
                await call
            assert caught.value.agent == "hostile"
            async with asyncio.timeout(10):
                while _runs(agent):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_after_it_is_closed_it_starts_nothing(folder: Path) -> None:
    async def run() -> None:
        engine = ProcessEngine()
        await engine.close()
        with pytest.raises(AgentUnreachable, match="stopping"):
            await engine.invoke(invocation(spec_of(folder, callable="mine:tell"), ""))

    asyncio.run(run())
