"""Agents of five kinds, each brought in by one manifest, in one plan; any of them killed in its step.

The agents are those of docs/examples, as real processes; the server is a real one with TLS and roles.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.client import Client
from podium.v1 import event_pb2, status_pb2, task_pb2
from tests.fakes.examples import SENTENCE, Examples, examples
from tests.integration.command_line import podium
from tests.integration.server import ServerProcess

pytestmark = pytest.mark.slow

NETWORKED = ("weather", "population", "elevation", "blurb")
MANIFESTS = (
    ("place", "brief"),
    ("weather", ""),
    ("population", ""),
    ("elevation", ""),
    ("blurb", ""),
    ("spare", "blurb"),
    ("brief", ""),
)
ANSWER = (
    "Zurich [Source: S1]: 9.4 °C on average [Source: S2], 436,000 people [Source: S3], 408 m above the sea "
    f"[Source: S4]. {SENTENCE} [Source: S5]"
)
GONE = {"AGENT_UNREACHABLE", "AGENT_CRASHED"}


@dataclass(frozen=True, kw_only=True)
class Theatre:
    """A server and the agents that were registered with it."""

    server: ServerProcess
    agents: Examples

    def command(self, *arguments: str) -> dict[str, Any]:
        ran = podium(*arguments, "--data", str(self.server.data), "--json")
        assert ran.status == 0, ran.out + ran.err
        return ran.json


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    with examples() as agents:
        for name in NETWORKED:
            agents.start(name)
        _spare(agents)
        server = ServerProcess(
            tmp_path_factory.mktemp("five") / "data",
            arguments=["--listen", "127.0.0.1:0"],
            environment={
                "PODIUM_AGENT_FOLDERS": str(agents.folder),
                "PODIUM_AGENT_HOSTS": "127.0.0.1",
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
        ).start()
        assert server.first_line, server.log()
        found = Theatre(server=server, agents=agents)
        try:
            for name, folder in MANIFESTS:
                kept = found.command("register", "--file", str(agents.manifest(name, folder)))
                assert kept["kept"], kept
            yield found
        finally:
            assert server.stop() == 0


def _spare(agents: Examples) -> None:
    """Another writer, isolated, on whom the model's manifest falls back."""
    model = agents.manifest("blurb")
    text = model.read_text("utf-8")
    head, _, schemas = text.partition("input_schema:")
    settings = f'settings: {{callable: "spare:write", path: {agents.folder / "blurb"}}}\n'
    spare = "name: spare\nversion: 1.0.0\ndescription: Says of every city the one thing that is true of most.\n"
    spare += f"capability_tags: [spare]\nengine: process\n{settings}input_schema:{schemas}"
    agents.manifest("spare", "blurb").write_text(spare, encoding="utf-8")
    model.write_text(
        f"{head.replace('settings:', 'settings:' + chr(10) + '  fallback: spare')}input_schema:{schemas}"
    )
    source = '{"id": "S1", "kind": "list", "label": "a proverb", "location": "1", "sha256": ""}'
    code = f'return {{"text": "It is worth a visit.", "confidence_score": 0.5, "sources": [{source}]}}'
    (agents.folder / "blurb" / "spare.py").write_text(f"def write(inputs, context):\n    {code}\n")


class Watched:
    """A task and its log, read as far as was asked for."""

    def __init__(self, client: Client, text: str) -> None:
        self.events: list[event_pb2.Event] = []
        self._client = client
        self._task_id = client.submit(text).task_id
        self._stream = client.watch(self._task_id, time_limit=timedelta(seconds=60))

    def until_started(self, *agents: str) -> None:
        """Read on until a step of each of these agents has begun."""
        while not set(agents) <= set(self.started()):
            self.events.append(next(self._stream).event)

    def started(self) -> list[str]:
        return [event.step_started.agent for event in self.events if event.HasField("step_started")]

    def succeeded(self) -> list[int]:
        return [event.header.step for event in self.events if event.HasField("step_succeeded")]

    def failures(self) -> list[event_pb2.StepFailed]:
        return [event.step_failed for event in self.events if event.HasField("step_failed")]

    def end(self) -> task_pb2.Task:
        """The task when it has ended well, with its whole log read."""
        self.events += [response.event for response in self._stream]
        task = self._client.get(self._task_id)
        assert task.status == status_pb2.TASK_STATUS_SUCCEEDED, (task, self.events)
        return task


