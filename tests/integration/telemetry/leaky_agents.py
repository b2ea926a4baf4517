"""Agents that repeat in their errors whatever they were given."""

import time
from collections.abc import Mapping
from typing import Any

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}


def count(inputs: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
    if "refuse" in inputs["text"]:
        raise ValueError(f"cannot count {inputs['text']}")
    return {"words": len(inputs["text"].split()), "confidence_score": 1.0, "sources": [_SOURCE]}


def stumble(inputs: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
    if "linger" in inputs["text"]:
        time.sleep(3)
    try:
        raise KeyError(inputs["text"])
    except KeyError as error:
        raise ValueError(f"cannot work on {inputs['text']}") from error
