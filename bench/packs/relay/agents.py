"""The five agents: parse → retrieve ∥ lookup → code → report. Coroutines, so that no thread is measured."""

from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext

SOURCE = {"id": "S1", "kind": "agent", "label": "bench", "location": "bench/relay", "sha256": ""}


async def parse(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Hand the text on, for one branch with "Find" as its first word.

    Other words than the request's make anchoring compare meanings; a request that begins with "Find" is quoted as
    it is, and nothing is compared.
    """
    return _output(text=inputs["text"], reworded=f"Find {inputs['text'].partition(' ')[2]}")


async def retrieve(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Hand the text on."""
    return _output(text=inputs["text"])


async def lookup(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Hand the text on."""
    return _output(text=inputs["text"])


async def code(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Put the two branches together."""
    return _output(text=inputs["first"] + inputs["second"])


async def report(inputs: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
    """Answer with a source."""
    return _output(markdown=f"Done: {len(inputs['text'])} characters. [Source: S1]", fields={"done": True})


def _output(**values: Any) -> dict[str, Any]:
    return {**values, "confidence_score": 1.0, "sources": [SOURCE]}
