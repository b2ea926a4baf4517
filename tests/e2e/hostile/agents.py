"""Functions of the matrix that run in the server: around the model of engine `onnx`, and whoever takes over."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.invocation import AgentContext

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}
_GOOD = {"said": "five words in a row", "confidence_score": 1.0, "sources": [_SOURCE]}


def good_said(_: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    return _GOOD


def good_population(_: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    return {"population": 7, "confidence_score": 1.0, "sources": [_SOURCE]}


def before(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    rounds = 2**62 if inputs["word"] == "endless" else 1
    return {"x": np.full((1, 2), 1.0, dtype=np.float32), "m": np.array(rounds)}


def divided(_: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    return {"a": np.ones(1, dtype=np.float32), "b": np.zeros(1, dtype=np.float32)}


def after(_: Mapping[str, Any], inputs: Mapping[str, Any], __: AgentContext) -> Any:
    match inputs["word"]:
        case "prose":
            return "The model is of the opinion that"
        case "huge":
            return {**_GOOD, "said": "x" * 2**26}
        case "unknown_field":
            return {**_GOOD, "approved": True}
        case "deep":
            value: Any = "core"
            for _level in range(500):
                value = [value]
            return {**_GOOD, "extra": value}
        case "overconfident":
            return {**_GOOD, "confidence_score": 2.0}
        case "crash":
            raise KeyError("after")
    return _GOOD
