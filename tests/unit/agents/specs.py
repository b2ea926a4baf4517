"""Small manifests to test with."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.contract import SOURCES_SCHEMA
from agents.invocation import AgentContext, Caller, Invocation
from agents.spec import AgentSpec

NOW = datetime(2026, 10, 8, 9, 30, tzinfo=UTC)


def spec(callable_name: str = "tests.unit.agents.specs:echo", **changes: Any) -> AgentSpec:
    """An agent that takes `text` (and maybe `count`) and returns `said`."""
    fields: dict[str, Any] = {
        "name": "echo",
        "version": "1.0.0",
        "description": "Repeats what it is given, for tests.",
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer", "minimum": 0}},
            "required": ["text"],
            "additionalProperties": False,
            "examples": [{"text": "hello", "count": 2}],
        },
        "output_schema": output_schema({"said": {"type": "string"}}),
        "capability_tags": ("echo",),
        "settings": {"callable": callable_name},
    }
    return AgentSpec.model_validate({**fields, **changes})


def output_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            **properties,
            "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
            "sources": dict(SOURCES_SCHEMA),
        },
        "required": [*properties, "confidence_score", "sources"],
        "additionalProperties": False,
    }


def context(**changes: Any) -> AgentContext:
    fields: dict[str, Any] = {
        "task_id": "t-1",
        "step": 0,
        "attempt": 1,
        "idempotency_key": "t-1/0",
        "now": NOW,
        "caller": Caller(name="ann"),
    }
    return AgentContext(**{**fields, **changes})


def invocation(of: AgentSpec, inputs: Mapping[str, Any], *, limit_ms: int = 5_000, **changes: Any) -> Invocation:
    return Invocation(
        spec=of, inputs=inputs, context=context(**changes), time_limit=timedelta(milliseconds=limit_ms)
    )


def echo(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    return {"said": inputs["text"], "confidence_score": 1.0, "sources": []}
