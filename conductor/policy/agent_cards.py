"""The agents of a registry as the model sees them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from agents.registry import RegisteredAgent
from agents.spec import AgentSpec
from conductor.policy.cards import ToolCard

_KEPT = 4_096


def cards_of(agents: Iterable[RegisteredAgent]) -> Mapping[str, ToolCard]:
    """The card of each agent by its name; made once for each manifest."""
    return {agent.spec.name: _card(_Key(agent)) for agent in agents}


class _Key:
    """An agent as a key: two with the same manifest are the same."""

    def __init__(self, agent: RegisteredAgent) -> None:
        self.spec: AgentSpec = agent.spec
        self._manifest = agent.manifest_sha256 or repr((agent.spec.name, agent.contract))

    def __hash__(self) -> int:
        return hash(self._manifest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._manifest == other._manifest


@lru_cache(maxsize=_KEPT)
def _card(key: _Key) -> ToolCard:
    spec = key.spec
    return ToolCard(
        name=spec.name,
        description=spec.description,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
    )
