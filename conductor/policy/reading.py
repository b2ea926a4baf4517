"""A request as the model has read it, once, for every part that needs it."""

from dataclasses import dataclass

import numpy as np

from conductor.policy.parts import BOTTOM, Floats, PartRunner
from conductor.policy.tokens import TokenBatch, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One request, its word pieces and what the shared layers made of them."""

    request: str
    tokens: TokenBatch
    """One row."""
    states: Floats
    """[length, WIDTH]; row i belongs to piece i."""


def read(parts: PartRunner, tokens: Tokens, request: str) -> Reading:
    """Read `request`; the selection and the arguments are both decided from the result.

    Raises:
        OnnxError: the runtime failed.
    """
    batch = tokens.batch([request])
    found = parts.run(BOTTOM, {"ids": batch.ids, "mask": batch.mask})
    return Reading(request=request, tokens=batch, states=found["states"][0].astype(np.float32, copy=False))
