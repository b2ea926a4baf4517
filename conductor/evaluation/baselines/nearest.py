"""Nearest neighbour: copies the plan of the training request whose words are most like this one's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from conductor.evaluation.baselines.features import word_features
from conductor.evaluation.baselines.tasks import Planned, Task
from conductor.training.examples import Example, GoldStep


class Nearest:
    """Cosine of TF-IDF vectors of word pairs; only steps whose tool is there are copied."""

    def __init__(self, examples: Sequence[Example]) -> None:
        """Learn the training requests.

        Raises:
            BaselineLibraryMissing: scikit-learn is not installed.
        """
        self._examples = tuple(examples)
        self._features = word_features()
        self._known = self._features.fit_transform(example.request for example in examples)

    def plan(self, tasks: Sequence[Task]) -> Sequence[Planned]:
        """See `Baseline.plan`."""
        cosines = (self._features.transform([task.request for task in tasks]) @ self._known.T).toarray()
        best = np.argmax(cosines, axis=1)
        return [
            Planned(
                steps=_copied(self._examples[at].steps, frozenset(card.name for card in task.tools)),
                confidence=float(cosines[row, at]),
            )
            for row, (task, at) in enumerate(zip(tasks, best, strict=True))
        ]


def _copied(steps: Sequence[GoldStep], there: frozenset[str]) -> tuple[dict[str, Any], ...]:
    """The steps whose tool is there, numbered anew; what referred to another one is left out."""
    place = {old: new for new, old in enumerate(at for at, step in enumerate(steps) if step.tool in there)}
    copied = []
    for old in place:
        step = steps[old]
        arguments = {name: _value(value, place) for name, value in step.arguments.items()}
        copied.append(
            {
                "tool": step.tool,
                "candidates": [],
                "arguments": {name: value for name, value in arguments.items() if value is not None},
                "depends_on": [place[needed] for needed in step.depends_on if needed in place],
            }
        )
    return tuple(copied)


def _value(value: Any, place: dict[int, int]) -> Any:
    if isinstance(value, dict) and "step" in value:
        return {**value, "step": place[value["step"]]} if value["step"] in place else None
    return value
