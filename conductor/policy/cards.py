"""What the planner knows of an agent or tool: its name, its words and its schemas, never an index."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from agents.canonical import canonical_json
from podium.errors import InvalidRequest

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ToolCardInvalid(InvalidRequest):
    """A description of a tool that cannot be planned with; the message names the field."""

    code = "TOOL_CARD_INVALID"
    advice = 'Give each tool {"name", "description"[, "input_schema", "output_schema"]}.'


@dataclass(frozen=True, kw_only=True)
class ToolCard:
    """One agent or tool as the planner sees it; two cards with the same content are the same tool to it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """JSON Schema of the arguments; empty when none is known."""
    output_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @classmethod
    def from_json(cls, value: Any) -> "ToolCard":
        """Read the form that `--tools` files and requests carry.

        Raises:
            ToolCardInvalid: no name, or a field of another type.
        """
        if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
            raise ToolCardInvalid("a tool needs a name", field="tools.name")
        for key, kind in (("description", str), ("input_schema", dict), ("output_schema", dict)):
            if not isinstance(value.get(key, kind()), kind):
                raise ToolCardInvalid(f"{value['name']}: {key} must be a {kind.__name__}", field=f"tools.{key}")
        return cls(
            name=value["name"],
            description=value.get("description", ""),
            input_schema=value.get("input_schema", {}),
            output_schema=value.get("output_schema", {}),
        )

    @property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Schemas of the arguments by name."""
        return _properties(self.input_schema)

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Schemas of what it returns by name."""
        return _properties(self.output_schema)

    @property
    def required(self) -> frozenset[str]:
        """Arguments that a call must have."""
        listed = self.input_schema.get("required", ())
        names = listed if isinstance(listed, list | tuple) else ()
        return frozenset(name for name in names if isinstance(name, str))

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, what cached vectors are kept by."""
        content = [self.name, self.description, dict(self.input_schema), dict(self.output_schema)]
        return hashlib.sha256(canonical_json(content)).hexdigest()


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return _NOTHING
    return {name: value if isinstance(value, dict) else {} for name, value in properties.items()}
