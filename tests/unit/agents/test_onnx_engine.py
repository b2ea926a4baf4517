"""An agent that is an ONNX model: it answers, changes versions while it serves, and fails in typed ways only."""

import asyncio
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.engines.onnx import OnnxEngine
from agents.engines.settings import check_settings
from agents.invocation import AgentContext, Resources
from agents.spec import AgentSpec, ManifestInvalid
from podium.errors import (
    AgentCrashed,
    AgentTimeout,
    AgentUnreachable,
    CapabilityDenied,
    InputContractBroken,
    OutputContractBroken,
)
from tests.unit.agents.specs import invocation, spec
from tests.unit.tools.artefacts.signed import ANN, DEFECTS, Desk, version
from tests.unit.tools.onnx.graphs import adding, looping
from tests.unit.tools.onnx.tiny_model import division
from tools.artefacts.admission import Admission
from tools.artefacts.serving import SlotState
from tools.onnx.inspection import inspect
from tools.onnx.trial import TrialLimits

HERE = "tests.unit.agents.test_onnx_engine"


def before(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    kind = inputs["text"]
    if kind == "crash":
        raise ValueError("boom")
    if kind == "denied":
        raise CapabilityDenied("no")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "list":
        return {"x": [1, 2]}
    if kind == "wrong":
        return {"x": np.zeros((1, 5), dtype=np.float32)}
    if kind == "endless":
        return {"x": np.zeros((1, 2), dtype=np.float32), "m": np.array(2**62)}
    number = float(kind) + context.resources.get("offset", float)
    return {"x": np.full((1, 2), number, dtype=np.float32)}


def divided(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    return {"a": np.ones(1, dtype=np.float32), "b": np.full(1, float(inputs["text"]), dtype=np.float32)}


def after(outputs: Mapping[str, Any], inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    if inputs["text"] == "7":
        raise KeyError("after")
    return {"said": f"{outputs['y'].ravel()[0]:g}", "confidence_score": 1.0, "sources": []}


def onnx(**settings: Any) -> AgentSpec:
    told = {"model": "defects", "before": f"{HERE}:before", "after": f"{HERE}:after"}
    return spec(engine="onnx", settings={**told, **settings})


@pytest.fixture
def engine(desk: Desk):
    engine = OnnxEngine(Resources({"offset": 0.0}), registry=desk.registry, threads=2)
    yield engine
    engine.close()


@pytest.fixture
def desk(tmp_path: Path):
    desk = Desk(tmp_path)
    yield desk
    desk.registry.close()


def promoted(desk: Desk, number: str, data: bytes, **told: Any) -> None:
    desk.add(number, data, **told)
    desk.registry.promote(version(number), who=ANN, new_interface=True)


def ask(engine: OnnxEngine, text: str, of: AgentSpec | None = None, limit_ms: int = 60_000) -> Any:
    return asyncio.run(engine.invoke(invocation(of or onnx(), {"text": text}, limit_ms=limit_ms)))


def _state(engine: OnnxEngine, of: AgentSpec) -> SlotState:
    state = engine.state_of(of)
    assert state is not None
    return state


def test_answers_with_the_current_version_and_follows_it(desk: Desk, engine: OnnxEngine) -> None:
    promoted(desk, "1", adding(1))
    assert ask(engine, "5")["said"] == "6"
    promoted(desk, "2", adding(20))
    deadline = time.monotonic() + 60
    while _state(engine, onnx()).serving != "2":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert ask(engine, "5")["said"] == "25"
    desk.registry.roll_back(DEFECTS, who=ANN)


def test_a_packaged_model_serves_by_the_committed_list(engine: OnnxEngine) -> None:
    pages = onnx(model="pinned:ppocr-cls", before=f"{HERE}:page", after=f"{HERE}:upright")
    assert ask(engine, "x", pages)["said"] in ("True", "False")
    assert _state(engine, pages).serving == "3.10.0"
    with pytest.raises(AgentUnreachable, match="not in the list of reviewed models"):
        ask(engine, "1", onnx(model="pinned:other"))


def test_no_more_models_than_allowed_are_kept_ready(desk: Desk) -> None:
    promoted(desk, "1", adding(1))
    engine = OnnxEngine(Resources({"offset": 0.0}), registry=desk.registry, threads=1, most_models=1)
    pages = onnx(model="pinned:ppocr-cls", before=f"{HERE}:page", after=f"{HERE}:upright")
    before = _followers()
    for _ in range(2):
        assert ask(engine, "5")["said"] == "6"
        assert _state(engine, onnx()).serving == "1"
        assert ask(engine, "x", pages)["said"] in ("True", "False")
        assert (engine.state_of(onnx()), _state(engine, pages).refused) == (None, ())
    deadline = time.monotonic() + 60
    while len(_followers() - before) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    engine.close()
    assert not _followers() - before


def _followers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "model-slot"}


def page(_: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    return {"x": np.zeros((1, 3, 48, 192), dtype=np.float32)}


def upright(outputs: Mapping[str, Any], _: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    (scores,) = outputs.values()
    return {"said": str(bool(scores[0, 0] > scores[0, 1])), "confidence_score": 1.0, "sources": []}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("crash", AgentCrashed),
        ("exit", AgentCrashed),
        ("list", AgentCrashed),
        ("wrong", AgentCrashed),
        ("7", AgentCrashed),
        ("denied", CapabilityDenied),
        ("nan", InputContractBroken),
        ("inf", InputContractBroken),
    ],
)
def test_every_failure_has_its_type_and_the_agents_name(
    desk: Desk, engine: OnnxEngine, text: str, kind: type[Exception]
) -> None:
    promoted(desk, "1", adding(1))
    with pytest.raises(kind) as failed:
        ask(engine, text)
    assert failed.type is kind
    assert kind is CapabilityDenied or failed.value.agent == "echo"
    assert ask(engine, "1")["said"] == "2"


def test_what_comes_out_not_finite_is_refused(desk: Desk, engine: OnnxEngine) -> None:
    promoted(desk, "1", division(), trial={"b": {"value": 1}})
    with pytest.raises(OutputContractBroken, match="output 'y'"):
        ask(engine, "0", onnx(before=f"{HERE}:divided"))


def test_a_model_past_its_time_is_stopped_and_its_thread_is_free(desk: Desk) -> None:
    promoted(desk, "1", looping())
    engine = OnnxEngine(Resources({"offset": 0.0}), registry=desk.registry, threads=1)
    asyncio.run(engine.warm([onnx()]))
    with pytest.raises(AgentTimeout):
        ask(engine, "endless", limit_ms=300)
    # The only thread: it must have come back.
    with pytest.raises(AgentCrashed, match="m"):
        ask(engine, "1")
    engine.close()


def test_no_model_is_a_typed_error_with_every_reason(desk: Desk, engine: OnnxEngine) -> None:
    with pytest.raises(AgentUnreachable, match="no version of model/defects is current"):
        ask(engine, "1")


def test_a_version_of_another_shape_is_refused_and_the_old_one_answers(desk: Desk) -> None:
    interface = inspect(adding(), name="m").interface.to_json()
    admission = Admission(trial=TrialLimits(time=timedelta(seconds=30)))
    engine = OnnxEngine(Resources({"offset": 0.0}), registry=desk.registry, threads=2, admission=admission)
    agent = onnx(inputs=interface["inputs"], outputs=interface["outputs"])
    promoted(desk, "1", adding(1))
    assert ask(engine, "5", agent)["said"] == "6"
    promoted(desk, "2", adding(1, width=3))
    deadline = time.monotonic() + 60
    while not _state(engine, agent).refused:
        assert time.monotonic() < deadline
        assert ask(engine, "5", agent)["said"] == "6"
    assert ask(engine, "5", agent)["said"] == "6"
    assert _state(engine, agent).refused[0].code == "ONNX_REFUSED"
    assert _state(engine, agent).serving == "1"
    anything = onnx()
    asyncio.run(engine.warm([anything]))  # it asks for no shape, so what the other is refused serves it
    assert (_state(engine, anything).serving, _state(engine, anything).refused) == ("2", ())
    engine.close()


def test_a_function_that_is_not_there_is_the_manifests_fault(desk: Desk, engine: OnnxEngine) -> None:
    promoted(desk, "1", adding(1))
    with pytest.raises(ManifestInvalid):
        ask(engine, "1", onnx(before=f"{HERE}:nothing"))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "../evil"},
        {"model": "Defects"},
        {"before": "os.system"},
        {"inputs": {}},
        {"inputs": {"x": {"dtype": "float", "shape": []}}, "outputs": {}},
        {"trial": {"x": {"value": 1}}},
        {"threads": 0},
        {"other": 1},
    ],
    ids=str,
)
def test_settings_of_another_form_are_refused(change: dict[str, Any]) -> None:
    told = {"model": "defects", "before": f"{HERE}:before", "after": f"{HERE}:after"}
    check_settings("onnx", told)
    with pytest.raises(ValueError, match="validation error"):
        check_settings("onnx", told | change)
