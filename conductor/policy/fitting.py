"""Whether a value or an output is one that an agent's input takes."""

from collections.abc import Mapping
from typing import Any

from agents.registry import RegisteredAgent
from conductor.plan import Argument, Literal
from conductor.schema_fit import FieldUnknown, field_schema, misfits

_LONG_TEXT = 1_000


def accepts(agent: RegisteredAgent, name: str, value: Any) -> bool:
    """Whether an agent takes a value as one of its inputs."""
    if name not in agent.spec.input_schema.get("properties", {}):
        return False
    found = agent.contract.input_violations({name: value})
    place = f"$.{name}"
    return not any(item == "$" or item.startswith((f"{place}:", f"{place}.", f"{place}[")) for item in found)


def edge_fits(source: RegisteredAgent, output: str, agent: RegisteredAgent, name: str) -> bool:
    """Whether values of an output can be what an input takes."""
    asked = agent.spec.input_schema.get("properties", {}).get(name)
    if asked is None:
        return False
    try:
        produced = field_schema(source.spec.output_schema, output)
    except FieldUnknown:
        return False
    found = misfits(produced, source.spec.output_schema, asked, agent.spec.input_schema)
    return not any(misfit.certain for misfit in found)


def only_in_schema(schema: Mapping[str, Any]) -> bool:
    """Whether an input holds what no words of a request can: structures, or the whole text."""
    kind = schema.get("type")
    if kind in ("object", "array") or "$ref" in schema:
        return True
    return kind == "string" and "enum" not in schema and int(schema.get("maxLength", 0)) >= _LONG_TEXT


def default_of(schema: Mapping[str, Any]) -> Argument | None:
    """What an input's schema says when nothing else does."""
    for key in ("const", "default"):
        if key in schema:
            return Literal(value=schema[key])
    options = schema.get("enum")
    return Literal(value=options[0]) if isinstance(options, list) and len(options) == 1 else None
