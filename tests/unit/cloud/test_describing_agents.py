"""An agent as it travels and as commands print it: where it runs, and what it promises to whom it hands over."""

from typing import Any

import pytest

from agents.registry import RegisteredAgent
from cloud.commands.agents import agent_json
from cloud.services.registry import describe
from tests.unit.agents.specs import spec


@pytest.mark.parametrize(
    ("engine", "settings", "endpoint"),
    [
        ("python", {"callable": "tests.unit.agents.specs:echo"}, ""),
        ("device", {"fallback": "other"}, ""),
        ("grpc", {"endpoints": ["a.example:7443", "[::1]:7444"]}, "grpc://a.example:7443,grpc://[::1]:7444"),
        ("a2a", {"card": "https://a.example", "skill": "s", "confidence": 0.5}, "https://a.example"),
        ("mcp", {"url": "https://a.example/mcp", "tool": "t", "confidence": 0.5}, "https://a.example/mcp"),
        ("openai", {"base_url": "https://a.example/v1", "model": "m"}, "https://a.example/v1"),
    ],
)
def test_where_an_agent_runs(engine: str, settings: dict[str, Any], endpoint: str) -> None:
    described = describe(RegisteredAgent.of(spec(engine=engine, settings=settings)))
    assert (described.endpoint, described.engine) == (endpoint, engine)
    assert agent_json(described)["endpoint"] == endpoint


def test_what_an_agent_promises_to_whom_it_hands_over() -> None:
    parameters = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    handover = {"to": "reader", "within_turns": 2, "parameters": parameters}
    described = describe(RegisteredAgent.of(spec(handovers=[handover])))
    assert agent_json(described)["handovers"] == [handover]
    assert agent_json(describe(RegisteredAgent.of(spec())))["handovers"] == []