def test_one_plan_uses_agents_of_five_kinds_and_the_four_in_the_middle_work_at_once(theatre: Theatre) -> None:
    with Client(theatre.server.address) as client:
        engines = {agent.name: (agent.engine, agent.registered_by) for agent in client.agents()}
        for name in NETWORKED:
            theatre.agents.pause(name)
        try:
            brief = Watched(client, "Brief me on Zurich")
            brief.until_started(*NETWORKED)
            assert brief.succeeded() == [0]  # all four are under way, and none of them can have answered
        finally:
            for name in NETWORKED:
                theatre.agents.go_on(name)
        task = brief.end()
    kinds = {"place": "process", "weather": "grpc", "population": "a2a", "elevation": "mcp", "blurb": "openai"}
    assert {name: engines[name][0] for name in kinds} == kinds
    assert all(engines[name][1] for name in kinds), "none of them came with the server"
    assert brief.started() == ["place", *NETWORKED, "brief"]
    assert not brief.failures()
    assert task.result.answer_markdown == ANSWER
    ports = theatre.agents.ports
    assert [(source.id, source.label, source.location) for source in task.result.sources[:5]] == [
        ("S1", "the request", "text"),
        ("S2", "Almanac", "zurich"),
        ("S3", "skill population of census 1.0", f"http://127.0.0.1:{ports['population']}#population"),
        ("S4", "tool elevation of heights", f"http://127.0.0.1:{ports['elevation']}/mcp#elevation"),
        ("S5", "any answered as blurb", f"http://127.0.0.1:{ports['blurb']}/v1"),
    ]


@pytest.mark.parametrize("victim", ["weather", "population", "elevation"])
def test_one_that_is_killed_in_its_step_is_asked_again_when_it_is_back(theatre: Theatre, victim: str) -> None:
    with Client(theatre.server.address) as client:
        theatre.agents.pause(victim)
        brief = Watched(client, "Brief me on Zurich")
        brief.until_started(victim)
        neighbour = _neighbour(client)
        killed_at = datetime.now(UTC)
        theatre.agents.kill(victim)
        theatre.agents.start(victim)
        assert brief.end().result.answer_markdown == ANSWER
        _unharmed(neighbour, killed_at)
    assert brief.started().count(victim) > 1
    assert set(brief.started()) == {"place", *NETWORKED, "brief"}
    for failure in brief.failures():
        assert (failure.error.agent, failure.error.code in GONE) == (victim, True), failure
        assert failure.recovery == status_pb2.RECOVERY_RETRY


def test_a_model_that_is_killed_in_its_step_is_replaced_by_the_agent_its_manifest_names(theatre: Theatre) -> None:
    with Client(theatre.server.address) as client:
        theatre.agents.pause("blurb")
        brief = Watched(client, "Brief me on Zurich")
        brief.until_started("blurb")
        neighbour = _neighbour(client)
        killed_at = datetime.now(UTC)
        theatre.agents.kill("blurb")
        try:
            task = brief.end()
        finally:
            theatre.agents.start("blurb")
        _unharmed(neighbour, killed_at)
    assert task.result.answer_markdown == ANSWER.replace(SENTENCE, "It is worth a visit.")
    assert [source.label for source in task.result.sources][4] == "a proverb"
    retried, replaced = brief.failures()
    assert {failure.error.agent for failure in (retried, replaced)} == {"blurb"}
    assert {failure.error.code for failure in (retried, replaced)} <= GONE
    assert (retried.recovery, replaced.recovery) == (status_pb2.RECOVERY_RETRY, status_pb2.RECOVERY_FALLBACK)
    assert replaced.next_agent == "spare"


