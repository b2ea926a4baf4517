"""From chosen agents to a plan: where each argument comes from, and which agents are needed besides.

In this order: a plan that somebody wrote down for these agents, fields of the request that only a schema can name,
what the model filled in, fields of the request by name, another step's output of that name, the schema's own
default. An input that is required and that nothing fills brings in a further agent that can give it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.registry import RegisteredAgent
from conductor.paths import PathMissing, lookup
from conductor.plan import Argument, Literal, RequestRef, Step, StepRef
from conductor.policy.filling import FilledStep
from conductor.policy.fitting import accepts, default_of, edge_fits, only_in_schema
from conductor.policy.templates import Template, lacks, matched, nearest

_MOST_ADDED = 12
"""Agents that are brought in besides the chosen ones."""
_SURE = 0.6
"""From here on what the model read in the request comes before the request's field of that name."""
_MOST_OF = 0.6
"""With this share of the agents of a plan that was written down, the others are taken along."""
_ANYTHING = frozenset({"confidence_score", "sources"})
"""Outputs that every agent has: a name that says nothing."""


class Unfilled(Exception):
    """Required inputs that nothing fills; the planner answers it, by another plan or a question."""

    def __init__(self, inputs: Sequence[str]) -> None:
        super().__init__(", ".join(inputs))
        self.inputs = tuple(inputs)
        """As `agent.input`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """A plan with the index of the step that gives the answer."""

    steps: tuple[Step, ...]
    answer: int
    origin: tuple[int | None, ...]
    """For each step the place of its agent among the chosen ones; None for one that was brought in."""


@dataclass(slots=True, kw_only=True)
class _Node:
    agent: RegisteredAgent
    chosen: int | None
    place: float
    filled: FilledStep | None = None
    arguments: dict[str, Argument] = field(default_factory=dict)
    """References are to places in the list of nodes until the plan is put in order."""
    after: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.agent.spec.name


class Wiring:
    """Wires the agents of one request."""

    def __init__(
        self,
        request: Mapping[str, Any],
        allowed: Sequence[RegisteredAgent],
        templates: Iterable[Template],
    ) -> None:
        """Wire for one request.

        Args:
            request: The normalised request.
            allowed: Agents that may be brought in.
            templates: Plans that somebody wrote down.
        """
        self._request = request
        self._allowed = {agent.spec.name: agent for agent in allowed}
        self._templates = tuple(templates)
        self._fits: dict[tuple[str, str, str], bool] = {}

    def plans(self, chosen: Sequence[RegisteredAgent], filled: Sequence[FilledStep]) -> Iterator[Wired]:
        """Ways to wire the chosen agents, the surest first.

        Args:
            chosen: The agents in their order.
            filled: What the model made of their arguments; references are to other places, never in a circle.

        Raises:
            Unfilled: no way gives every required input something.
        """
        yield from self._of_written(chosen)
        yield self._assembled(chosen, filled)

    def _of_written(self, agents: Sequence[RegisteredAgent]) -> Iterator[Wired]:
        """Plans that were written down and have these agents and few others; records and checks come along."""
        names = [agent.spec.name for agent in agents]
        for template in nearest(self._templates, names):
            lacking = lacks(template, names)
            if lacking is None or len(names) < _MOST_OF * len(template.tools):
                continue
            others = [self._allowed[name] for name in lacking if name in self._allowed]
            wired = self._as_written(template, [*agents, *others]) if len(others) == len(lacking) else None
            if wired is not None:
                yield replace(wired, origin=tuple(_chosen(place, len(agents)) for place in wired.origin))

    def _as_written(self, template: Template, chosen: Sequence[RegisteredAgent]) -> Wired | None:
        places = matched(template, [agent.spec.name for agent in chosen])
        steps: list[Step] = []
        for index, step in enumerate(template.plan.steps):
            agent = chosen[places[index]]
            required = agent.spec.input_schema.get("required", ())
            arguments: dict[str, Argument] = {}
            for name, argument in step.arguments.items():
                if not isinstance(argument, RequestRef) or self._fit(agent, name, argument):
                    arguments[name] = argument
                elif name in required:
                    return None
            steps.append(Step(tool=step.tool, arguments=arguments, depends_on=step.depends_on))
        origin = tuple(places[index] for index in range(len(steps)))
        return Wired(steps=tuple(steps), answer=template.answer, origin=origin)

    def _assembled(self, chosen: Sequence[RegisteredAgent], filled: Sequence[FilledStep]) -> Wired:
        nodes = [
            _Node(agent=agent, chosen=place, place=float(place), filled=filled[place])
            for place, agent in enumerate(chosen)
        ]
        self._need_answer(nodes)
        missing: list[str] = []
        done = 0
        while done < len(nodes):
            self._fill(nodes, done, missing)
            self._require(nodes, done)
            done += 1
        if missing:
            raise Unfilled(missing)
        # Completed, they may be the agents of a plan that was written down: then it is that plan.
        for written in self._of_written([node.agent for node in nodes]):
            origin = (nodes[place].chosen if place is not None else None for place in written.origin)
            return replace(written, origin=tuple(origin))
        _writes_last(nodes)
        return _ordered(nodes)

    def _need_answer(self, nodes: list[_Node]) -> None:
        """Bring in an agent that writes the answer when none of the chosen ones does."""
        if any("markdown" in node.agent.contract.output_schema.get("properties", {}) for node in nodes):
            return
        names = [node.name for node in nodes]
        for template in nearest(self._templates, names):
            writer = self._allowed.get(template.tools[template.answer])
            if writer is not None and writer.spec.side_effects != "write":
                nodes.append(_Node(agent=writer, chosen=None, place=float(len(nodes))))
                return

    def _fill(self, nodes: list[_Node], at: int, missing: list[str]) -> None:
        node = nodes[at]
        required = node.agent.spec.input_schema.get("required", ())
        templates = nearest(self._templates, [item.name for item in nodes])
        for name, value in node.agent.spec.input_schema.get("properties", {}).items():
            schema = value if isinstance(value, Mapping) else {}
            needed = name in required
            argument = self._written(nodes, at, name, templates) or self._read(nodes, at, name, schema, needed)
            if argument is None and needed:
                argument = self._given_by_another(nodes, at, name) or self._brought_in(nodes, at, name, templates)
            if argument is None and needed:
                argument = default_of(schema)
            if argument is not None:
                node.arguments[name] = argument
                if isinstance(argument, StepRef):
                    node.after.add(argument.step)
            elif needed:
                missing.append(f"{node.name}.{name}")

    def _written(self, nodes: list[_Node], at: int, name: str, templates: Sequence[Template]) -> Argument | None:
        """Where a plan that somebody wrote down takes an input from, if that is there."""
        names = [node.name for node in nodes]
        for template in templates:
            places = matched(template, names)
            index = next((index for index, place in places.items() if place == at), None)
            if index is None:
                continue
            argument = template.plan.steps[index].arguments.get(name)
            if isinstance(argument, StepRef):
                source = places.get(argument.step)
                if source is not None and not _leads_to(nodes, at, source):
                    return StepRef(step=source, field=argument.field)
            elif argument is not None and self._fit(nodes[at].agent, name, argument):
                return argument
        return None

    def _read(
        self, nodes: list[_Node], at: int, name: str, schema: Mapping[str, Any], needed: bool
    ) -> Argument | None:
        node = nodes[at]
        reference = RequestRef(path=name)
        named = needed and name in self._request and self._fit(node.agent, name, reference)
        filled = node.filled.arguments.get(name) if node.filled is not None else None
        argument = filled.argument if filled is not None else None
        if argument is not None and not self._usable(nodes, at, name, argument):
            argument = None
        if named and (argument is None or filled is None or filled.confidence < _SURE or only_in_schema(schema)):
            return reference
        return argument

    def _usable(self, nodes: list[_Node], at: int, name: str, argument: Argument) -> bool:
        if isinstance(argument, StepRef):
            return (
                0 <= argument.step < len(nodes)
                and not _leads_to(nodes, at, argument.step)
                and edge_fits(nodes[argument.step].agent, argument.field, nodes[at].agent, name)
            )
        return self._fit(nodes[at].agent, name, argument)

    def _given_by_another(self, nodes: list[_Node], at: int, name: str) -> Argument | None:
        """The output of that name of another step, the nearest before it first."""
        if name in _ANYTHING:
            return None
        others = sorted(
            (place for place in range(len(nodes)) if place != at),
            key=lambda place: (
                nodes[place].place > nodes[at].place,
                abs(nodes[place].place - nodes[at].place),
            ),
        )
        for place in others:
            if name not in nodes[place].agent.spec.output_schema.get("properties", {}):
                continue
            if not _leads_to(nodes, at, place) and edge_fits(nodes[place].agent, name, nodes[at].agent, name):
                return StepRef(step=place, field=name)
        return None

    def _brought_in(
        self, nodes: list[_Node], at: int, name: str, templates: Sequence[Template]
    ) -> Argument | None:
        """A further agent that gives an input: out of a plan that was written down, or one whose output fits."""
        if sum(node.chosen is None for node in nodes) >= _MOST_ADDED:
            return None
        for source, output in self._sources(nodes, at, name, templates):
            if edge_fits(source, output, nodes[at].agent, name):
                nodes.append(_Node(agent=source, chosen=None, place=nodes[at].place - 0.5))
                return StepRef(step=len(nodes) - 1, field=output)
        return None

    def _sources(
        self, nodes: list[_Node], at: int, name: str, templates: Sequence[Template]
    ) -> Iterator[tuple[RegisteredAgent, str]]:
        there = {node.name for node in nodes}
        for template in templates:
            for step in template.plan.steps:
                argument = step.arguments.get(name)
                if step.tool != nodes[at].name or not isinstance(argument, StepRef):
                    continue
                if not 0 <= argument.step < len(template.tools):
                    continue
                source = self._allowed.get(template.tools[argument.step])
                if source is None or source.spec.name in there:
                    continue
                # Nobody asked for what it would change.
                if source.spec.side_effects != "write":
                    yield source, argument.field
        if name in _ANYTHING:
            return
        fitting = [
            agent
            for agent in self._allowed.values()
            if agent.spec.name not in there
            and agent.spec.side_effects != "write"
            and name in agent.spec.output_schema.get("properties", {})
        ]
        for agent in sorted(fitting, key=lambda agent: (agent.spec.cost, agent.spec.name)):
            yield agent, name

    def _require(self, nodes: list[_Node], at: int) -> None:
        """Have the capabilities that an agent requires come before it."""
        for tag in nodes[at].agent.spec.requires:
            bringing = [
                place
                for place, node in enumerate(nodes)
                if place != at and tag in node.agent.spec.capability_tags and not _leads_to(nodes, at, place)
            ]
            if bringing:
                nodes[at].after.add(max(bringing, key=lambda place: nodes[place].place <= nodes[at].place))
                continue
            able = [
                agent
                for agent in self._allowed.values()
                if tag in agent.spec.capability_tags and agent.spec.side_effects != "write"
            ]
            if able and sum(node.chosen is None for node in nodes) < _MOST_ADDED:
                agent = min(able, key=lambda agent: (agent.spec.cost, agent.spec.name))
                nodes.append(_Node(agent=agent, chosen=None, place=nodes[at].place - 0.5))
                nodes[at].after.add(len(nodes) - 1)

    def _fit(self, agent: RegisteredAgent, name: str, argument: Argument) -> bool:
        """Whether a value at hand is one that the agent takes."""
        if isinstance(argument, RequestRef):
            key = (agent.spec.name, name, argument.path)
            if key not in self._fits:
                try:
                    value = lookup(self._request, argument.path)
                except PathMissing:
                    value = None
                self._fits[key] = value is not None and accepts(agent, name, value)
            return self._fits[key]
        return not isinstance(argument, Literal) or accepts(agent, name, argument.value)


def _chosen(place: int | None, count: int) -> int | None:
    return place if place is not None and place < count else None


def _leads_to(nodes: Sequence[_Node], start: int, goal: int) -> bool:
    """Whether `goal` is `start` or waits for it."""
    waiting, seen = [goal], {goal}
    while waiting:
        place = waiting.pop()
        if place == start:
            return True
        fresh = nodes[place].after - seen
        seen |= fresh
        waiting.extend(fresh)
    return False


def _writes_last(nodes: list[_Node]) -> None:
    """A step that changes something waits for all that the request names before it."""
    for at, node in enumerate(nodes):
        if node.agent.spec.side_effects != "write":
            continue
        for place, other in enumerate(nodes):
            if other.place < node.place and not _leads_to(nodes, at, place):
                node.after.add(place)


def _ordered(nodes: list[_Node]) -> Wired:
    """The nodes as steps, each after those that it waits for and otherwise in the order of the request."""
    order: list[int] = []
    left = set(range(len(nodes)))
    while left:
        ready = [place for place in left if not nodes[place].after & left]
        order.append(min(ready, key=lambda place: (nodes[place].place, place)))
        left.discard(order[-1])
    moved = {place: index for index, place in enumerate(order)}
    steps = []
    for place in order:
        node = nodes[place]
        arguments = {
            name: StepRef(step=moved[item.step], field=item.field) if isinstance(item, StepRef) else item
            for name, item in node.arguments.items()
        }
        depends_on = tuple(sorted(moved[before] for before in node.after))
        steps.append(Step(tool=node.name, arguments=arguments, depends_on=depends_on))
    origin = tuple(nodes[place].chosen for place in order)
    return Wired(steps=tuple(steps), answer=_answer(nodes, order), origin=origin)


def _answer(nodes: Sequence[_Node], order: Sequence[int]) -> int:
    """The last step that writes an answer and that nothing waits for, or else the last that writes one."""
    awaited = {before for node in nodes for before in node.after}
    writing = [
        index
        for index, place in enumerate(order)
        if "markdown" in nodes[place].agent.contract.output_schema.get("properties", {})
    ]
    free = [index for index in writing if order[index] not in awaited]
    return (free or writing or [len(order) - 1])[-1]
