"""What the server says is wrong with an agent: the model version that it is refused, in words on one line."""

import asyncio
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents.engines.onnx import OnnxEngine
from agents.invocation import Resources
from agents.registry import AgentRegistry, RegisteredAgent
from cloud.agent_problems import AgentProblems
from cloud.registrations import LeftOut
from tests.unit.agents.specs import spec
from tests.unit.agents.test_onnx_engine import onnx, promoted
from tests.unit.tools.artefacts.signed import Desk
from tests.unit.tools.onnx.graphs import adding
from tools.artefacts.admission import Admission
from tools.onnx.inspection import inspect
from tools.onnx.trial import TrialLimits


def test_a_refused_model_version_is_told_with_the_one_that_serves(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    interface = inspect(adding(), name="m").interface.to_json()
    admission = Admission(trial=TrialLimits(time=timedelta(seconds=30)))
    engine = OnnxEngine(Resources({}), registry=desk.registry, threads=1, admission=admission)
    agent = RegisteredAgent.of(onnx(inputs=interface["inputs"], outputs=interface["outputs"]))
    problems = AgentProblems(AgentRegistry(), _registrations(), engine)
    try:
        assert (problems.of(agent), problems.model_version(agent)) == ("", ""), "not kept ready yet"
        asyncio.run(engine.warm([agent.spec]))
        assert problems.of(agent).startswith("no model: ")
        assert problems.of(agent).endswith("; no version serves")
        promoted(desk, "1", adding(1))
        asyncio.run(engine.warm([agent.spec]))
        assert (problems.of(agent), problems.model_version(agent)) == ("", "1")
        promoted(desk, "2", adding(1, width=3))
        asyncio.run(engine.warm([agent.spec]))
        assert problems.of(agent).startswith("refused model version 2: ONNX_REFUSED: ")
        assert problems.of(agent).endswith("; version 1 serves")
        assert problems.of(RegisteredAgent.of(spec())) == "", "not of this engine"
    finally:
        engine.close()
        desk.registry.close()


def test_what_was_left_out_is_told_until_it_serves_again_and_in_few_plain_words() -> None:
    registry = AgentRegistry()
    left_out = [
        LeftOut(name="echo", version=version, manifest_sha256="ab", reason="\x1b[2J bad\nnews " + "x" * 2000)
        for version in ("1.0.0", "2.0.0")
    ]
    registry.register(spec(name="echo", version="2.0.0"))
    problems = AgentProblems(registry, _registrations(*left_out), _no_engine())
    ((one, problem),) = problems.left_out()
    assert one.version == "1.0.0"
    assert problem.startswith("left out at start: \N{REPLACEMENT CHARACTER}[2J bad news x")
    assert len(problem) <= 600


def _registrations(*left_out: LeftOut) -> Any:
    return SimpleNamespace(left_out=left_out)


def _no_engine() -> Any:
    return SimpleNamespace(state_of=pytest.fail)
