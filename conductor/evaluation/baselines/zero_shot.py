"""MiniLM without training: the tools whose description means most nearly what the request says."""

from collections.abc import Sequence

import numpy as np

from conductor.evaluation.baselines.tasks import Planned, Task, chain
from tools.embeddings.port import Embedder, Matrix


class ZeroShot:
    """Takes the `count` best tools by cosine, each depending on the one before."""

    def __init__(self, embedder: Embedder, *, count: int) -> None:
        self._embedder = embedder
        self._count = count
        self._vectors: dict[str, Matrix] = {}

    def plan(self, tasks: Sequence[Task]) -> Sequence[Planned]:
        """See `Baseline.plan`."""
        texts = dict.fromkeys(_text(card.name, card.description) for task in tasks for card in task.tools)
        fresh = [text for text in texts if text not in self._vectors]
        self._vectors.update(zip(fresh, self._embedder.embed(fresh), strict=True))
        asked = self._embedder.embed([task.request for task in tasks])
        return [self._one(task, vector) for task, vector in zip(tasks, asked, strict=True)]

    def _one(self, task: Task, asked: Matrix) -> Planned:
        if not task.tools:
            return Planned(steps=(), confidence=0.0)
        known = np.stack([self._vectors[_text(card.name, card.description)] for card in task.tools])
        cosines = known @ asked
        best = np.argsort(-cosines, kind="stable")[: self._count]
        sure = float(np.clip(cosines[best].min(), 0.0, 1.0))
        return chain([task.tools[at].name for at in best], sure)


def _text(name: str, description: str) -> str:
    return f"{name.replace('_', ' ')}: {description}"[:2_000]
