"""Agents run in this process or on a device; every way to fail has its type."""

import asyncio
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.engines.device import DeviceEngine
from agents.engines.python import PythonEngine
from agents.invocation import AgentContext, Invocation, Resources
from agents.spec import ManifestInvalid
from podium.errors import AgentCrashed, AgentTimeout, CapabilityDenied, DeviceOffline, PodiumError
from tests.unit.agents.specs import echo, invocation, spec

HERE = "tests.unit.agents.test_engines"
RELEASE = threading.Event()
IMPORTING, GO_ON = threading.Event(), threading.Event()


def uses_resource(_: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    return {"said": context.resources.get("word", str), "thread": threading.current_thread().name}


async def speaks_later(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    await asyncio.sleep(0)
    return echo(inputs, context)


def fails(inputs: Mapping[str, Any], _: AgentContext) -> None:
    kinds: dict[str, type[BaseException]] = {
        "value": ValueError,
        "stop": StopIteration,
        "cancel": asyncio.CancelledError,
        "timeout": TimeoutError,
        "denied": CapabilityDenied,
    }
    if inputs["text"] == "exit":
        sys.exit(3)
    raise kinds[inputs["text"]]("boom")


async def fails_later(inputs: Mapping[str, Any], context: AgentContext) -> None:
    fails(inputs, context)


def waits(_: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    RELEASE.wait(5)
    return {}


async def waits_later(_: Mapping[str, Any], __: AgentContext) -> None:
    await asyncio.Event().wait()


def run(name: str, text: str = "hi", limit_ms: int = 5_000) -> Any:
    engine = PythonEngine(Resources({"word": "shared"}), threads=2)
    try:
        return asyncio.run(engine.invoke(invocation(spec(f"{HERE}:{name}"), {"text": text}, limit_ms=limit_ms)))
    finally:
        engine.close()


def test_plain_and_coroutine_functions_answer() -> None:
    assert run("speaks_later")["said"] == "hi"
    answer = run("uses_resource")
    assert answer["said"] == "shared"
    assert answer["thread"].startswith("agent")


@pytest.mark.parametrize("name", ["fails", "fails_later"])
@pytest.mark.parametrize("text", ["value", "stop", "timeout", "exit"])
def test_an_error_of_the_agent_is_a_crash(name: str, text: str) -> None:
    with pytest.raises(AgentCrashed, match="echo raised") as crash:
        run(name, text)
    assert crash.value.agent == "echo"


def test_a_plain_function_cannot_cancel_its_caller() -> None:
    with pytest.raises(AgentCrashed, match="CancelledError"):
        run("fails", "cancel")


@pytest.mark.parametrize("name", ["fails", "fails_later"])
def test_podium_errors_pass_unchanged(name: str) -> None:
    with pytest.raises(CapabilityDenied, match="boom"):
        run(name, "denied")


@pytest.mark.parametrize("name", ["waits", "waits_later"])
def test_the_time_limit_holds(name: str) -> None:
    try:
        with pytest.raises(AgentTimeout, match=r"within 0.02 s"):
            run(name, limit_ms=20)
    finally:
        RELEASE.set()


def test_an_agent_that_does_not_exist_is_named() -> None:
    with pytest.raises(ManifestInvalid, match="cannot be imported"):
        run("nothing_of_that_name")


def test_an_import_on_the_first_call_does_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The module's import ends only when the loop, which must be free for that, says so.
    lines = (
        f"from {HERE} import GO_ON, IMPORTING",
        "IMPORTING.set()",
        "said = 'free' if GO_ON.wait(5) else 'the loop was held up'",
        "def agent(inputs, context): return {'said': said}",
    )
    (tmp_path / "slow_specialist.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))

    async def scenario() -> Any:
        engine = PythonEngine(Resources(), threads=1)
        try:
            calling = asyncio.ensure_future(
                engine.invoke(invocation(spec("slow_specialist:agent"), {"text": "x"}))
            )
            await asyncio.to_thread(IMPORTING.wait, 5)
            GO_ON.set()
            return await calling
        finally:
            engine.close()

    assert asyncio.run(scenario()) == {"said": "free"}


def test_warming_imports_what_it_can_and_says_what_it_cannot(caplog: pytest.LogCaptureFixture) -> None:
    engine = PythonEngine(Resources(), threads=1)
    try:
        asyncio.run(engine.warm([f"{HERE}:nothing_of_that_name", "tests.unit.agents.specs:echo"]))
    finally:
        engine.close()
    assert list(engine._functions) == ["tests.unit.agents.specs:echo"]
    assert "nothing_of_that_name" in caplog.text


class _Link:
    def __init__(self, *, online: bool, answers: bool = True) -> None:
        self._online, self._answers = online, answers

    def online(self, device_id: str) -> bool:
        return self._online and device_id == "d-1"

    async def invoke(self, device_id: str, given: Invocation) -> Any:
        if not self._answers:
            await asyncio.Event().wait()
        return {"said": given.inputs["text"] + " from " + device_id}


def on_device(link: _Link, device_id: str) -> Any:
    call = invocation(spec(engine="device", settings={}), {"text": "hi"}, limit_ms=50, device_id=device_id)
    return asyncio.run(DeviceEngine(link).invoke(call))


def test_a_step_runs_on_the_device_of_the_request() -> None:
    assert on_device(_Link(online=True), "d-1") == {"said": "hi from d-1"}


@pytest.mark.parametrize(
    ("link", "device_id", "kind"),
    [
        (_Link(online=False), "d-1", DeviceOffline),
        (_Link(online=True), "d-2", DeviceOffline),
        (_Link(online=True), "", DeviceOffline),
        (_Link(online=True, answers=False), "d-1", AgentTimeout),
    ],
)
def test_a_device_that_is_away_is_a_typed_error(link: _Link, device_id: str, kind: type[PodiumError]) -> None:
    with pytest.raises(kind):
        on_device(link, device_id)