@pytest.mark.parametrize(
    ("victim", "manifest", "script"),
    [
        ("place", "brief/place.yaml", "brief/brief.py"),
        ("elevation", "elevation/elevation_stdio.yaml", "elevation/elevation.py"),
    ],
    ids=["function", "mcp_program"],
)
def test_what_was_started_here_and_is_killed_in_its_step_runs_again_in_a_new_process(
    theatre: Theatre, victim: str, manifest: str, script: str
) -> None:
    file = theatre.agents.folder / manifest
    hold = _held(theatre.agents.folder / script)
    file.write_text(file.read_text("utf-8").replace("version: 1.0.0", "version: 1.2.0"), encoding="utf-8")
    theatre.command("register", "--file", str(file))
    hold.touch()
    with Client(theatre.server.address) as client:
        brief = Watched(client, "Brief me on Zurich")
        brief.until_started(victim)
        child = _working_child(theatre.server)
        neighbour = _neighbour(client)
        hold.unlink()
        killed_at = datetime.now(UTC)
        os.kill(child, signal.SIGKILL)
        assert brief.end().result.answer_markdown == ANSWER
        _unharmed(neighbour, killed_at)
    assert brief.started().count(victim) == 2
    (failure,) = brief.failures()
    assert (failure.error.agent, failure.error.code in GONE) == (victim, True), failure
    assert "SIGKILL" in failure.error.message or "signal 9" in failure.error.message
    assert failure.recovery == status_pb2.RECOVERY_RETRY


def _held(script: Path) -> Path:
    """Have every function of a script wait as long as a file is there; which file."""
    wait = (
        "    import pathlib, time\n"
        '    while pathlib.Path(__file__).with_name("hold").exists():\n'
        "        time.sleep(0.01)\n"
    )
    text = script.read_text("utf-8")
    script.write_text(text.replace("    return {", f"{wait}    return {{"), encoding="utf-8")
    return script.with_name("hold")


def _neighbour(client: Client) -> Watched:
    """A task of other agents that is under way."""
    neighbour = Watched(client, "relay the words please")
    neighbour.until_started("relay_count")
    return neighbour


def _unharmed(neighbour: Watched, killed_at: datetime) -> None:
    """It was running when the other agent was killed, and nothing of it failed or was done again."""
    assert neighbour.end().result.answer_markdown == "There are 4 words. [Source: S1]"
    assert neighbour.events[-1].header.time.ToDatetime(UTC) > killed_at
    assert not neighbour.failures()
    assert len(neighbour.started()) == len(set(neighbour.started())), "no step was done twice"


def _working_child(server: ServerProcess) -> int:
    """The one agent's process of the server that goes on working; those that wait for a call are frozen."""
    ends_s = time.monotonic() + 10
    before: list[int] = []
    while time.monotonic() < ends_s:
        working = _working(server)
        if len(working) == 1 and working == before:
            return working[0]
        before = working
        threading.Event().wait(0.1)  # one whose call has just ended is frozen by then
    raise AssertionError("no single agent's process works")


def _working(server: ServerProcess) -> list[int]:
    assert server.process is not None
    found: list[int] = []
    level = [child for warden in _children(server.process.pid) for child in _children(warden).items()]
    while level:
        below = {pid: _children(pid) for pid, _ in level}
        found += [pid for pid, state in level if state != "T" and not below[pid]]
        level = [child for children in below.values() for child in children.items()]
    return found


def _children(parent: int) -> dict[int, str]:
    """The processes below another one, with their states."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, above = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it has just ended
            if int(above) == parent:
                found[int(entry.name)] = state
    return found
