"""A manifest from elsewhere runs nothing in the server, reads nothing of it and sends none of its secrets away."""

from pathlib import Path
from subprocess import run as borrowed  # noqa: F401 - what a manifest must not reach through this module
from typing import Any

import pytest

from agents.foreign_code import ForeignPolicy, refusals
from agents.spec import AgentSpec
from tests.unit.agents.specs import spec

POLICY = ForeignPolicy(modules=("tests.unit.agents",))


def written_here(*_: Any) -> list[str]:
    return []


def _refused(agent: AgentSpec, policy: ForeignPolicy = POLICY) -> list[tuple[str, str]]:
    return [(refusal.code, ".".join(map(str, refusal.place))) for refusal in refusals(agent, policy)]


def _agent(engine: str = "python", settings: dict[str, Any] | None = None, **changes: Any) -> AgentSpec:
    # Engines check their own settings; here it is about what they name.
    update = {"engine": engine, **({} if settings is None else {"settings": settings}), **changes}
    return spec().model_copy(update=update)


@pytest.mark.parametrize(
    "name",
    ["os:system", "tests.unit.agents_evil:f", "tests:f", "tests.unit.agents.test_foreign_code:borrowed"],
)
def test_no_function_beyond_the_allowed_modules(name: str) -> None:
    assert _refused(_agent(settings={"callable": name})) == [("CODE_NOT_ALLOWED", "settings.callable")]
    assert _refused(_agent(settings={"callable": name}), ForeignPolicy()) == [
        ("CODE_NOT_ALLOWED", "settings.callable")
    ]


def test_a_function_written_under_an_allowed_module_is_fine() -> None:
    assert _refused(_agent(settings={"callable": "tests.unit.agents.test_foreign_code:written_here"})) == []
    missing = _agent(settings={"callable": "tests.unit.agents.specs:nothing_there"})
    assert _refused(missing) == [("CODE_UNUSABLE", "settings.callable")]


def test_hooks_and_checks_run_in_the_server_whatever_the_engine() -> None:
    from agents.spec import Validator

    checks = (Validator(name="a", cel="true"), Validator(name="b", python="shutil:rmtree"))
    agent = _agent("process", {"callable": "anything:goes"}, output_hook="os:system", validators=checks)
    assert _refused(agent) == [("CODE_NOT_ALLOWED", "output_hook"), ("CODE_NOT_ALLOWED", "validators.1.python")]
    assert _refused(_agent("process", {}, output_hook="agents.output_hooks:unwrap_fenced_json")) == []


def test_what_surrounds_a_model_runs_in_the_server_too() -> None:
    agent = _agent("onnx", {"model": "m", "before": "os:system", "after": "os:remove"})
    assert _refused(agent) == [("CODE_NOT_ALLOWED", "settings.after"), ("CODE_NOT_ALLOWED", "settings.before")]


def test_a_function_in_a_locked_process_is_its_own_affair() -> None:
    assert _refused(_agent("process", {"callable": "anything:goes"}), ForeignPolicy()) == []


def test_no_folder_beyond_the_allowed_ones(tmp_path: Path) -> None:
    allowed = tmp_path / "agents"
    (allowed / "mine").mkdir(parents=True)
    (allowed / "out").symlink_to("/")
    policy = ForeignPolicy(folders=(allowed,))
    for key, engine in (("path", "process"), ("cwd", "mcp"), ("ca_file", "a2a")):
        refused = [("FOLDER_NOT_ALLOWED", f"settings.{key}")]
        assert _refused(_agent(engine, {key: str(allowed / "mine")}), policy) == []
        for path in ("/", str(allowed / ".." / "secret"), str(allowed / "out" / "etc"), "etc"):
            assert _refused(_agent(engine, {key: path}), policy) == refused, path
        assert _refused(_agent(engine, {key: str(allowed)}), ForeignPolicy()) == refused


def test_no_variable_beyond_those_meant_for_agents() -> None:
    assert _refused(_agent("openai", {"api_key_env": "AWS_SECRET_ACCESS_KEY"})) == [
        ("VARIABLE_NOT_ALLOWED", "settings.api_key_env")
    ]
    assert _refused(_agent("mcp", {"env": ["PODIUM_AGENT_KEY", "PODIUM_TOKEN", "HOME"]})) == [
        ("VARIABLE_NOT_ALLOWED", "settings.env"),
        ("VARIABLE_NOT_ALLOWED", "settings.env"),
    ]
    assert _refused(_agent("mcp", {"env": ("HOME",)}), ForeignPolicy(environment=("HOME",))) == []
    assert _refused(_agent("a2a", {"token_env": "PODIUM_AGENT_A2A"})) == []
