"""The agent that the demo registers while its cloud runs. No rule speaks of it: only the trained planner can."""

from typing import Any

SPEED = 230
"""Words a minute."""


def answer(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """How long a text takes to read."""
    words = len(inputs["text"].split())
    minutes = max(1, round(words / SPEED))
    return {
        "markdown": f"About {minutes} min for {words} words. [Source: S1]",
        "words": words,
        "confidence_score": 0.9,
        "sources": [{"id": "S1", "kind": "request", "label": "the text", "location": "text", "sha256": ""}],
    }
