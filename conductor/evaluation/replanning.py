"""Is the second decision better for knowing what became of the first? Counted over simulated trajectories.

The same model plans each trajectory twice: told of the steps so far, and not told of them but without the tools
that failed, which is what a planner that ignores feedback is given. Simulated once from a seed; `dev` is looked at
once, for the report.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conductor.policy.multilingual import multilingual_memory, reads_english
from conductor.policy.parts import Floats, PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import Extra, Hypothesis, Selector, Verdict
from conductor.policy.tokens import Tokens
from conductor.training.examples import Example
from conductor.training.simulator import Trajectory, simulate

_RESAMPLES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the model decided about one trajectory."""

    trajectory: Trajectory
    told: tuple[str, ...]
    """Tools that were chosen with the feedback."""
    hidden: tuple[str, ...]
    """Tools that were chosen without it, from a registry without the tools that failed."""

    @property
    def right(self) -> tuple[bool, bool]:
        """Whether each is the better decision: the same tools, each as often; the order is not looked at."""
        wanted = sorted(step.tool for step in self.trajectory.example.steps)
        return sorted(self.told) == wanted, sorted(self.hidden) == wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Right decisions among some trajectories, in percent with 95 % intervals."""

    count: int
    told: float
    told_interval: tuple[float, float]
    hidden: float
    hidden_interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """The share as results are written."""
        return {
            "count": self.count,
            "told": self.told,
            "told_interval": list(self.told_interval),
            "hidden": self.hidden,
            "hidden_interval": list(self.hidden_interval),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanning:
    """The result."""

    failing: float
    """Percent of the trajectories in which something failed or was left undone."""
    every: Share
    """Of all trajectories."""
    failed: Share
    """Of those that fail."""
    kinds: Mapping[str, Share]
    """By what went wrong, most frequent first."""

    def to_json(self) -> dict[str, Any]:
        """The result as results are written."""
        return {
            "failing": self.failing,
            "every": self.every.to_json(),
            "failed": self.failed.to_json(),
            "kinds": {kind: share.to_json() for kind, share in self.kinds.items()},
        }


def trajectories(examples: Sequence[Example], *, seed: int, each: int = 1) -> tuple[Trajectory, ...]:
    """Simulated trajectories of the examples that need any tool.

    Args:
        examples: Of a part that was not trained on.
        seed: Decides everything.
        each: How many of each example.
    """
    return tuple(
        simulate(example, random.Random(f"{seed} {example.source} {example.id} {at}"))  # noqa: S311 - samples
        for example in examples
        if example.steps
        for at in range(each)
    )


def decide(
    parts: PartRunner,
    tokens: Tokens,
    found: Sequence[Trajectory],
    *,
    foreign: Callable[[str], Floats] = multilingual_memory,
) -> tuple[Decided, ...]:
    """Plan every trajectory twice.

    Args:
        parts: The model.
        tokens: Its vocabulary.
        found: As `trajectories` gives them.
        foreign: Vectors of a request that the English encoder cannot read.

    Raises:
        OnnxError: the runtime failed.
    """
    selector = Selector(parts, tokens)
    decided = []
    for item in found:
        example = item.example
        reading = read(parts, tokens, example.request)
        sentences = None if reads_english(example.request) else foreign(example.request)
        place = {card.name: at for at, card in enumerate(example.tools)}
        feedback = tuple(Verdict(tool=place[outcome.tool], verdict=outcome.verdict) for outcome in item.outcomes)
        told = selector.plans(
            reading,
            selector.index(example.tools),
            extra=Extra(multilingual=sentences, feedback=feedback),
        )
        left = tuple(card for card in example.tools if card.name not in item.broken)
        hidden = selector.plans(reading, selector.index(left), extra=Extra(multilingual=sentences))
        decided.append(
            Decided(
                trajectory=item,
                told=_without(told, [card.name for card in example.tools], item.broken),
                hidden=tuple(left[at].name for at in hidden[0].tools),
            )
        )
    return tuple(decided)


def _without(hypotheses: Sequence[Hypothesis], names: Sequence[str], broken: frozenset[str]) -> tuple[str, ...]:
    """The best plan that calls no tool that failed, as a runtime takes it; the best of all when there is none."""
    plans = [tuple(names[at] for at in hypothesis.tools) for hypothesis in hypotheses]
    return next((plan for plan in plans if not broken & set(plan)), plans[0])


def measure(decided: Sequence[Decided], *, seed: int = 1) -> Replanning:
    """Count the right decisions.

    Args:
        decided: What the model decided.
        seed: Of the resampling.
    """
    kinds: dict[str, list[Decided]] = {}
    for item in decided:
        kinds.setdefault(item.trajectory.kind, []).append(item)
    failed = [item for item in decided if item.trajectory.fails]
    ordered = sorted(kinds.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return Replanning(
        failing=100.0 * len(failed) / max(1, len(decided)),
        every=_share(decided, seed),
        failed=_share(failed, seed),
        kinds={kind: _share(items, seed) for kind, items in ordered},
    )


def _share(decided: Sequence[Decided], seed: int) -> Share:
    rows = np.array([item.right for item in decided], dtype=np.float64).reshape(-1, 2) * 100.0
    if not len(rows):
        return Share(count=0, told=0.0, told_interval=(0.0, 0.0), hidden=0.0, hidden_interval=(0.0, 0.0))
    chosen = np.random.default_rng(seed).integers(0, len(rows), (_RESAMPLES, len(rows)))
    low, high = np.percentile(rows[chosen].mean(axis=1), (2.5, 97.5), axis=0)
    told, hidden = rows.mean(axis=0)
    return Share(
        count=len(rows),
        told=float(told),
        told_interval=(float(low[0]), float(high[0])),
        hidden=float(hidden),
        hidden_interval=(float(low[1]), float(high[1])),
    )


def write_decided(path: Path, decided: Sequence[Decided]) -> None:
    """Keep what was decided, a row for each trajectory, to look at what went wrong."""
    rows = (
        {
            "id": f"{item.trajectory.example.source}/{item.trajectory.example.id}",
            "request": item.trajectory.example.request,
            "kind": item.trajectory.kind,
            "previous": list(item.trajectory.plan),
            "outcomes": [[outcome.tool, outcome.verdict] for outcome in item.trajectory.outcomes],
            "better": [step.tool for step in item.trajectory.example.steps],
            "told": list(item.told),
            "hidden": list(item.hidden),
        }
        for item in decided
    )
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
