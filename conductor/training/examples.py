"""One planning example, whatever data set it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from conductor.policy.cards import ToolCard


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldStep:
    """One call of the right plan."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Name to a literal, or to `{"step": index, "field": name}`, what another call returns."""
    accept: Mapping[str, tuple[Any, ...]] | None = None
    """Instead of `arguments`: every accepted value of each argument; "" among them means it may be left out."""
    depends_on: tuple[int, ...] = ()
    text: str = ""
    """The wording of this step; for training only, never an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request, the tools there are and the right plan."""

    source: str
    """Which data set: ultratool, nestools, sealtools, bfcl/NAME, written/NAME or packs."""
    id: str
    request: str
    tools: tuple[ToolCard, ...]
    """Everything that could be called; examples of a data set with one registry share the tuple."""
    steps: tuple[GoldStep, ...]

    @property
    def tool_set(self) -> frozenset[str]:
        """The names of the tools of the right plan."""
        return frozenset(step.tool for step in self.steps)
