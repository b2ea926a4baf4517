"""Marks of the selection on examples: tools, their order, and whether the set is right."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from conductor.policy.multilingual import multilingual_memory, reads_english
from conductor.policy.parts import PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import NOTHING, Extra, Hypothesis, Selector
from conductor.policy.tokens import Tokens
from conductor.training.examples import Example


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What was chosen for an example."""

    example: Example
    hypotheses: tuple[Hypothesis, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the best hypothesis."""
        return self.named(self.hypotheses[0])

    def named(self, hypothesis: Hypothesis) -> tuple[str, ...]:
        """Names of a hypothesis."""
        return tuple(self.example.tools[at].name for at in hypothesis.tools)


def choose(
    parts: PartRunner,
    tokens: Tokens,
    examples: Sequence[Example],
    *,
    links: frozenset[tuple[str, str]] | None = None,
    beam: int = 8,
) -> tuple[Chosen, ...]:
    """Plans for `examples`; those that the encoder does not read are read as sentences."""
    selector = Selector(parts, tokens)
    found = []
    for example in examples:
        extra = NOTHING
        if not reads_english(example.request):
            extra = Extra(multilingual=multilingual_memory(example.request))
        hypotheses = selector.plans(
            read(parts, tokens, example.request),
            selector.index(example.tools),
            links=links,
            extra=extra,
            beam=beam,
        )
        found.append(Chosen(example=example, hypotheses=hypotheses))
    return tuple(found)


def mean_marks(chosen: Sequence[Chosen]) -> Mapping[str, float]:
    """Means over requests in percent: F1 of the tools, F1 of the links of the chain, right sets."""
    rows = []
    for item in chosen:
        gold = [step.tool for step in item.example.steps]
        deps = {(gold[at], step.tool) for step in item.example.steps for at in step.depends_on}
        tools = item.tools
        node = _f1(set(tools), set(gold))
        rows.append((node, _f1(set(pairwise(tools)), deps), float(node >= 0.99)))
    values = np.array(rows).mean(axis=0) * 100 if rows else np.zeros(3)
    return {"node_f1": float(values[0]), "link_f1": float(values[1]), "accuracy": float(values[2])}


def tool_marks(chosen: Sequence[Chosen]) -> Mapping[str, float]:
    """Over all requests together in percent: F1 of the tools; and right collections, repetitions counted."""
    hit = wrong = missed = exact = 0
    for item in chosen:
        gold, tools = item.example.tool_set, set(item.tools)
        hit, wrong, missed = hit + len(gold & tools), wrong + len(tools - gold), missed + len(gold - tools)
        exact += sorted(item.tools) == sorted(step.tool for step in item.example.steps)
    return {
        "tool_f1": 200.0 * hit / max(1, 2 * hit + wrong + missed),
        "exact": 100.0 * exact / max(1, len(chosen)),
    }


def _f1(found: Set[object], gold: Set[object]) -> float:
    if not found and not gold:
        return 1.0
    return 2.0 * len(found & gold) / (len(found) + len(gold))
