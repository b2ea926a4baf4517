"""The parts of the planner's model, as inference sees them: named functions from arrays to arrays.

One ONNX file holds every part; `run` computes one of them. In training the same decoding code runs on torch
modules, so the two can be compared plan by plan.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float32]

BOTTOM = "bottom"
"""Part: `ids`, `mask` [batch, length] int64 to `states` [batch, length, WIDTH] float32; shared by all readers."""
WIDTH = 384
"""Length of a token's state."""


class PartRunner(Protocol):
    """Computes one part of the model."""

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """The outputs of `part` by name.

        Args:
            part: Name of the part.
            inputs: Its inputs by name; shapes as the part says.

        Raises:
            OnnxError: the runtime failed.
        """
        ...
