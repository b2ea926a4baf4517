"""Linear SVM over TF-IDF, one tool against the rest; plain, or re-ranking the chains that occur in training.

The second is the strong published-style baseline on UltraTool: among the chains of training, that one is copied
whose tools are together the likeliest and which is not too rare.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conductor.evaluation.baselines.features import word_and_letter_features
from conductor.evaluation.baselines.tasks import Planned, Task, chain
from conductor.evaluation.scoring import f1
from conductor.training.examples import Example

_FOLDS = 3
_LONGEST_PERMUTED = 6
Scores = NDArray[np.float64]


class Linear:
    """One linear SVM a tool; what it does with their scores depends on `use`."""

    def __init__(self, examples: Sequence[Example], *, use: Literal["threshold", "chains"], seed: int = 0) -> None:
        """Learn from training requests; thresholds and calibration come from folds that were left out.

        Raises:
            BaselineLibraryMissing: scikit-learn is not installed.
        """
        self._use = use
        self._features = word_and_letter_features()
        texts = [example.request for example in examples]
        self._tools = sorted({name for example in examples for name in example.tool_set})
        place = {name: at for at, name in enumerate(self._tools)}
        wanted = np.zeros((len(examples), len(self._tools)), dtype=bool)
        for row, example in enumerate(examples):
            wanted[row, [place[name] for name in example.tool_set]] = True
        known = self._features.fit_transform(texts)
        left_out = _left_out(known, wanted, seed)
        self._machines = _fitted(known, wanted)
        self._slope, self._offset = _platt(left_out, wanted)
        self._chains = _chains(examples, place)
        self._follows: Counter[tuple[str, str]] = Counter()
        for example in examples:
            names = [step.tool for step in example.steps]
            self._follows.update(pairwise(names))
        self._threshold = _best_threshold(left_out, wanted)
        self._weight = self._best_weight(left_out, wanted) if use == "chains" else 0.0

    def plan(self, tasks: Sequence[Task]) -> Sequence[Planned]:
        """See `Baseline.plan`; a tool that no training request uses is never chosen."""
        scores = _decided(self._machines, self._features.transform([task.request for task in tasks]))
        plans = []
        for row, task in zip(scores, tasks, strict=True):
            there = {card.name for card in task.tools}
            on = np.array([name in there for name in self._tools])
            plans.append(self._by_chains(row, on) if self._use == "chains" else self._by_threshold(row, on))
        return plans

    def _by_threshold(self, row: Scores, on: NDArray[np.bool_]) -> Planned:
        if not on.any():
            return Planned(steps=(), confidence=0.0)
        allowed = np.where(on, row, -np.inf)
        chosen = np.flatnonzero(allowed > self._threshold)
        if not len(chosen):
            chosen = np.array([int(np.argmax(allowed))])
        names = self._ordered([self._tools[at] for at in chosen])
        return chain(names, float(self._likely(row)[chosen].prod()))

    def _by_chains(self, row: Scores, on: NDArray[np.bool_]) -> Planned:
        fits = np.array([on[list(places)].all() for places in self._chains.places])
        if not fits.any():
            return self._by_threshold(row, on)
        value = np.where(fits, self._chains.value(self._likely(row), self._weight), -np.inf)
        best = int(np.argmax(value))
        shares = np.exp(value - value[best])
        names = [self._tools[at] for at in self._chains.places[best]]
        return chain(names, float(1 / shares.sum()))

    def _likely(self, row: Scores) -> Scores:
        likely: Scores = 1 / (1 + np.exp(-np.clip(self._slope * row + self._offset, -30, 30)))
        return np.clip(likely, 1e-6, 1 - 1e-6)

    def _ordered(self, names: Sequence[str]) -> Sequence[str]:
        """In the order whose neighbours follow each other most often in training."""
        if len(names) > _LONGEST_PERMUTED:
            return names
        return max(
            permutations(names),
            key=lambda way: sum(self._follows[pair] for pair in pairwise(way)),
        )

    def _best_weight(self, left_out: Scores, wanted: NDArray[np.bool_]) -> float:
        """How much a chain's frequency should count, by node F1 on what was left out."""
        found = {}
        for weight in (0.0, 0.25, 0.5, 1.0):
            total = 0.0
            for row, right in zip(left_out, wanted, strict=True):
                best = int(np.argmax(self._chains.value(self._likely(row), weight)))
                total += f1(set(self._chains.places[best]), set(np.flatnonzero(right).tolist()))
            found[weight] = total
        return max(found, key=lambda weight: found[weight])


