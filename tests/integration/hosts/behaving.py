"""The agent that hosts of these tests run: it does what its input says."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from podium.agent_host import CallContext
from podium.errors import AgentOverLimit, CapabilityDenied

SOURCE = {"id": "S1", "kind": "agent", "label": "a test", "location": "here", "sha256": ""}


def behave(inputs: Mapping[str, Any], context: CallContext) -> Any:
    do, _, argument = inputs["do"].partition(":")
    if (raw := _MISDEEDS.get(do)) is not None:
        return raw(argument)
    if do == "sleep":
        time.sleep(float(argument))
    elif do == "hold":
        _hold(Path(argument), context)
    elif do == "write":
        with Path(argument).open("a") as file:
            file.write(f"{os.getpid()} {context.idempotency_key}\n")
        time.sleep(0.2)
    return output(f"{os.getpid()} {context.attempt} {context.caller}")


def _hold(folder: Path, context: CallContext) -> None:
    """Until the test has seen that it runs, and lets it go."""
    (folder / f"running-{os.getpid()}").touch()
    while not (folder / "go").exists() and not context.cancelled.is_set():
        time.sleep(0.01)
    if context.cancelled.is_set():
        (folder / "cancelled").touch()


def output(said: str) -> dict[str, Any]:
    return {"said": said, "confidence_score": 1.0, "sources": [SOURCE]}


def _raise(error: Exception) -> Any:
    raise error


_MISDEEDS: Mapping[str, Callable[[str], Any]] = {
    "raise": lambda _: _raise(ZeroDivisionError("secret detail")),
    "exit": lambda _: sys.exit(3),
    "limit": lambda _: _raise(AgentOverLimit("used too much of everything")),
    "deny": lambda _: _raise(CapabilityDenied("no token")),
    "nan": lambda _: output("x") | {"confidence_score": float("nan")},
    "object": lambda _: object(),
    "prose": lambda _: "Certainly! Here is the answer.",
    "unknown_field": lambda _: output("x") | {"approved": True},
    "overconfident": lambda _: output("x") | {"confidence_score": 2.0},
    "deep": lambda _: output("x") | {"extra": reduce(lambda value, _: [value], range(500), "core")},
    "wrong": lambda _: {"said": 7},
    "big": lambda argument: output("x" * int(argument)),
}


def count(inputs: Mapping[str, Any], context: CallContext) -> Any:
    """`relay_count` of the test pack; leaves word that it runs, and waits where the test wants it to."""
    folder = Path(os.environ["HOSTS_FOLDER"])
    (folder / f"running-{os.getpid()}").touch()
    while (folder / f"hold-{context.attempt}").exists() and not context.cancelled.is_set():
        time.sleep(0.01)
    return {
        "words": len(inputs["text"].split()),
        "confidence_score": 1.0,
        "sources": [SOURCE | {"kind": "request"}],
    }
