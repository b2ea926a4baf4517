"""An agent is a function: inputs that fit its input schema in, an output that fits its output schema out."""

from typing import Any

SPEED = 230  # words a minute


def answer(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """How long the text takes to read."""
    words = len(inputs["text"].split())
    minutes = max(1, round(words / SPEED))
    return {
        "markdown": f"About {minutes} min for {words} words. [Source: S1]",
        "words": words,
        "confidence_score": 0.9,
        "sources": [{"id": "S1", "kind": "request", "label": "the text", "location": "text", "sha256": ""}],
    }
