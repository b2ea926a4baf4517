"""What a server knows how to do: the packs, their agents, how requests are understood and planned."""

from dataclasses import dataclass
from pathlib import Path

from agents.pack import Pack, build_registry, load_packs
from agents.registry import AgentRegistry
from agents.understanding import Understanding
from conductor.rules_planner import RulesPlanner


@dataclass(frozen=True, slots=True, kw_only=True)
class Specialists:
    """Everything that comes with the packs and needs no data directory; enough to plan without running."""

    packs: tuple[Pack, ...]
    registry: AgentRegistry
    planner: RulesPlanner
    """The rules of the packs; `cloud.planners` puts the trained planner beside it."""
    normalise: Understanding


def load_specialists(folder: Path | None = None) -> Specialists:
    """Read the packs of a folder, or those that ship with Podium.

    Raises:
        ManifestInvalid: a pack or agent breaks the rules; every violation is listed.
    """
    packs = load_packs(folder)
    return Specialists(
        packs=packs,
        registry=build_registry(packs),
        planner=RulesPlanner(
            [rule for pack in packs for rule in pack.rules], [rule for pack in packs for rule in pack.revisions]
        ),
        normalise=Understanding([pack.vocabulary for pack in packs]),
    )
