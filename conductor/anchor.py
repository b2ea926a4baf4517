"""Anchor: text that agents are given must stay close in meaning to what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents.spec import AgentSpec


class Embedder(Protocol):
    """Says how close texts are in meaning; `tools.embeddings.routing.EmbedderRouter` is one."""

    def similarities(self, texts: Sequence[str], others: Sequence[str]) -> Any:
        """Cosines of every text with every other, in [-1, 1]: a row for each of `texts`. Called in a thread."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """An input that has drifted away from the request."""

    field: str
    similarity: float
    """Cosine of the two embeddings, in [-1, 1]."""
    threshold: float


def anchored_texts(spec: AgentSpec, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The text inputs of an agent that must stay close to the request, by name."""
    return {
        name: inputs[name] for name in spec.anchor_fields if isinstance(inputs.get(name), str) and inputs[name]
    }


def reworded(request_text: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts whose meaning has to be compared with the request's.

    A text that contains the request or is contained in it has not drifted; an empty request compares with nothing.
    """
    asked = request_text.strip().casefold()
    if not asked:
        return {}
    return {name: text for name, text in texts.items() if not _contained(asked, text.strip().casefold())}


def find_drift(request_text: str, texts: Mapping[str, str], embedder: Embedder, threshold: float) -> Drift | None:
    """The input farthest from the request, when it is farther than the threshold allows.

    Takes as long as a model needs to embed the texts that are `reworded`; called in a thread.
    """
    doubtful = reworded(request_text, texts)
    if not doubtful:
        return None
    (row,) = embedder.similarities([request_text], list(doubtful.values()))
    similarities = {name: float(value) for name, value in zip(doubtful, row, strict=True)}
    field, similarity = min(similarities.items(), key=lambda item: item[1])
    return Drift(field=field, similarity=similarity, threshold=threshold) if similarity < threshold else None


def _contained(asked: str, text: str) -> bool:
    return asked in text or text in asked
