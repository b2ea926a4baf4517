"""The process that a model is tried in: it loads the model, runs it once, and says what happened.

Started by `tools.onnx.trial` as a module of its own; whatever the model does to its runtime happens here. On
stdin: one line of JSON, then the model. On stdout: one line of JSON for each stage that was reached.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tools.onnx.session import open_session

_NUMPY = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
}
"""What the runtime calls a type, and what numpy does."""


def main() -> None:
    """Read the order, try the model, report each stage."""
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # A library that prints must not be mistaken for a report.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    source = sys.stdin.buffer
    order = json.loads(source.readline())
    _limit(order)
    try:
        _try(order, source, reports)
    except Exception as error:  # noqa: BLE001 - everything that can be said is said to the parent
        _report(reports, {"failed": f"{type(error).__name__}: {str(error)[:1000]}"})


def _limit(order: dict[str, Any]) -> None:
    memory, seconds = int(order["memory_bytes"]), int(order["cpu_s"])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # The parent watches the clock; this one holds when the parent is gone.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Nothing that a model does may write a file.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _try(order: dict[str, Any], source: BinaryIO, reports: Any) -> None:
    data = source.read()
    _report(reports, {"stage": "load"})
    session = open_session(data, threads=1)
    inputs, outputs = session.get_inputs(), session.get_outputs()
    _report(reports, {"stage": "run", "inputs": _described(inputs), "outputs": _described(outputs)})
    values = _run(session, inputs, order)
    report = [
        {
            "name": item.name,
            "dtype": str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__,
            "shape": list(value.shape) if isinstance(value, np.ndarray) else [],
            "finite": not isinstance(value, np.ndarray)
            or value.dtype.kind != "f"
            or bool(np.isfinite(value).all()),
        }
        for item, value in zip(outputs, values, strict=True)
    ]
    _report(reports, {"stage": "done", "results": report, "peak_bytes": _peak_bytes()})


def _peak_bytes() -> int:
    """The most memory this program has had at once.

    Not ru_maxrss: that survives exec, so a child of a large server would seem as large as the server.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _run(session: Any, inputs: Any, order: dict[str, Any]) -> Any:
    failure: Exception | None = None
    # Lengths that the model leaves open: some graphs need more than one element.
    for open_length in order["open_lengths"]:
        feeds = {item.name: _feed(item, order["feeds"].get(item.name, {}), open_length) for item in inputs}
        try:
            return session.run(None, feeds)
        except Exception as error:  # noqa: BLE001 - the next length may do
            failure = error
    raise failure or RuntimeError("no length to try")


def _feed(item: Any, wish: dict[str, Any], open_length: int) -> Any:
    declared = [size if isinstance(size, int) and size >= 0 else open_length for size in item.shape]
    shape = wish.get("shape") or declared
    kind = item.type.removeprefix("tensor(").removesuffix(")")
    if kind == "string":
        return np.full(shape, "", dtype=object)
    if kind not in _NUMPY:
        raise TypeError(f"input {item.name!r} is a {item.type}, which cannot be tried")
    return np.full(shape, wish.get("value", 0), dtype=_NUMPY[kind])


def _described(items: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "dtype": _NUMPY.get(kind := item.type.removeprefix("tensor(").removesuffix(")"), kind),
            "shape": [size if isinstance(size, int) and size >= 0 else None for size in item.shape],
        }
        for item in items
    ]


def _report(reports: Any, report: dict[str, Any]) -> None:
    reports.write(json.dumps(report) + "\n")
    reports.flush()


if __name__ == "__main__":
    main()
