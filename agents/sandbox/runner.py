"""The agent's own process, for an agent that is a Python function: read a request, call it, write the answer."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType, SimpleNamespace
from typing import Any

from agents.sandbox.frames import LENGTH, StreamEnded, read_exactly, write_all

_MESSAGE_CHARS = 500


def serve_function(name: str, requests: int, answers: int) -> None:
    """Answer calls until the warden closes the pipe.

    Args:
        name: `module:function`; imported with the first call, under that call's limits.
        requests: Where requests are read.
        answers: Where answers are written.
    """
    function: Callable[..., Any] | None = None
    while True:
        try:
            (size,) = LENGTH.unpack(read_exactly(requests, LENGTH.size))
            request = json.loads(read_exactly(requests, size))
        except StreamEnded:
            return
        try:
            if function is None:
                function = _imported(name)
            answer = _written(function(request["input"], _context(request["context"])))
        except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its answer, sys.exit() too
            answer = _failure(error)
        write_all(answers, LENGTH.pack(len(answer)))
        write_all(answers, answer)
        # Not kept while it waits: an answer may be most of what the agent is allowed.
        del request, answer


def _imported(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def _context(fields: Mapping[str, Any]) -> SimpleNamespace:
    """What a function of the server's own process gets as AgentContext, less the shared resources."""
    caller = fields["caller"]
    changed = {
        "now": datetime.fromisoformat(fields["now"]),
        "caller": SimpleNamespace(name=caller["name"], roles=frozenset(caller["roles"])),
        "diagnosis": tuple(fields["diagnosis"]),
        "request": MappingProxyType(fields["request"]),
    }
    return SimpleNamespace(**{**fields, **changed})


def _written(output: object) -> bytes:
    try:
        if isinstance(output, bytes | bytearray | memoryview):
            output = bytes(output).decode("utf-8")
        try:
            # NaN is written as such, and refused where the answer is read.
            return json.dumps({"output": output}, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate: whoever checks the output names its place
            return json.dumps({"output": output}).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"the output is not JSON: {type(error).__name__}: {_clipped(error)}"
        return json.dumps({"error": {"class": "OutputNotJson", "message": reason}}).encode("ascii")


def _failure(error: BaseException) -> bytes:
    described: dict[str, Any] = {"class": type(error).__name__, "message": _clipped(error)}
    if isinstance(error, MemoryError):
        described["limit"] = "memory_bytes"
    elif isinstance(error, OSError) and error.errno is not None:
        described["errno"] = error.errno
    elif isinstance(error, RuntimeError) and "start new thread" in described["message"]:
        described["limit"] = "max_processes"
    return json.dumps({"error": described}).encode("ascii")


def _clipped(error: BaseException) -> str:
    try:
        return str(error)[:_MESSAGE_CHARS]
    except Exception:  # noqa: BLE001 - an error of the agent's own making may fail to say what it is
        return ""


def python_path(folders: list[str]) -> None:
    """Make `folders` the places that the agent's modules are found in, after the standard library."""
    standard = [entry for entry in sys.path if entry.startswith((sys.prefix, sys.base_prefix))]
    sys.path[:] = [*folders[:1], *standard, *folders[1:]]
    importlib.invalidate_caches()
    sys.argv[:] = [os.devnull]
