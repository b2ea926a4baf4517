"""The ends of a plan with agents of five kinds: which city is meant, and a text of what was found out about it."""

from typing import Any

KNOWN = ("Zurich", "Geneva", "Lugano")
PARTS = ("city", "celsius", "people", "metres", "text")


def place(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """The city that a request is about."""
    found = [city for city in KNOWN if city.lower() in inputs["text"].lower()]
    source = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}
    return {
        "city": found[0] if found else "unknown",
        "confidence_score": 0.95 if len(found) == 1 else 0.1,
        "sources": [source],
    }


def brief(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """All that was found out, each part with its source."""
    city, celsius, people, metres, text = (inputs[part] for part in PARTS)
    origins = (inputs[f"{part}_from"][0] for part in PARTS)
    return {
        "markdown": f"{city} [Source: S1]: {celsius:g} °C on average [Source: S2], {people:,} people "
        f"[Source: S3], {metres} m above the sea [Source: S4]. {text} [Source: S5]",
        "confidence_score": 0.8,
        "sources": [{**origin, "id": f"S{number}"} for number, origin in enumerate(origins, 1)],
    }
