"""What a model decides on requests whose right plan is known: the plans of its search, and the arguments it fills.

Calibration is fitted on these observations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from conductor.evaluation.scoring import normalised
from conductor.plan import Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.confidence import argument_features
from conductor.policy.filling import Filled, FilledStep, Filler
from conductor.policy.multilingual import multilingual_memory, reads_english
from conductor.policy.parts import Floats, PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import NOTHING, Extra, Hypothesis, Selector
from conductor.policy.tokens import Tokens
from conductor.training.examples import Example, GoldStep

Links = frozenset[tuple[str, str]]


@dataclass(slots=True, kw_only=True)
class Observed:
    """Decisions of a kind: their features, whether they were right, and the request they belong to."""

    features: list[dict[str, float]] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def add(self, features: dict[str, float], right: bool, group: str) -> None:
        """One more decision."""
        self.features.append(features)
        self.right.append(right)
        self.groups.append(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What the search found for an example."""

    example: Example
    hypotheses: tuple[Hypothesis, ...]

    @property
    def group(self) -> str:
        """The request; the same one may be planned several times."""
        return f"{self.example.source}/{self.example.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All that was observed."""

    searches: list[Searched] = field(default_factory=list)
    arguments: Observed = field(default_factory=Observed)


class Drafting(Protocol):
    """What is observed: a model's plans and arguments."""

    def plans(self, example: Example, links: Links | None) -> Sequence[Hypothesis]:
        """Ways to serve the request, best first."""
        ...

    def filled(self, example: Example, steps: Sequence[ToolCard]) -> Sequence[FilledStep]:
        """The arguments of `steps`; () where it fills none."""
        ...


class ModelDrafting:
    """Plans and arguments of parts, as the planner of a server makes them."""

    def __init__(
        self,
        parts: PartRunner,
        tokens: Tokens,
        *,
        fills: bool = True,
        foreign: Callable[[str], Floats] = multilingual_memory,
    ) -> None:
        """Use a model.

        Args:
            parts: the model.
            tokens: the vocabulary.
            fills: whether the model has the parts of the filler.
            foreign: reads requests that the English encoder cannot.
        """
        self._parts = parts
        self._tokens = tokens
        self._fills = fills
        self._foreign = foreign
        self._selector = Selector(parts, tokens)
        self._filler = Filler(parts, tokens)

    def plans(self, example: Example, links: Links | None) -> Sequence[Hypothesis]:
        """See `Drafting.plans`.

        Raises:
            OnnxError: the runtime failed.
        """
        extra = NOTHING
        if not reads_english(example.request):
            extra = Extra(multilingual=self._foreign(example.request))
        reading = read(self._parts, self._tokens, example.request)
        return self._selector.plans(reading, self._selector.index(example.tools), links=links, extra=extra)

    def filled(self, example: Example, steps: Sequence[ToolCard]) -> Sequence[FilledStep]:
        """See `Drafting.filled`.

        Raises:
            OnnxError: the runtime failed.
        """
        if not self._fills or not any(card.inputs for card in steps):
            return ()
        reading = read(self._parts, self._tokens, example.request)
        return self._filler.fill(reading, steps, self._filler.index(steps))


class Observer:
    """Has examples planned and notes what was right."""

    def __init__(self, drafting: Drafting) -> None:
        """Begin with nothing seen."""
        self._drafting = drafting
        self.seen = Observations()

    def plan(self, example: Example, *, links: Links | None = None) -> None:
        """Note what the search finds.

        Raises:
            OnnxError: the runtime failed.
        """
        found = tuple(self._drafting.plans(example, links))
        self.seen.searches.append(Searched(example=example, hypotheses=found))

    def fill(self, example: Example) -> None:
        """Note how sure the filler was of each argument when the right tools are given.

        Raises:
            OnnxError: the runtime failed.
        """
        cards = {card.name: card for card in reversed(example.tools)}
        steps = [cards[step.tool] for step in example.steps]
        for gold, found in zip(example.steps, self._drafting.filled(example, steps), strict=False):
            for name, value in found.arguments.items():
                self.seen.arguments.add(
                    argument_features(value.confidence),
                    _right(value, name, gold, example.steps, steps),
                    f"{example.source}/{example.id}",
                )


def _right(value: Filled, name: str, gold: GoldStep, right: Sequence[GoldStep], steps: Sequence[ToolCard]) -> bool:
    if gold.accept is not None:
        options = [normalised(option) for option in gold.accept.get(name, ())]
        return isinstance(value.argument, Literal) and normalised(value.argument.value) in options
    wanted = gold.arguments.get(name)
    if isinstance(wanted, dict) and "step" in wanted:
        argument = value.argument
        return (
            isinstance(argument, StepRef)
            and steps[argument.step].name == right[wanted["step"]].tool
            and argument.field == wanted.get("field")
        )
    return (
        isinstance(value.argument, Literal)
        and name in gold.arguments
        and (normalised(value.argument.value) == normalised(wanted))
    )


def without_its_tools(example: Example) -> Example:
    """The same request where the tools it needs are not registered; the right plan is empty."""
    left = tuple(card for card in example.tools if card.name not in example.tool_set)
    return Example(source=example.source, id=example.id, request=example.request, tools=left, steps=())
