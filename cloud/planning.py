"""The trained planner of a server or a command: its model out of the artefact registry or the package."""

from datetime import UTC, datetime
from pathlib import Path

from cloud.specialists import Specialists
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
    """What a server plans with: follows promotions; a new model knows the agents before it takes over."""
    vocabulary = Tokens()

    def make(model: PlannerModel) -> Drafter:
        from conductor.policy.agent_cards import cards_of

        drafter = Drafter(model, vocabulary)
        drafter.prepare(tuple(cards_of(specialists.registry.serving()).values()))
        return drafter

    return PlannerSlot(make, registry=artefacts)
