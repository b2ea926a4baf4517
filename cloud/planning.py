"""The trained planner of a server or a command: its model out of the artefact registry or the package."""

from datetime import UTC, datetime
from pathlib import Path

from agents.registry import RegisteredAgent
from cloud.specialists import Specialists
from conductor.policy.agent_cards import cards_of
from conductor.policy.drafting import Drafter
from conductor.policy.model import PlannerModel
from conductor.policy.planner import PolicyPlanner
from conductor.policy.serving import PlannerSlot, planner_content
from conductor.policy.templates import Template, template_of
from conductor.policy.tokens import Tokens
from tools.artefacts.registry import FOLDER, ArtefactRegistry


def command_model(data: Path) -> PlannerModel:
    """The model for a command that plans once.

    Args:
        data: data directory; its promoted planner comes before the one that ships.

    Raises:
        ModelError: nobody answers for its bytes, or it is not there.
    """
    folder = data / FOLDER
    if not folder.is_dir():
        return PlannerModel(planner_content(None))
    with ArtefactRegistry(folder, clock=lambda: datetime.now(UTC)) as registry:
        return PlannerModel(planner_content(registry))


def policy_planner(specialists: Specialists, model: PlannerModel) -> PolicyPlanner:
    """A planner with one model, for a command."""
    vocabulary = Tokens()
    drafter = Drafter(model, vocabulary)
    return PolicyPlanner(lambda: drafter, revisions=specialists.planner, templates=templates_of(specialists))


def templates_of(specialists: Specialists) -> tuple[Template, ...]:
    """The plans that the packs wrote down: wiring for their agents."""
    return tuple(template_of(rule) for pack in specialists.packs for rule in (*pack.rules, *pack.revisions))


def policy_slot(specialists: Specialists, artefacts: ArtefactRegistry) -> PlannerSlot[Drafter]:
    """What a server plans with: follows promotions; agents are read when they come."""
    vocabulary = Tokens()
    registry = specialists.registry
    prepared: dict[int, tuple[RegisteredAgent, ...]] = {}

    def make(model: PlannerModel) -> Drafter:
        drafter = Drafter(model, vocabulary)
        keep_ready(drafter)
        return drafter

    def keep_ready(drafter: Drafter) -> None:
        serving = registry.serving()
        # A registry replaces the tuple as a whole whenever an agent comes or goes.
        if prepared.get(id(drafter)) is not serving:
            drafter.prepare(tuple(cards_of(serving).values()))
            prepared.clear()
            prepared[id(drafter)] = serving

    return PlannerSlot(make, registry=artefacts, keep_ready=keep_ready)
