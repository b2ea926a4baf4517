"""Agents that tests register with a running server."""

import time
from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}


def cities(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    return {"cities": ["Zurich", "Geneva"], "confidence_score": 1.0, "sources": [_SOURCE]}


def joined(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    return {"cities": "Zurich, Geneva", "confidence_score": 1.0, "sources": [_SOURCE]}


def pointed(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    return {"cities": 2.0, "confidence_score": 1.0, "sources": [_SOURCE]}


def asleep(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    time.sleep(3)  # longer than the trial that the test allows
    return cities(inputs, context)


def count(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    return {"words": 100 + len(inputs["text"].split()), "confidence_score": 1.0, "sources": [_SOURCE]}
