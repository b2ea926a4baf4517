"""The functions around the model of an agent: words counted in, words told out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.invocation import AgentContext

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}


def counted(inputs: Mapping[str, Any], _: AgentContext) -> dict[str, Any]:
    return {"x": np.full((1, 2), len(inputs["text"].split()), dtype=np.float32)}


def told(outputs: Mapping[str, Any], _: Mapping[str, Any], __: AgentContext) -> dict[str, Any]:
    text = f"There are {outputs['y'][0, 0]:g} words. [Source: S1]"
    return {"markdown": text, "confidence_score": 1.0, "sources": [_SOURCE]}
