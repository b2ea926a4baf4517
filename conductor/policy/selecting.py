"""Which tools a request needs and in which order, chosen by the trained model out of whatever there is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conductor.policy.cards import ToolCard
from conductor.policy.parts import Array, Floats, PartRunner
from conductor.policy.reading import Reading
from conductor.policy.selecting_choice import best_first
from conductor.policy.selecting_flows import FLOWS, flows
from conductor.policy.selecting_index import Indexer, ToolIndex
from conductor.policy.selecting_paths import Entries, Path, follow
from conductor.policy.tokens import Tokens

SHORT_LIST = 32
"""Tools that are looked at closely."""
HIDDEN = 256
"""Length of a row of memory."""
PLACE = 5
"""Which of the features of relevance says where in the request a tool is spoken of."""
PLACE_SCALE = 5.0
"""That feature at the request's end."""
BEAM = 8
VERDICTS = ("ok", "failed", "unavailable", "irrelevant", "missing")
"""What became of a step of an earlier plan."""
_CANDIDATES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A step of an earlier plan for the same request, and what became of it."""

    tool: int
    """Its place in the index."""
    verdict: str
    """One of `VERDICTS`; "missing" names a tool that the plan lacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What the model is told besides the request's own word pieces."""

    multilingual: Floats | None = None
    """[k, 512]: sentence vectors of the whole request (row 0) and its clauses, in the place of its pieces."""
    feedback: tuple[Verdict, ...] = ()


NOTHING = Extra()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One way to serve the request.

    For reinforcement learning, step t is the state (request, index, `tools[:t]`), the action `tools[t]` (STOP
    after the last) and its log-probability `step_log_probabilities[t]`.
    """

    tools: tuple[int, ...]
    """Places in the index, in order; a tool may occur again. Empty: nothing here can serve the request."""
    log_probability: float
    """Of this collection of tools, summed over the orders that were found."""
    candidates: tuple[tuple[tuple[int, float], ...], ...]
    """For each step the best choices with their probabilities, best first."""
    step_log_probabilities: tuple[float, ...]
    """Of each choice in this order, STOP's at the end."""
    stop_probabilities: tuple[float, ...]
    """At each step and at the end, how sure the model was that the plan is complete."""
    relevance: tuple[float, ...]
    """For each step the logit that its tool is in the plan at all."""


