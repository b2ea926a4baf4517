"""The parts of the model as torch modules: training supplies them, the export turns them into one ONNX file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from conductor.policy.parts import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One named function of the model."""

    name: str
    module: nn.Module
    """Takes the inputs by position in their order and returns one tensor or a tuple of them."""
    inputs: Mapping[str, Tensor]
    """Examples by name, of the right types and ranks; export traces the module with them."""
    outputs: tuple[str, ...]
    dynamic: Mapping[str, Mapping[int, str]]
    """For each input and output the axes whose length varies, with a name for the length."""
    weights: Literal["int8", "fp16", "fp32"] = "int8"
    """How its matrices are stored and multiplied in the ONNX file."""


class TorchParts:
    """Runs parts as they are in torch; see `conductor.policy.parts.PartRunner`."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = {part.name: part for part in parts}
        for part in parts:
            part.module.eval()

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """See `PartRunner.run`."""
        known = self._parts[part]
        with torch.inference_mode():
            found = known.module(*(torch.from_numpy(inputs[name]) for name in known.inputs))
        outputs = found if isinstance(found, tuple) else (found,)
        return {name: value.numpy() for name, value in zip(known.outputs, outputs, strict=True)}
