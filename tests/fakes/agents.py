"""Agents that follow a script, and what it takes to register and run them."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.contract import SOURCES_SCHEMA
from agents.invocation import Invocation
from agents.registry import AgentRegistry
from agents.spec import AgentSpec

SOURCE = {"id": "S1", "kind": "sql", "label": "sample", "location": "sales", "sha256": "0" * 64}
TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def agent_spec(
    name: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    required: Sequence[str] | None = None,
    tags: Sequence[str] = (),
    **fields: Any,
) -> AgentSpec:
    """A manifest with the given input and output properties; all inputs are required unless said otherwise."""
    given = dict(inputs or {})
    produced = dict(outputs or {})
    return AgentSpec.model_validate(
        {
            "name": name,
            "version": "1.0.0",
            "description": f"The scripted agent {name} of the tests.",
            "input_schema": {
                "type": "object",
                "properties": given,
                "required": list(given if required is None else required),
                "additionalProperties": False,
            },
            "output_schema": {
                "type": "object",
                "properties": {
                    **produced,
                    "confidence_score": {"type": "number", "minimum": 0, "maximum": 1},
                    "sources": dict(SOURCES_SCHEMA),
                },
                "required": [*produced, "confidence_score", "sources"],
                "additionalProperties": False,
            },
            "capability_tags": list(tags) or [name],
            "settings": {"callable": "tests.fakes.agents:never_called"},
            "sla": {"timeout": 5, "retries": 1},
            **fields,
        }
    )


def never_called(inputs: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
    """Named by manifests of scripted agents; the scripted engine answers instead."""
    raise AssertionError("a scripted agent was called by a real engine")


def output(confidence: float = 0.9, **fields: Any) -> dict[str, Any]:
    """An output with confidence and one source."""
    return {**fields, "confidence_score": confidence, "sources": [dict(SOURCE)]}


def answer(text: str = "Sales fell by 20 % [Source: S1]", **fields: Any) -> dict[str, Any]:
    """An answer step's output."""
    return output(markdown=text, fields=fields or {"change": -0.2})


ANSWER = {"markdown": TEXT, "fields": {"type": "object", "additionalProperties": True, "properties": {}}}
"""Output properties of an agent that gives answers."""
ANSWER["fields"] = {"type": "object", "additionalProperties": {}}


def registry_of(*specs: AgentSpec) -> AgentRegistry:
    """A registry of these agents."""
    registry = AgentRegistry()
    for spec in specs:
        registry.register(spec)
    return registry


Behaviour = Any
"""A mapping or other value to return, an exception to raise, or a callable of the invocation that gives either."""


@dataclass
class ScriptedEngine:
    """Answers each agent's calls by its script: one behaviour, or a list of them of which the last repeats."""

    scripts: dict[str, Behaviour | list[Behaviour]]
    calls: list[Invocation] = field(default_factory=list)
    active: int = 0
    most_active: int = 0

    async def invoke(self, invocation: Invocation) -> Any:
        name = invocation.spec.name
        number = sum(call.spec.name == name for call in self.calls)
        self.calls.append(invocation)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            script = self.scripts[name]
            behaviour = script[min(number, len(script) - 1)] if isinstance(script, list) else script
            if callable(behaviour) and not isinstance(behaviour, type):
                behaviour = behaviour(invocation)
            if inspect.isawaitable(behaviour):
                behaviour = await behaviour
            await asyncio.sleep(0)
            if isinstance(behaviour, BaseException):
                raise behaviour
            return behaviour
        finally:
            self.active -= 1

    def count(self, name: str) -> int:
        """How often an agent was called."""
        return sum(call.spec.name == name for call in self.calls)

    def named(self) -> list[str]:
        """The agents called, in order."""
        return [call.spec.name for call in self.calls]


def held(event: asyncio.Event, result: Any) -> Callable[[Invocation], Any]:
    """A behaviour that answers once the event is set."""

    async def behave() -> Any:
        await event.wait()
        return result

    return lambda invocation: behave()
