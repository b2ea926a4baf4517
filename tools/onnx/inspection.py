"""Look at an ONNX file without loading it, and refuse what must not come near a runtime.

Everything is read from the file's own bytes: format version, operator sets, inputs and outputs, the number of
nodes, and whether it wants to read other files. Messages that occur twice are merged, as protobuf does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grpc import StatusCode

from tools.onnx.errors import OnnxError
from tools.onnx.header import OnnxHeader, OnnxHeaderError, read_header
from tools.onnx.interface import DTYPES, Interface, TensorSpec, mismatches
from tools.onnx.wire import VARINT, Budget, fields, signed, text

MAX_IR_VERSION = 13
"""Newest model format the oldest supported runtime reads."""

MAX_OPSETS: Mapping[str, int] = {"": 25, "ai.onnx.ml": 5}
"""Newest operator sets the oldest supported runtime knows; other domains are left to the trial load."""

_DEEPEST_GRAPH = 24


class ModelRefused(OnnxError):
    """An ONNX file was looked at and must not be loaded; `evidence` lists every reason."""

    code = "ONNX_REFUSED"
    status = StatusCode.FAILED_PRECONDITION
    advice = "Export the model again so that it keeps what the message names, under a new version."


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionLimits:
    """What an ONNX file may ask for."""

    max_bytes: int = 512 * 2**20
    max_nodes: int = 100_000
    max_ir_version: int = MAX_IR_VERSION
    max_opsets: Mapping[str, int] = field(default_factory=lambda: MAX_OPSETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What an ONNX file is, read without loading it."""

    header: OnnxHeader
    interface: Interface
    size_bytes: int
    nodes: int
    """Nodes of the graph, of its sub-graphs and of its functions."""
    operators: tuple[str, ...]
    """Sorted; with the domain before a colon where it is not ONNX's own."""
    external_data: bool
    """It refers to tensors in other files."""

    def to_json(self) -> dict[str, Any]:
        """As commands show it."""
        return {
            "ir_version": self.header.ir_version,
            "opsets": {domain or "ai.onnx": version for domain, version in self.header.opsets.items()},
            **self.interface.to_json(),
            "size_bytes": self.size_bytes,
            "nodes": self.nodes,
            "operators": list(self.operators),
        }


def inspect(data: bytes, *, name: str, limits: InspectionLimits = InspectionLimits()) -> Inspection:
    """Read what an ONNX file is; refuses nothing but what cannot be read.

    Raises:
        ModelRefused: larger than allowed, truncated, or not an ONNX model.
    """
    if len(data) > limits.max_bytes:
        raise ModelRefused(f"{name} has {len(data)} bytes; at most {limits.max_bytes} are loaded")
    try:
        header = read_header(data, name=name)
        graph = _Graph(name=name, limit=limits.max_nodes)
        for number, _, value in fields(memoryview(data), name=name, budget=graph.budget):
            if number == 7 and isinstance(value, memoryview):
                graph.read(value, depth=0)
            elif number == 25 and isinstance(value, memoryview):
                graph.read_function(value)
    except (OnnxHeaderError, _TooMuch) as error:
        raise ModelRefused(f"model {error}") from error
    return Inspection(
        header=header,
        interface=graph.interface(),
        size_bytes=len(data),
        nodes=graph.nodes,
        operators=tuple(sorted(graph.operators)),
        external_data=graph.external_data,
    )


def require(
    inspection: Inspection,
    *,
    name: str,
    expected: Interface | None = None,
    limits: InspectionLimits = InspectionLimits(),
) -> None:
    """Refuse a model that the runtime cannot read, that reads other files, or that has other inputs and outputs.

    Args:
        inspection: what `inspect` found.
        name: of the model, for errors.
        expected: what it is asked to take and give; anything when None.
        limits: the newest versions that are read.

    Raises:
        ModelRefused: `evidence` lists every reason.
    """
    header, reasons = inspection.header, []
    if header.ir_version > limits.max_ir_version:
        reasons.append(f"IR version {header.ir_version}, newest supported is {limits.max_ir_version}")
    for domain, version in header.opsets.items():
        newest = limits.max_opsets.get(domain)
        if newest is not None and not 1 <= version <= newest:
            reasons.append(f"opset {version} of {domain or 'ai.onnx'}, newest supported is {newest}")
    if inspection.external_data:
        reasons.append("tensors are kept in other files, which nobody hashed")
    if expected is not None:
        reasons.extend(mismatches(expected, inspection.interface))
    if reasons:
        raise ModelRefused(f"model {name} is refused: {'; '.join(reasons)}", evidence=reasons)


