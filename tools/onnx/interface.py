"""What goes into an ONNX model and what comes out: names, number types, shapes; and whether two of them fit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DTYPES: Mapping[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}
"""ONNX's numbers of element types, as numpy calls them."""

_LONGEST_SHAPE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output."""

    name: str
    dtype: str
    """As numpy calls it: float32, int64, string."""
    shape: tuple[int | None, ...]
    """None where any length will do."""

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if size is None else str(size) for size in self.shape)}]"

    def to_json(self) -> dict[str, Any]:
        """As settings and commands show it."""
        return {"dtype": self.dtype, "shape": list(self.shape)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """All inputs and outputs of a model, in order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """`{"inputs": {name: {"dtype", "shape"}}, "outputs": ...}`."""
        return {
            "inputs": {item.name: item.to_json() for item in self.inputs},
            "outputs": {item.name: item.to_json() for item in self.outputs},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Interface":
        """The inverse of `to_json`.

        Raises:
            ValueError: another form; the message names the place.
        """
        if unknown := set(value) - {"inputs", "outputs"}:
            raise ValueError(f"an interface has inputs and outputs, not {sorted(unknown)}")
        return cls(
            inputs=_specs(value.get("inputs", {}), "inputs"), outputs=_specs(value.get("outputs", {}), "outputs")
        )


def mismatches(expected: Interface, actual: Interface) -> list[str]:
    """Why a model cannot stand where `expected` is asked for; empty when it can.

    A model may take any length where one is expected. It may not fix a length where any is expected, and it may
    neither lack nor add an input or output.
    """
    return [
        *_differences("input", expected.inputs, actual.inputs),
        *_differences("output", expected.outputs, actual.outputs),
    ]


def fits(expected: TensorSpec, actual: TensorSpec) -> bool:
    """Whether a tensor of the model can stand for the expected one."""
    return (
        expected.dtype == actual.dtype
        and len(expected.shape) == len(actual.shape)
        and all(have is None or have == want for want, have in zip(expected.shape, actual.shape, strict=True))
    )


def _differences(role: str, expected: Iterable[TensorSpec], actual: Iterable[TensorSpec]) -> list[str]:
    wanted, present = {item.name: item for item in expected}, {item.name: item for item in actual}
    found = [f"{role} {name!r} is missing" for name in wanted if name not in present]
    found += [f"{role} {name!r} is not expected" for name in present if name not in wanted]
    found += [
        f"{role} {name!r} is {present[name]}, expected {spec}"
        for name, spec in wanted.items()
        if name in present and not fits(spec, present[name])
    ]
    return found


def _specs(value: Any, place: str) -> tuple[TensorSpec, ...]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} is not an object of tensors by name")
    return tuple(_spec(str(name), item, f"{place}.{name}") for name, item in value.items())


def _spec(name: str, item: Any, place: str) -> TensorSpec:
    if not isinstance(item, Mapping) or set(item) != {"dtype", "shape"}:
        raise ValueError(f"{place} is not {{dtype, shape}}")
    if item["dtype"] not in DTYPES.values():
        raise ValueError(f"{place}.dtype is {item['dtype']!r}, not one of {sorted(DTYPES.values())}")
    return TensorSpec(name=name, dtype=str(item["dtype"]), shape=shape_from_json(item["shape"], f"{place}.shape"))


def shape_from_json(value: Any, place: str) -> tuple[int | None, ...]:
    """A shape out of a list of lengths, null where any will do.

    Raises:
        ValueError: another form.
    """
    if not isinstance(value, list | tuple) or len(value) > _LONGEST_SHAPE:
        raise ValueError(f"{place} is not a list of lengths")
    for size in value:
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
            raise ValueError(f"{place} has {size!r}; a length is a whole number or null")
    return tuple(value)
