"""Agents of the test pack `relay`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.invocation import AgentContext

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}


@dataclass(frozen=True)
class Marks:
    """Where `mark` leaves its marks: one file a key, and a line for every time it was asked."""

    folder: Path

    def leave(self, key: str) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "asked").open("a") as asked:
            asked.write(key + "\n")
        (self.folder / key.replace("/", "_")).touch()


def resources(data_dir: Path) -> Mapping[str, object]:
    return {"relay_marks": Marks(data_dir / "marks")}


def _rest(inputs: Mapping[str, Any]) -> None:
    time.sleep(inputs.get("pause_ms", 0) / 1000)  # the work that a real agent would do


def count(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    _rest(inputs)
    return {"words": len(inputs["text"].split()), "confidence_score": 1.0, "sources": [_SOURCE]}


def mark(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    context.resources.get("relay_marks", Marks).leave(context.idempotency_key)
    _rest(inputs)
    return {"words": inputs["words"], "confidence_score": 1.0, "sources": [_SOURCE]}


def tell(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    _rest(inputs)
    chinese = context.request.get("language") == "zh"
    text = f"共 {inputs['words']} 个词。" if chinese else f"There are {inputs['words']} words."
    return {"markdown": f"{text} [Source: S1]", "confidence_score": 1.0, "sources": [_SOURCE]}


def babble(inputs: Mapping[str, Any], context: AgentContext) -> Any:
    return "Well, let me think about that for a moment."


def stumble(inputs: Mapping[str, Any], context: AgentContext) -> Mapping[str, Any]:
    raise ZeroDivisionError("secret detail")
