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


def find_drift(request_text: str, texts: Mapping[str, str], embedder: Embedder, threshold: float) -> Drift | None:
    """The input farthest from the request, when it is farther than the threshold allows.

    A text that contains the request or is contained in it has not drifted and is not embedded.
    """
    asked = request_text.strip().casefold()
    doubtful = {name: text for name, text in texts.items() if not _contained(asked, text.strip().casefold())}
    if not asked or not doubtful:
        return None
    (row,) = embedder.similarities([request_text], list(doubtful.values()))
    similarities = {name: float(value) for name, value in zip(doubtful, row, strict=True)}
    field, similarity = min(similarities.items(), key=lambda item: item[1])
    return Drift(field=field, similarity=similarity, threshold=threshold) if similarity < threshold else None


def _contained(asked: str, text: str) -> bool:
    return asked in text or text in asked