class _TooMuch(ValueError):
    pass


@dataclass(slots=True, kw_only=True)
class _Graph:
    name: str
    limit: int
    nodes: int = 0
    operators: set[str] = field(default_factory=set)
    external_data: bool = False
    inputs: list[TensorSpec] = field(default_factory=list)
    outputs: list[TensorSpec] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)
    budget: Budget = field(default_factory=Budget)

    def interface(self) -> Interface:
        """What callers give and get; an input with a constant of its name is a default, not a demand."""
        given = tuple(item for item in self.inputs if item.name not in self.constants)
        return Interface(inputs=given, outputs=tuple(self.outputs))

    def read(self, message: memoryview, *, depth: int) -> None:
        if depth > _DEEPEST_GRAPH:
            raise _TooMuch(f"{self.name} nests graphs more than {_DEEPEST_GRAPH} deep")
        for number, part in self._parts(message):
            if number == 1:
                self._node(part, depth)
            elif number == 5:
                self._tensor(part, constant=depth == 0)
            elif number == 15:
                self._sparse(part)
            elif depth == 0 and number == 11:
                self.inputs.append(self._value(part))
            elif depth == 0 and number == 12:
                self.outputs.append(self._value(part))

    def read_function(self, message: memoryview) -> None:
        for number, part in self._parts(message):
            if number == 7:
                self._node(part, 1)

    def _parts(self, message: memoryview) -> Iterator[tuple[int, memoryview]]:
        for number, _, value in fields(message, name=self.name, budget=self.budget):
            if isinstance(value, memoryview):
                yield number, value

    def _node(self, message: memoryview, depth: int) -> None:
        self.nodes += 1
        if self.nodes > self.limit:
            raise _TooMuch(f"{self.name} has more than {self.limit} nodes")
        operator = domain = ""
        for number, part in self._parts(message):
            if number == 4:
                operator = text(part)
            elif number == 7:
                domain = text(part)
            elif number == 5:
                self._attribute(part, depth)
        self.operators.add(f"{domain}:{operator}" if domain not in ("", "ai.onnx") else operator)

    def _attribute(self, message: memoryview, depth: int) -> None:
        for number, part in self._parts(message):
            if number in (5, 10):
                self._tensor(part)
            elif number in (6, 11):
                self.read(part, depth=depth + 1)
            elif number in (22, 23):
                self._sparse(part)

    def _sparse(self, message: memoryview) -> None:
        for number, part in self._parts(message):
            if number in (1, 2):
                self._tensor(part)

    def _tensor(self, message: memoryview, *, constant: bool = False) -> None:
        for number, kind, value in fields(message, name=self.name, budget=self.budget):
            if number == 13 or (number == 14 and kind == VARINT and value):
                self.external_data = True
            elif constant and number == 8:
                self.constants.add(text(value))

    def _value(self, message: memoryview) -> TensorSpec:
        name = dtype = ""
        shape: tuple[int | None, ...] = ()
        for number, part in self._parts(message):
            if number == 1:
                name = text(part)
            elif number == 2:
                dtype, shape = self._type(part)
        return TensorSpec(name=name, dtype=dtype, shape=shape)

    def _type(self, message: memoryview) -> tuple[str, tuple[int | None, ...]]:
        dtype = "unknown"
        shape: tuple[int | None, ...] = ()
        for number, part in self._parts(message):
            if number != 1:  # a sequence, a map, an optional: no tensor, so nothing can ask for it
                continue
            for inner, kind, value in fields(part, name=self.name, budget=self.budget):
                if inner == 1 and kind == VARINT and isinstance(value, int):
                    dtype = DTYPES.get(value, "unknown")
                elif inner == 2 and isinstance(value, memoryview):
                    shape = tuple(self._dimension(item) for place, item in self._parts(value) if place == 1)
        return dtype, shape

    def _dimension(self, message: memoryview) -> int | None:
        length: int | None = None
        for number, kind, value in fields(message, name=self.name, budget=self.budget):
            if number == 1 and kind == VARINT and isinstance(value, int):
                length = signed(value)
            elif number == 2:
                length = None
        # Some exporters write -1 for "any".
        return length if length is not None and length >= 0 else None
