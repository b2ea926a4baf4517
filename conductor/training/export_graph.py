"""Merges the exported graphs of parts into one: named apart, equal constants kept once, weights stored small.

Weights of `int8` are stored by blocks of 16 along the axis that is summed over, each block with a scale of its
own, and `fp16` as halves. Both become floats again when the file is loaded (the runtime folds constants), so the
model computes in floats and only the rounding of weights tells it from torch. Tables that are looked up
(embeddings) have one scale a row and stay small in memory: only the rows that were looked up become floats.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from conductor.training.parts import Part
from conductor.training.rounding import SMALLEST, block_shape, rounded

_OPSET = 17
_IR_VERSION = 8


@dataclass(slots=True, kw_only=True)
class Merged:
    """The graph as it grows, part by part."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    """By the name that follows from their content."""
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    defaults: list[onnx.TensorProto] = field(default_factory=list)
    """The smallest value of each input, so that every input may be left out."""
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """Weights that nodes make out of stored ones already."""

    def add(self, part: Part, model: onnx.ModelProto) -> None:
        """Take in the graph of one part."""
        prefixed = onnx.compose.add_prefix(model, f"{part.name}.")
        graph = prefixed.graph
        constants = {item.name: item for item in graph.initializer}
        _take_constants_out_of_nodes(graph, constants)
        uses = _uses(graph, constants)
        renamed: dict[str, str] = {}
        for name, tensor in constants.items():
            renamed[name] = self._constant(numpy_helper.to_array(tensor), uses.get(name, []), part.weights)
        for node in graph.node:
            self._add_node(node, renamed)
        self.outputs.extend(graph.output)
        for value, (name, example) in zip(graph.input, part.inputs.items(), strict=True):
            if value.name != f"{part.name}.{name}":
                raise ValueError(f"part {part.name}: input {value.name} where {name} was given")
            self.inputs.append(value)
            open_axes = part.dynamic.get(name, {})
            smallest = tuple(slice(0, 1) if axis in open_axes else slice(None) for axis in range(example.dim()))
            self.defaults.append(numpy_helper.from_array(example[smallest].contiguous().numpy(), value.name))

    def model(self, metadata: Mapping[str, str]) -> onnx.ModelProto:
        """The whole as a model; `metadata` as ONNX keeps it."""
        graph = helper.make_graph(
            self.nodes, "planner", self.inputs, self.outputs, [*self.constants.values(), *self.defaults]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        model.producer_name = "podium"
        helper.set_model_props(model, dict(metadata))
        return model

    def _constant(self, value: NDArray[np.generic], uses: Sequence[tuple[str, int]], weights: str) -> str:
        """The name of a constant, kept once whatever its parts call it."""
        content = f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
        name = "c." + hashlib.sha256(content).hexdigest()[:20]
        axis = _summed_axis(value, uses)
        if weights == "fp32" or axis is None:
            self._keep(name, value)
            return name
        name = f"{name}.{weights}"
        if name not in self.made:
            self.made.add(name)
            if uses[0][0] == "Gather":
                self._keep_table(name, value, weights)
            elif weights == "fp16":
                self._keep(f"{name}.half", value.astype(np.float16))
                self._node("Cast", [f"{name}.half"], name, to=TensorProto.FLOAT)
            else:
                self._keep_blocks(name, value.astype(np.float32), axis)
        return name

    def _keep_blocks(self, name: str, value: NDArray[np.float32], axis: int) -> None:
        codes, scales = rounded(value.reshape(block_shape(value.shape, axis)), axis + 1)
        self._keep(f"{name}.codes", codes)
        self._keep(f"{name}.scales", scales)
        self._keep(f"{name}.shape", np.array(value.shape, dtype=np.int64))
        self._node("Cast", [f"{name}.codes"], f"{name}.1", to=TensorProto.FLOAT)
        self._node("Cast", [f"{name}.scales"], f"{name}.2", to=TensorProto.FLOAT)
        self._node("Mul", [f"{name}.1", f"{name}.2"], f"{name}.3")
        self._node("Reshape", [f"{name}.3", f"{name}.shape"], name)

    def _keep_table(self, name: str, value: NDArray[np.generic], weights: str) -> None:
        if weights == "fp16":
            self._keep(f"{name}.halves", value.astype(np.float16))
            return
        codes, scales = rounded(value.astype(np.float32), 1)
        self._keep(f"{name}.codes", codes)
        self._keep(f"{name}.scales", scales)

    def _add_node(self, node: onnx.NodeProto, renamed: Mapping[str, str]) -> None:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        table = node.input[0] if node.op_type == "Gather" else ""
        out, places = node.output[0], node.input[1] if table else ""
        # Only the rows that are looked up become floats again.
        if f"{table}.halves" in self.constants:
            self._node("Gather", [f"{table}.halves", places], f"{out}.1", axis=0)
            self._node("Cast", [f"{out}.1"], out, to=TensorProto.FLOAT)
            return
        if f"{table}.codes" not in self.constants:
            self.nodes.append(node)
            return
        self._node("Gather", [f"{table}.codes", places], f"{out}.1", axis=0)
        self._node("Gather", [f"{table}.scales", places], f"{out}.2", axis=0)
        self._node("Cast", [f"{out}.1"], f"{out}.3", to=TensorProto.FLOAT)
        self._node("Cast", [f"{out}.2"], f"{out}.4", to=TensorProto.FLOAT)
        self._node("Mul", [f"{out}.3", f"{out}.4"], out)

    def _keep(self, name: str, value: NDArray[np.generic]) -> None:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)

    def _node(self, operator: str, inputs: Sequence[str], output: str, **attributes: int) -> None:
        node = helper.make_node(operator, inputs, [output], name=output)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)


def _summed_axis(value: NDArray[np.generic], uses: Sequence[tuple[str, int]]) -> int | None:
    """The axis of a weight along which blocks share a scale; None for what is stored as it is."""
    if value.dtype != np.float32 or value.ndim < 2 or value.size < SMALLEST or not uses:
        return None
    kinds = set(uses)
    if kinds == {("Gather", 0)} and value.ndim == 2:
        return 1
    if kinds == {("MatMul", 1)} and value.ndim == 2:
        return 0
    if kinds == {("Gemm", 1)}:
        return 1  # torch exports a linear layer with its weight transposed
    if kinds <= {("GRU", 1), ("GRU", 2), ("LSTM", 1), ("LSTM", 2)}:
        return 2
    return None


def _uses(graph: onnx.GraphProto, constants: Mapping[str, onnx.TensorProto]) -> dict[str, list[tuple[str, int]]]:
    """For each constant the operators that take it, and as which input."""
    found: dict[str, list[tuple[str, int]]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name in constants:
                found.setdefault(name, []).append((_kind(node), place))
    return found


def _kind(node: onnx.NodeProto) -> str:
    if node.op_type == "Gather" and any(item.name == "axis" and item.i != 0 for item in node.attribute):
        return "Gather on another axis"
    if node.op_type == "Gemm" and not any(item.name == "transB" and item.i == 1 for item in node.attribute):
        return "Gemm with a weight that is not transposed"
    return str(node.op_type)


def _take_constants_out_of_nodes(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]) -> None:
    kept = []
    for node in graph.node:
        if any(item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for item in node.attribute):
            raise ValueError(f"{node.name} holds a graph of its own: export the part without branches")
        if node.op_type != "Constant":
            kept.append(node)
            continue
        constants[node.output[0]] = next(item.t for item in node.attribute if item.name == "value")
    del graph.node[:]
    graph.node.extend(kept)