class Selector:
    """Chooses tools; see the module."""

    def __init__(self, parts: PartRunner, tokens: Tokens) -> None:
        """Use the model `parts`."""
        self._parts = parts
        self._indexer = Indexer(parts, tokens)

    def index(self, cards: Sequence[ToolCard]) -> ToolIndex:
        """What there is to choose from; tools that were seen before cost nothing.

        Raises:
            OnnxError: the runtime failed.
        """
        return self._indexer.index(cards)

    def plans(
        self,
        reading: Reading,
        index: ToolIndex,
        *,
        links: frozenset[tuple[str, str]] | None = None,
        extra: Extra = NOTHING,
        beam: int = BEAM,
    ) -> tuple[Hypothesis, ...]:
        """Plans, the one first of which most is expected; each collection of tools once, in its likeliest order.

        Args:
            reading: the request.
            index: the tools.
            links: names of tools of which the second may follow the first; None when nothing is known.
            extra: what else is known of the request.
            beam: how many paths are followed.

        Raises:
            OnnxError: the runtime failed.
        """
        if not index.cards:
            return (_empty(),)
        entries, listed = self._entries(reading, index, links, extra)
        paths = follow(self._parts, entries, beam)
        return _hypotheses(paths, entries, listed)

    def _entries(
        self, reading: Reading, index: ToolIndex, links: frozenset[tuple[str, str]] | None, extra: Extra
    ) -> tuple[Entries, NDArray[np.int64]]:
        read, memory = self._memory(reading, index, extra)
        features = self._parts.run(
            "select_relevance",
            {
                "vector": read["vector"],
                "tokens": read["tokens"],
                "weights": read["weights"],
                "tools": index.vectors,
                "tool_tokens": index.tokens,
                "tool_mask": index.mask,
            },
        )["features"][0]
        listed = np.argsort(-features[:, 0], kind="stable")[:SHORT_LIST]
        edges = np.zeros((len(listed), len(listed), 1 + FLOWS), dtype=np.float32)
        edges[:, :, 0] = _adjacency([index.cards[at].name for at in listed], links or frozenset())
        edges[:, :, 1:] = flows([index.fields[at] for at in listed])
        on = np.ones((1, memory.shape[1]), dtype=np.float32)
        given = np.array([0.0 if links is None else 1.0], dtype=np.float32)
        joint = self._parts.run(
            "select_joint",
            {
                "memory": memory,
                "memory_mask": on,
                "tools": index.vectors[listed][None],
                "features": features[listed][None].astype(np.float32, copy=False),
                "mask": np.ones((1, len(listed)), dtype=np.float32),
                "edges": edges[None],
                "given": given,
                "verdicts": _verdicts(listed, extra.feedback)[None],
            },
        )
        entries = Entries(
            joint=joint,
            memory_mask=on,
            edges=np.pad(edges, ((1, 0), (1, 0), (0, 0))),
            places=np.pad(features[listed, PLACE] / PLACE_SCALE, (1, 0)).astype(np.float32),
            links_given=links is not None,
        )
        return entries, listed

    def _memory(
        self, reading: Reading, index: ToolIndex, extra: Extra
    ) -> tuple[dict[str, Array], NDArray[np.float32]]:
        if extra.multilingual is None:
            mask = np.ones((1, len(reading.states)), dtype=np.int64)
            read = dict(self._parts.run("select_reader", {"states": reading.states[None], "mask": mask}))
        else:
            vectors = np.asarray(extra.multilingual, dtype=np.float32)[None]
            mask = np.ones((1, vectors.shape[1]), dtype=np.int64)
            read = dict(self._parts.run("select_foreign", {"vectors": vectors, "mask": mask}))
        memory = self._parts.run("select_memory", {"top": read["top"], "mask": mask})["memory"]
        if extra.feedback:
            tools = np.stack([index.vectors[item.tool] for item in extra.feedback])[None].astype(np.float32)
            verdicts = np.array([[VERDICTS.index(item.verdict) for item in extra.feedback]], dtype=np.int64)
            told = self._parts.run("select_feedback", {"tools": tools, "verdicts": verdicts})["memory"]
            memory = np.concatenate((memory, told), axis=1)
        return read, memory


def _verdicts(listed: NDArray[np.int64], feedback: Sequence[Verdict]) -> NDArray[np.int64]:
    found = np.zeros(len(listed), dtype=np.int64)
    for item in feedback:
        found[listed == item.tool] = 1 + VERDICTS.index(item.verdict)
    return found


def _adjacency(names: Sequence[str], links: frozenset[tuple[str, str]]) -> NDArray[np.float32]:
    found = np.zeros((len(names), len(names)), dtype=np.float32)
    if links:
        for i, first in enumerate(names):
            for j, second in enumerate(names):
                if (first, second) in links:
                    found[i, j] = 1.0
    return found


def _hypotheses(paths: Sequence[Path], entries: Entries, listed: NDArray[np.int64]) -> tuple[Hypothesis, ...]:
    groups: dict[tuple[int, ...], list[Path]] = {}
    for path in paths:
        groups.setdefault(tuple(sorted(path.entries)), []).append(path)
    unary = entries.joint["unary"][0]
    found = []
    for members in groups.values():
        best = max(members, key=lambda path: path.log_probability)
        total = float(np.logaddexp.reduce([path.log_probability for path in members]))
        found.append(
            Hypothesis(
                tools=tuple(int(listed[entry - 1]) for entry in best.entries),
                log_probability=min(total, 0.0),
                candidates=tuple(_candidates(row, listed) for row in best.rows[: len(best.entries)]),
                step_log_probabilities=best.steps,
                stop_probabilities=tuple(float(np.exp(row[0])) for row in best.rows),
                relevance=tuple(float(unary[entry]) for entry in best.entries),
            )
        )
    return best_first(found)


def _candidates(row: Floats, listed: NDArray[np.int64]) -> tuple[tuple[int, float], ...]:
    order = np.argsort(-row[1:], kind="stable")[:_CANDIDATES]
    return tuple((int(listed[at]), float(np.exp(row[at + 1]))) for at in order)


def _empty() -> Hypothesis:
    return Hypothesis(
        tools=(),
        log_probability=0.0,
        candidates=(),
        step_log_probabilities=(0.0,),
        stop_probabilities=(1.0,),
        relevance=(),
    )
