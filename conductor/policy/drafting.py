"""Requests to drafts: which tools in which order, with which arguments, and how sure the model is of them.

A draft knows nothing of a registry, roles or verification; the planner and batch planning make plans out of it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from conductor.policy.cards import ToolCard
from conductor.policy.confidence import Confidence
from conductor.policy.filling import FilledStep, Filler
from conductor.policy.multilingual import multilingual_memory, reads_english
from conductor.policy.parts import Floats, PartRunner
from conductor.policy.reading import Reading, read
from conductor.policy.selecting import NOTHING, Extra, Hypothesis, Selector
from conductor.policy.selecting_index import ToolIndex
from conductor.policy.tokens import Tokens
from conductor.thresholds import model_thresholds
from tools.onnx.memory import give_back

Links = frozenset[tuple[str, str]]
"""Names of tools of which the second may follow the first."""
_INDEXES = 8
"""Sets of tools whose index is kept: those that callers of different roles see."""


class PlanningModel(PartRunner, Protocol):
    """The parts with what is known of them; `PlannerModel`, or in training torch."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The file's metadata; the parameters of the confidence are among them."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the export said of it: seeds, data, whether it was trained on feedback."""
        ...

    @property
    def version(self) -> str:
        """As the export named it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """What the model thinks of a request."""

    reading: Reading
    index: ToolIndex
    hypotheses: tuple[Hypothesis, ...]
    """Best first; never empty. One without tools says that nothing here can serve the request."""

    def cards(self, chosen: int) -> tuple[ToolCard, ...]:
        """The tools of one hypothesis in its order."""
        return tuple(self.index.cards[place] for place in self.hypotheses[chosen].tools)


class Drafter:
    """Drafts plans with one model; for one thread at a time (hold `lock`), while the model may be shared."""

    def __init__(
        self,
        model: PlanningModel,
        tokens: Tokens,
        *,
        foreign: Callable[[str], Floats] = multilingual_memory,
    ) -> None:
        """Begin with no tool known.

        Args:
            model: the parts; safe to share.
            tokens: the vocabulary; safe to share.
            foreign: vectors of a request that the English encoder cannot read.

        Raises:
            ConfidenceParametersInvalid: the model's are none.
            PlanThresholdsInvalid: its thresholds are none.
        """
        self.model = model
        self.lock = threading.RLock()
        """To be held by whoever shares this with other threads; `prepare` holds it by itself."""
        self.confidence = Confidence.from_metadata(model.properties)
        self.thresholds = model_thresholds(model.properties, accept_at=self.confidence.accept_at)
        """How sure the model must be, as it was calibrated."""
        self._tokens = tokens
        self._foreign = foreign
        self._read_foreign = False
        self._selector = Selector(model, tokens)
        self._filler = Filler(model, tokens)
        self._indexes: dict[tuple[str, ...], ToolIndex] = {}

    @property
    def heeds_feedback(self) -> bool:
        """Whether the model was trained to be told what became of earlier plans."""
        return self.model.metadata.get("feedback") is True

    def index(self, cards: Sequence[ToolCard]) -> ToolIndex:
        """What there is to choose from; tools that were seen before cost nothing.

        Raises:
            OnnxError: the runtime failed.
        """
        key = tuple(card.key for card in cards)
        found = self._indexes.pop(key, None)
        if found is None:
            found = self._selector.index(cards)
            give_back()
        self._indexes[key] = found
        if len(self._indexes) > _INDEXES:
            del self._indexes[next(iter(self._indexes))]
        return found

    def prepare(self, cards: Sequence[ToolCard]) -> None:
        """Compute everything of tools that a request would have to wait for.

        Raises:
            OnnxError: the runtime failed.
        """
        with self.lock:
            self.index(cards)
            self._filler.index([card for card in cards if card.inputs])
        give_back()

    def consider(
        self, request: str, index: ToolIndex, *, links: Links | None = None, extra: Extra = NOTHING
    ) -> Considered:
        """The ways to serve a request.

        Args:
            request: The text; see `conductor.policy.requests`.
            index: The tools.
            links: Which tool may follow which; None when nothing is known.
            extra: What became of earlier plans.

        Raises:
            OnnxError: the runtime failed.
        """
        reading = read(self.model, self._tokens, request)
        if not reads_english(request):
            extra = Extra(multilingual=self._foreign_memory(request), feedback=extra.feedback)
        found = self._selector.plans(reading, index, links=links, extra=extra)
        settled = self.confidence.settled(found, tools=len(index.cards))
        return Considered(reading=reading, index=index, hypotheses=settled)

    def _foreign_memory(self, request: str) -> Floats:
        found = self._foreign(request)
        if not self._read_foreign:
            self._read_foreign = True
            give_back()  # the first such request has loaded an encoder
        return found

    def fill(self, considered: Considered, steps: Sequence[ToolCard]) -> tuple[FilledStep, ...]:
        """The arguments of `steps` that the request or other steps give.

        Raises:
            OnnxError: the runtime failed.
        """
        return self._filler.fill(considered.reading, steps, self._filler.index(steps))

    def sure_of(self, considered: Considered, chosen: int) -> float:
        """The probability that a hypothesis is right."""
        tools = len(considered.index.cards)
        return self.confidence.of_plan(considered.hypotheses, chosen, tools=tools)

    def sure_of_steps(self, considered: Considered, chosen: int) -> tuple[float, ...]:
        """The probability of each step that its tool belongs into the plan."""
        tools = len(considered.index.cards)
        return self.confidence.of_steps(considered.hypotheses, chosen, tools=tools)


def has_schemas(cards: Sequence[ToolCard]) -> bool:
    """Whether any tool says what it takes or returns; without, the order of steps is all there is."""
    return any(card.inputs or card.outputs for card in cards)
