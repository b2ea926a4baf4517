"""The fields of a protobuf message, one after the other, without its schema and without copying.

ONNX files are protobuf. Looking into them with this reader needs neither the onnx package nor a runtime, and a
hostile file costs no more than its own length.
"""

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


class OnnxHeaderError(ValueError):
    """The bytes are not an ONNX model, or end too early."""


class Budget:
    """How many fields of a file are read: one made of tiny fields must not keep a processor for minutes."""

    def __init__(self, most: int = 2_000_000) -> None:
        self._most = self._left = most

    def spend(self, name: str) -> None:
        """Count one field.

        Raises:
            OnnxHeaderError: there were too many.
        """
        self._left -= 1
        if self._left < 0:
            raise OnnxHeaderError(f"{name} has more than {self._most} fields")


def fields(message: memoryview, *, name: str, budget: Budget) -> Iterator[tuple[int, int, int | memoryview]]:
    """Every field as (number, wire type, value): an int for a varint, otherwise the bytes.

    Args:
        message: the message's bytes.
        name: of the file, for errors.
        budget: shared by all messages of a file.

    Raises:
        OnnxHeaderError: the message is cut off, is no protobuf, or the budget is spent.
    """
    at, size = 0, len(message)
    while at < size:
        budget.spend(name)
        key, at = _varint(message, at, name)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at, name)
            yield number, kind, value
            continue
        if kind == LENGTH:
            length, at = _varint(message, at, name)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise OnnxHeaderError(f"{name} is not an ONNX model (wire type {kind})")
        if at + length > size:
            raise OnnxHeaderError(f"{name} ends inside field {number}; fetch it again")
        yield number, kind, message[at : at + length]
        at += length


def text(value: int | memoryview) -> str:
    """A string field; what is not UTF-8 is replaced."""
    return "" if isinstance(value, int) else bytes(value).decode("utf-8", "replace")


def signed(value: int) -> int:
    """A varint of type int64 with its sign."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _varint(message: memoryview, at: int, name: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise OnnxHeaderError(f"{name} ends too early; fetch it again")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise OnnxHeaderError(f"{name} is not an ONNX model (a number without an end)")
