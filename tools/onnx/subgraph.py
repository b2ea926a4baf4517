"""Cuts out of an ONNX file the part that leads to some of its outputs, as a model of its own.

A file that holds several functions is split so before it is loaded: running a few nodes of a large graph costs the
runtime milliseconds, as much as computing them. Works on the file's own bytes, like `inspection`; nothing is
decoded but names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tools.onnx.header import OnnxHeaderError
from tools.onnx.wire import LENGTH, VARINT, Budget, fields, text

_GRAPH = 7
_NODE, _GRAPH_NAME, _CONSTANT, _INPUT, _OUTPUT = 1, 2, 5, 11, 12
_TENSOR_NAME = 8


@dataclass(slots=True, kw_only=True)
class _Parts:
    nodes: list[memoryview] = field(default_factory=list)
    maker: dict[str, int] = field(default_factory=dict)
    """Of each value the place of the node that makes it."""
    constants: dict[str, memoryview] = field(default_factory=dict)
    inputs: dict[str, memoryview] = field(default_factory=dict)
    outputs: dict[str, memoryview] = field(default_factory=dict)
    rest: list[tuple[int, memoryview]] = field(default_factory=list)


def subgraph(data: bytes, outputs: Sequence[str], *, name: str) -> bytes:
    """The model that computes `outputs` and nothing else.

    An input that the file gives a default for is asked for in the part.

    Args:
        data: the file; nodes that hold graphs of their own are not followed into.
        outputs: names of outputs of the file.
        name: of the file, for errors.

    Raises:
        OnnxHeaderError: no ONNX file, or it has no such output.
    """
    budget = Budget()
    parts = _Parts()
    pieces: list[bytes | memoryview] = []
    for number, kind, value in fields(memoryview(data), name=name, budget=budget):
        if number == _GRAPH and isinstance(value, memoryview):
            _read(value, parts, name, budget)
        elif kind in (VARINT, LENGTH):
            pieces += _field(number, value)
    missing = [output for output in outputs if output not in parts.outputs]
    if missing:
        raise OnnxHeaderError(f"{name} has no output {', '.join(missing)}")
    nodes, values = _leading_to(outputs, parts, name, budget)
    given = {value for value in values if value in parts.inputs}
    kept = [value for value in sorted(values - given) if value in parts.constants]
    # Pieces of the file until the very end: weights are copied once.
    graph: list[bytes | memoryview] = []
    for number, value in parts.rest:
        graph += _field(number, value)
    for place in sorted(nodes):
        graph += _field(_NODE, parts.nodes[place])
    for constant in kept:
        graph += _field(_CONSTANT, parts.constants[constant])
    for item in sorted(given):
        graph += _field(_INPUT, parts.inputs[item])
    for output in outputs:
        graph += _field(_OUTPUT, parts.outputs[output])
    length = sum(map(len, graph))
    return b"".join([*pieces, _varint(_GRAPH << 3 | LENGTH), _varint(length), *graph])


def _read(graph: memoryview, parts: _Parts, name: str, budget: Budget) -> None:
    for number, _, value in fields(graph, name=name, budget=budget):
        if not isinstance(value, memoryview):
            continue
        if number == _NODE:
            for made in _names(value, 2, name, budget):
                parts.maker[made] = len(parts.nodes)
            parts.nodes.append(value)
        elif number == _CONSTANT:
            parts.constants[next(_names(value, _TENSOR_NAME, name, budget), "")] = value
        elif number == _INPUT:
            parts.inputs[next(_names(value, 1, name, budget), "")] = value
        elif number == _OUTPUT:
            parts.outputs[next(_names(value, 1, name, budget), "")] = value
        elif number == _GRAPH_NAME:
            parts.rest.append((number, value))


def _leading_to(outputs: Sequence[str], parts: _Parts, name: str, budget: Budget) -> tuple[set[int], set[str]]:
    """The nodes that lead to outputs, and the values that those take."""
    nodes: set[int] = set()
    values: set[str] = set()
    waiting = list(outputs)
    while waiting:
        place = parts.maker.get(waiting.pop())
        if place is None or place in nodes:
            continue
        nodes.add(place)
        taken = [value for value in _names(parts.nodes[place], 1, name, budget) if value]
        values.update(taken)
        waiting.extend(taken)
    return nodes, values


def _names(message: memoryview, number: int, name: str, budget: Budget) -> Iterator[str]:
    for found, kind, value in fields(message, name=name, budget=budget):
        if found == number and kind == LENGTH:
            yield text(value)


def _field(number: int, value: int | memoryview) -> tuple[bytes | memoryview, ...]:
    if isinstance(value, int):
        return _varint(number << 3 | VARINT), _varint(value)
    return _varint(number << 3 | LENGTH), _varint(len(value)), value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
