"""Anchor: text that agents are given must stay close in meaning to what was asked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agents.spec import AgentSpec


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how close their meanings are."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, all of one length. Called in a thread."""
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
    vectors = embedder.embed([request_text, *doubtful.values()])
    similarities = {name: cosine(vectors[0], vector) for name, vector in zip(doubtful, vectors[1:], strict=True)}
    field, similarity = min(similarities.items(), key=lambda item: item[1])
    return Drift(field=field, similarity=similarity, threshold=threshold) if similarity < threshold else None


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of the angle between two vectors, in [-1, 1]; 0 when one of them has no length."""
    product = math.fsum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    length = math.sqrt(math.fsum(float(a) ** 2 for a in one)) * math.sqrt(math.fsum(float(b) ** 2 for b in other))
    return product / length if length else 0.0


def _contained(asked: str, text: str) -> bool:
    return asked in text or text in asked
