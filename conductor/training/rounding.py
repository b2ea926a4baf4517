"""Weights as the shipped file stores them: 8 bits, each block of 16 along the summed axis with a scale of its own.

Rounding a second time changes nothing, so what is rounded here computes in torch what the file computes.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

BLOCK = 16
"""Weights that share a scale."""
SMALLEST = 4_096
"""Elements of the smallest matrix that is stored in 8 bits."""
_LARGEST_CODE = 127


def rounded(value: NDArray[Any], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Codes in -127..127 and the scale of each block along `axis`; code times scale is about the value."""
    scales = np.abs(value).max(axis=axis, keepdims=True) / _LARGEST_CODE
    halves = np.maximum(scales, 1e-7).astype(np.float16)
    codes = np.rint(value / halves.astype(np.float32))
    return np.clip(codes, -_LARGEST_CODE, _LARGEST_CODE).astype(np.int8), halves


def block_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape with `axis` split into blocks; the blocks' own axis is the one after it."""
    length = shape[axis]
    size = BLOCK if length % BLOCK == 0 else length
    return (*shape[:axis], length // size, size, *shape[axis + 1 :])


def round_weights(module: nn.Module) -> None:
    """Put in place of the weights of linear layers and tables what 8 bits make of them."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.Linear) and part.weight.numel() >= SMALLEST:
                part.weight.copy_(_rounded_tensor(part.weight, blocks=True))
            elif isinstance(part, nn.Embedding) and part.weight.numel() >= SMALLEST:
                part.weight.copy_(_rounded_tensor(part.weight, blocks=False))


def _rounded_tensor(weight: torch.Tensor, *, blocks: bool) -> torch.Tensor:
    value = weight.detach().cpu().float().numpy()
    shape = block_shape(value.shape, 1) if blocks else value.shape
    codes, scales = rounded(value.reshape(shape), 2 if blocks else 1)
    again = codes.astype(np.float32) * scales.astype(np.float32)
    return torch.from_numpy(again.reshape(value.shape)).to(weight.dtype)
