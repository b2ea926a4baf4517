"""What an ONNX file asks of its runtime, read from the file's own bytes without loading it.

A newer IR version or opset fails only when a session is made, so a device looks here first. An ONNX file is a
protobuf `ModelProto`: field 1 is the IR version, field 7 the graph (large, skipped), field 8 the operator sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tools.onnx.wire import LENGTH, VARINT, Budget, OnnxHeaderError, fields, text

__all__ = ["OnnxHeader", "OnnxHeaderError", "read_header", "read_properties"]

_IR_VERSION, _OPSET_IMPORT, _PROPERTIES = 1, 8, 14
_MAX_OPSET_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxHeader:
    """The format version of a model and the operator sets it needs, by domain ('' is ONNX's own)."""

    ir_version: int
    opsets: Mapping[str, int]


def read_header(data: bytes, *, name: str) -> OnnxHeader:
    """Read the versions of a model; skips the weights, so a large file costs nothing.

    Args:
        data: the file's content.
        name: its name, for errors.

    Raises:
        OnnxHeaderError: not an ONNX model, or truncated.
    """
    ir_version, opsets, budget = 0, {}, Budget()
    for number, kind, value in fields(memoryview(data), name=name, budget=budget):
        if (number, kind) == (_IR_VERSION, VARINT) and isinstance(value, int):
            ir_version = value
        elif number == _OPSET_IMPORT and isinstance(value, memoryview) and len(value) <= _MAX_OPSET_BYTES:
            domain, version = _opset(value, name, budget)
            opsets[domain] = version
    if not ir_version or not opsets:
        raise OnnxHeaderError(f"{name} is not an ONNX model (no IR version or operator set)")
    return OnnxHeader(ir_version=ir_version, opsets=opsets)


def read_properties(data: bytes, *, name: str) -> dict[str, str]:
    """What the exporter said of a model besides the graph, by key; skips the weights.

    Args:
        data: the file's content.
        name: its name, for errors.

    Raises:
        OnnxHeaderError: not an ONNX model, or truncated.
    """
    found, budget = {}, Budget()
    for number, kind, value in fields(memoryview(data), name=name, budget=budget):
        if (number, kind) == (_PROPERTIES, LENGTH) and isinstance(value, memoryview):
            entry = {at: text(part) for at, _, part in fields(value, name=name, budget=budget)}
            found[entry.get(1, "")] = entry.get(2, "")
    return found


def _opset(message: memoryview, name: str, budget: Budget) -> tuple[str, int]:
    domain, version = "", 0
    for number, kind, value in fields(message, name=name, budget=budget):
        if (number, kind) == (1, LENGTH):
            domain = text(value)
        elif (number, kind) == (2, VARINT) and isinstance(value, int):
            version = value
        else:
            raise OnnxHeaderError(f"{name} is not an ONNX model (broken operator set)")
    return "" if domain == "ai.onnx" else domain, version
