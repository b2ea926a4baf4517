"""Plans that somebody wrote down, as a source of wiring: which input of which agent comes from where.

The rules of packs and the plans that agents offer say how their agents belong together. The model decides which
agents a request needs; when they are agents of such a plan, their arguments come from it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.registry import RegisteredAgent
from conductor.plan import Plan, PlanFormatError
from conductor.rules_planner import offered_plan


class _Rule(Protocol):
    """A rule of a pack; see `agents.plan_rules`."""

    @property
    def steps(self) -> tuple[dict[str, object], ...]:
        """In the plan's JSON form."""
        ...

    @property
    def answer_step(self) -> int:
        """Index of the step that gives the answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A plan without a request."""

    plan: Plan
    answer: int

    @property
    def tools(self) -> tuple[str, ...]:
        """The agents of its steps."""
        return tuple(step.tool for step in self.plan.steps)


def template_of(rule: _Rule) -> Template:
    """The plan of a rule.

    Raises:
        PlanFormatError: it is none.
    """
    # Candidates may stand without a score there; which agents could do a step is no matter of wiring.
    steps = [{key: value for key, value in step.items() if key != "candidates"} for step in rule.steps]
    return Template(plan=Plan.from_json({"steps": steps}), answer=rule.answer_step)


class Offers:
    """Templates out of the plans that agents offer, read once for each manifest."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Template, ...]] = {}

    def of(self, agents: Iterable[RegisteredAgent]) -> tuple[Template, ...]:
        """The templates of the agents that serve; what is no plan is left out, `podium validate` tells of it."""
        known, self._known = self._known, {}
        for agent in agents:
            if agent.spec.plans:
                key = agent.manifest_sha256
                self._known[key] = known.get(key) or tuple(_offered(agent))
        return tuple(template for templates in self._known.values() for template in templates)


def _offered(agent: RegisteredAgent) -> Iterable[Template]:
    for offer in agent.spec.plans:
        try:
            plan, answer = offered_plan(offer)
        except PlanFormatError:
            continue
        yield Template(plan=plan, answer=answer)


def nearest(templates: Iterable[Template], tools: Sequence[str]) -> tuple[Template, ...]:
    """The templates that share agents with a plan, the most alike first."""
    wanted = Counter(tools)
    found = []
    for place, template in enumerate(templates):
        has = Counter(template.tools)
        if common := (has & wanted).total():
            found.append((-common / (has | wanted).total(), place, template))
    return tuple(template for _, _, template in sorted(found, key=lambda item: item[:2]))


def lacks(template: Template, tools: Sequence[str]) -> tuple[str, ...] | None:
    """The agents of a template that are not among `tools`; None when `tools` has others besides."""
    has, wanted = Counter(template.tools), Counter(tools)
    return None if wanted - has else tuple((has - wanted).elements())


def matched(template: Template, tools: Sequence[str]) -> Mapping[int, int]:
    """For each step of a template the place in `tools` of the same agent, occurrence by occurrence."""
    places: dict[str, list[int]] = {}
    for place, tool in enumerate(tools):
        places.setdefault(tool, []).append(place)
    found = {}
    for index, tool in enumerate(template.tools):
        if places.get(tool):
            found[index] = places[tool].pop(0)
    return found
