"""A model of plans that says what a test wants it to say, and one that says anything at all."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from conductor.plan import Argument, Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.drafting import Considered, Drafter, Links
from conductor.policy.filling import Filled, FilledStep
from conductor.policy.parts import Array
from conductor.policy.reading import Reading
from conductor.policy.selecting import NOTHING, Extra, Hypothesis
from conductor.policy.selecting_flows import FieldWords
from conductor.policy.selecting_index import KEPT_TOKENS, TOKEN, ToolIndex
from conductor.policy.tokens import TokenBatch
from conductor.thresholds import PlanThresholds

Script = Callable[[str, Sequence[ToolCard]], Sequence[Sequence[str]]]
"""From the request and the tools to the plans, best first, each as names of tools."""


class NoModel:
    """Stands where the model would; nothing is computed."""

    properties: Mapping[str, str] = {}
    metadata: Mapping[str, Any] = {}
    version = "scripted"

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Never called."""
        raise AssertionError(f"a scripted drafter ran part {part}")


class ScriptedDrafter(Drafter):
    """Considers what its script says, and fills what it is told to."""

    def __init__(
        self,
        script: Script,
        fills: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        thresholds: PlanThresholds | None = None,
    ) -> None:
        """Begin with nothing considered.

        Args:
            script: The plans.
            fills: For each tool the literals of its arguments.
            thresholds: What its model would have been calibrated to.
        """
        self.model = NoModel()
        self.thresholds = thresholds or PlanThresholds()
        self.lock = threading.RLock()
        self._script = script
        self._fills = fills or {}
        self.texts: list[str] = []
        self.prepared: list[tuple[str, ...]] = []
        self.extras: list[Extra] = []

    def index(self, cards: Sequence[ToolCard]) -> ToolIndex:
        """The cards without vectors."""
        count = len(cards)
        return ToolIndex(
            cards=tuple(cards),
            vectors=np.zeros((count, 1), dtype=np.float32),
            tokens=np.zeros((count, KEPT_TOKENS, TOKEN), dtype=np.float32),
            mask=np.zeros((count, KEPT_TOKENS), dtype=np.float32),
            fields=tuple(FieldWords.of(card) for card in cards),
        )

    def prepare(self, cards: Sequence[ToolCard]) -> None:
        """Note which tools there are."""
        self.prepared.append(tuple(card.name for card in cards))

    def consider(
        self, request: str, index: ToolIndex, *, links: Links | None = None, extra: Extra = NOTHING
    ) -> Considered:
        """What the script says."""
        self.texts.append(request)
        self.extras.append(extra)
        places = {card.name: place for place, card in reversed(list(enumerate(index.cards)))}
        plans = [
            tuple(places[name] for name in names)
            for names in self._script(request, index.cards)
            if all(name in places for name in names)
        ]
        found = tuple(_hypothesis(plan, rank) for rank, plan in enumerate(plans or [()]))
        return Considered(reading=_reading(request), index=index, hypotheses=found)

    def fill(self, considered: Considered, steps: Sequence[ToolCard]) -> tuple[FilledStep, ...]:
        """What it was told to fill in."""
        return tuple(
            FilledStep(
                arguments={
                    name: Filled(argument=_argument(value), confidence=0.9)
                    for name, value in self._fills.get(card.name, {}).items()
                }
            )
            for card in steps
        )

    def sure_of(self, considered: Considered, chosen: int) -> float:
        """Less with every rank."""
        return 0.9 / (chosen + 1)

    def sure_of_steps(self, considered: Considered, chosen: int) -> tuple[float, ...]:
        """As sure as of the whole."""
        return tuple(0.9 for _ in considered.hypotheses[chosen].tools)


class WildDrafter(ScriptedDrafter):
    """Says anything at all: what a model could say at its very worst."""

    def __init__(self, dice: random.Random) -> None:
        """Throw `dice` for everything."""
        super().__init__(self._any_plans)
        self._dice = dice

    def _any_plans(self, request: str, cards: Sequence[ToolCard]) -> list[list[str]]:
        dice = self._dice
        names = [card.name for card in cards]
        return [
            [dice.choice(names) for _ in range(dice.choice((0, 1, 1, 2, 3, 5, 16)))] if names else []
            for _ in range(dice.randint(1, 6))
        ]

    def fill(self, considered: Considered, steps: Sequence[ToolCard]) -> tuple[FilledStep, ...]:
        """Arguments that there are or not, of right and wrong types, references to anywhere."""
        dice = self._dice
        found = []
        for card in steps:
            names = [*card.inputs, *(["there_is_no_such_thing"] if dice.random() < 0.1 else [])]
            arguments = {
                name: Filled(argument=self._any_argument(steps), confidence=dice.random())
                for name in names
                if dice.random() < 0.7
            }
            found.append(FilledStep(arguments=arguments))
        return tuple(found)

    def _any_argument(self, steps: Sequence[ToolCard]) -> Argument:
        dice = self._dice
        if dice.random() < 0.4:
            place = dice.randint(-1, len(steps))
            outputs = list(steps[place].outputs) if 0 <= place < len(steps) else []
            return StepRef(step=place, field=dice.choice([*outputs, "nothing", "", "a.b.0"]))
        return Literal(value=dice.choice(["text", "", 3, -1.5, True, None, [], ["a"], {}, {"a": 1}, "x" * 300]))

    def sure_of(self, considered: Considered, chosen: int) -> float:
        """Any probability."""
        return self._dice.random()


def _argument(value: Any) -> Argument:
    return value if isinstance(value, StepRef) else Literal(value=value)


def _hypothesis(tools: tuple[int, ...], rank: int) -> Hypothesis:
    return Hypothesis(
        tools=tools,
        log_probability=-float(rank),
        candidates=tuple(((tool, 0.8),) for tool in tools),
        step_log_probabilities=(-0.1,) * (len(tools) + 1),
        stop_probabilities=(0.1,) * len(tools) + (0.9,),
        relevance=(1.0,) * len(tools),
    )


def _reading(request: str) -> Reading:
    empty = np.zeros((1, 0), dtype=np.int64)
    tokens = TokenBatch(ids=empty, mask=empty, spans=((),))
    return Reading(request=request, tokens=tokens, states=np.zeros((0, 384), dtype=np.float32))