class _Chains:
    """The distinct tool sets of training, each in its most frequent order."""

    def __init__(self, places: Sequence[tuple[int, ...]], counts: Sequence[int], tools: int) -> None:
        self.places = tuple(places)
        self._frequent = np.log(np.asarray(counts, dtype=np.float64))
        self._member = np.zeros((len(places), tools))
        for row, chosen in enumerate(places):
            self._member[row, list(chosen)] = 1.0

    def value(self, likely: Scores, weight: float) -> Scores:
        """Log-likelihood of each set when tools are chosen independently, and its frequency."""
        odds = np.log(likely) - np.log1p(-likely)
        value: Scores = self._member @ odds + weight * self._frequent
        return value


def _chains(examples: Sequence[Example], place: dict[str, int]) -> _Chains:
    orders: dict[frozenset[str], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for example in examples:
        names = tuple(dict.fromkeys(step.tool for step in example.steps))
        orders[frozenset(names)][names] += 1
    best = [max(ways, key=lambda way: (ways[way], way)) for ways in orders.values()]
    counts = [sum(ways.values()) for ways in orders.values()]
    return _Chains([tuple(place[name] for name in way) for way in best], counts, len(place))


def _fitted(known: Any, wanted: NDArray[np.bool_]) -> list[Any]:
    """One machine a tool, or the constant score of a tool that no request of these uses."""
    from sklearn.svm import LinearSVC

    machines: list[Any] = []
    for column in wanted.T:
        if column.all() or not column.any():
            machines.append(1.0 if column.all() else -1.0)
        else:
            machines.append(LinearSVC(C=1.0, random_state=0).fit(known, column))
    return machines


def _decided(machines: Sequence[Any], known: Any) -> Scores:
    columns = [
        np.full(known.shape[0], machine) if isinstance(machine, float) else machine.decision_function(known)
        for machine in machines
    ]
    return np.stack(columns, axis=1)


def _left_out(known: Any, wanted: NDArray[np.bool_], seed: int) -> Scores:
    """Scores of every request by machines that did not see it."""
    fold = np.random.default_rng(seed).permutation(known.shape[0]) % _FOLDS
    scores = np.zeros(wanted.shape)
    for one in range(_FOLDS):
        scores[fold == one] = _decided(_fitted(known[fold != one], wanted[fold != one]), known[fold == one])
    return scores


def _platt(scores: Scores, wanted: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset that turn scores into probabilities."""
    from sklearn.linear_model import LogisticRegression

    machine = LogisticRegression(C=1e6).fit(scores.reshape(-1, 1), wanted.reshape(-1))
    return float(machine.coef_[0, 0]), float(machine.intercept_[0])


def _best_threshold(scores: Scores, wanted: NDArray[np.bool_]) -> float:
    """The score from which a tool is taken, by node F1 on what was left out; the best one always is."""
    top = scores.max(axis=1, keepdims=True)

    def quality(threshold: float) -> float:
        taken = (scores > threshold) | (scores == top)
        return float((2 * (taken & wanted).sum(axis=1) / (taken.sum(axis=1) + wanted.sum(axis=1))).mean())

    return max((float(at) for at in np.linspace(-0.9, 0.3, 25)), key=quality)
