"""What an ONNX file asks of its runtime, read from the file's own bytes without loading it.

A newer IR version or opset fails only when a session is made, so a device looks here first. An ONNX file is a
protobuf `ModelProto`: field 1 is the IR version, field 7 the graph (large, skipped), field 8 the operator sets.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_IR_VERSION, _OPSET_IMPORT = 1, 8
_MAX_OPSET_BYTES = 4096


class OnnxHeaderError(ValueError):
    """The bytes are not an ONNX model, or end too early."""


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
    size = len(data)
    ir_version, opsets = 0, {}
    with io.BytesIO(data) as file:
        while file.tell() < size:
            number, kind = _tag(file)
            if kind == _VARINT:
                value = _varint(file)
                if number == _IR_VERSION:
                    ir_version = value
            elif kind == _LENGTH:
                length = _varint(file)
                if file.tell() + length > size:
                    raise OnnxHeaderError(f"{name} ends inside field {number}; fetch it again")
                if number == _OPSET_IMPORT and length <= _MAX_OPSET_BYTES:
                    domain, version = _opset(file, file.tell() + length)
                    opsets[domain] = version
                else:
                    file.seek(length, 1)
            elif kind in (_FIXED64, _FIXED32):
                file.seek(8 if kind == _FIXED64 else 4, 1)
            else:
                raise OnnxHeaderError(f"{name} is not an ONNX model (wire type {kind})")
    if not ir_version or not opsets:
        raise OnnxHeaderError(f"{name} is not an ONNX model (no IR version or operator set)")
    return OnnxHeader(ir_version=ir_version, opsets=opsets)


def _opset(file: BinaryIO, end: int) -> tuple[str, int]:
    domain, version = "", 0
    while file.tell() < end:
        number, kind = _tag(file)
        if (number, kind) == (1, _LENGTH):
            domain = file.read(_varint(file)).decode("utf-8", "replace")
        elif (number, kind) == (2, _VARINT):
            version = _varint(file)
        else:
            raise OnnxHeaderError("not an ONNX model (broken operator set)")
    return domain, version


def _tag(file: BinaryIO) -> tuple[int, int]:
    key = _varint(file)
    return key >> 3, key & 7


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise OnnxHeaderError("the model file ends too early; fetch it again")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise OnnxHeaderError("not an ONNX model (a number without an end)")
