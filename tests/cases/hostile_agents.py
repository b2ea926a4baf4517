"""The agent of the pack `hostile`: the word after "utter" in the request says what it returns."""

import sys
from collections.abc import Mapping
from typing import Any

from agents.invocation import AgentContext

_SOURCE = {"id": "S1", "kind": "request", "label": "the request", "location": "text", "sha256": ""}
_GOOD = {"markdown": "All is well. [Source: S1]", "confidence_score": 1.0, "sources": [_SOURCE]}


def utter(inputs: Mapping[str, Any], context: AgentContext) -> Any:
    word = str(inputs["text"]).split()[1]
    if word == "exit":
        sys.exit("the agent has had enough")
    if word == "crash":
        raise RuntimeError("bad input: \ud800 " + "x" * 100_000)
    if word == "recursion":
        return utter(inputs, context)
    return OUTPUTS[word]()


def _deep(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = {"a": value}
    return value


def _cyclic() -> Any:
    value: dict[str, Any] = dict(_GOOD)
    value["self"] = value
    return value


OUTPUTS = {
    "prose": lambda: "Certainly! Here is the JSON you asked for, I hope that it helps.",
    "fenced": lambda: '```json\n{"markdown": "hi"}\n```',
    "two": lambda: '{"markdown": "a"} {"markdown": "b"}',
    "nothing": lambda: None,
    "number": lambda: 42,
    "list": lambda: [_GOOD],
    "nan": lambda: {**_GOOD, "confidence_score": float("nan")},
    "infinity": lambda: {**_GOOD, "confidence_score": float("inf")},
    "nan_text": lambda: '{"markdown": "x [Source: S1]", "confidence_score": NaN, "sources": []}',
    "deep": lambda: {**_GOOD, "extra": _deep(100_000)},
    "deep_text": lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "cyclic": _cyclic,
    "huge": lambda: {**_GOOD, "markdown": "x" * 10_000_000},
    "huge_text": lambda: b'{"markdown": "' + b"x" * 10_000_000 + b'"}',
    "wide": lambda: {**_GOOD, "extra": list(range(2_000_000))},
    "surrogate": lambda: {**_GOOD, "markdown": "half a \ud83d character"},
    "not_utf8": lambda: b'{"markdown": "\xff"}',
    "bytes_inside": lambda: {**_GOOD, "markdown": b"bytes"},
    "unknown_field": lambda: {**_GOOD, "approved": True},
    "missing_field": lambda: {"markdown": "no confidence"},
    "overconfident": lambda: {**_GOOD, "confidence_score": 1.5},
    "coerced": lambda: {**_GOOD, "confidence_score": "1.0"},
    "huge_integer": lambda: {**_GOOD, "confidence_score": 10**5000},
    "repeated_key": lambda: '{"markdown": "a", "markdown": "b", "confidence_score": 1, "sources": []}',
    "unsourced": lambda: {**_GOOD, "sources": []},
    "invented_source": lambda: {**_GOOD, "markdown": "It says so. [Source: S9]"},
    "good": lambda: _GOOD,
}
