"""Fills the arguments of chosen steps: values from the request, options of the schema, results of other steps."""

from collections.abc import Sequence

from conductor.policy.cards import ToolCard
from conductor.policy.filling_decoding import Filled, FilledStep, Scores, decode
from conductor.policy.filling_fields import FieldIndex, ToolFields, read_tools
from conductor.policy.filling_inputs import JOINT, joint_inputs
from conductor.policy.parts import PartRunner
from conductor.policy.reading import Reading
from conductor.policy.tokens import Tokens

__all__ = ["FieldIndex", "Filled", "FilledStep", "Filler"]


REMEMBERED = 2_000
"""Tools whose fields are kept, about 35 kB each; the oldest are forgotten first."""


class Filler:
    """Decides what each argument of each step gets, all of them in one pass over the request."""

    def __init__(self, parts: PartRunner, tokens: Tokens) -> None:
        self._parts = parts
        self._tokens = tokens
        self._known: dict[str, ToolFields] = {}

    def index(self, cards: Sequence[ToolCard]) -> FieldIndex:
        """The fields of `cards`; those seen before cost nothing.

        Raises:
            OnnxError: the runtime failed.
        """
        fresh = {card.key: card for card in cards if card.key not in self._known}
        self._known.update(read_tools(self._parts, self._tokens, tuple(fresh.values())))
        index = FieldIndex(tools={card.key: self._known[card.key] for card in cards})
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return index

    def fill(self, reading: Reading, steps: Sequence[ToolCard], index: FieldIndex) -> tuple[FilledStep, ...]:
        """The arguments of `steps` in their order; references go to earlier and to later steps, never in a circle.

        Args:
            reading: The request.
            steps: The chosen tools; one may come several times.
            index: Holds all of them.

        Raises:
            OnnxError: the runtime failed.
        """
        tools = [index.tools[card.key] for card in steps]
        if not any(tool.inputs for tool in tools):
            return tuple(FilledStep(arguments={}) for _ in steps)
        spans = reading.tokens.spans[0]
        inputs = joint_inputs(reading.request, spans, reading.states, tools)
        found = self._parts.run(JOINT, {name: value[None] for name, value in inputs.arrays.items()})
        scores = Scores(**{name: found[name][0] for name in ("kind", "pointers", "option", "reference", "span")})
        return decode(reading.request, spans, inputs.items, scores, len(steps))
