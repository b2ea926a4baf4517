"""Checkpoints that survive `kill -9`: tensors as safetensors, everything else as JSON in the same file."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from podium.errors import InvalidRequest


class CheckpointInvalid(InvalidRequest):
    """A checkpoint that cannot be read."""

    code = "CHECKPOINT_INVALID"
    advice = "Remove the file and start the training again, or point --out at another folder."


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write `state` in one step: after a crash there is the old file or the new one, never half of one.

    Args:
        path: Where; its folder exists.
        state: Nested dicts (string or integer keys) and lists of tensors and JSON values, such as `state_dict()`.
    """
    tensors: dict[str, Tensor] = {}
    written = json.dumps(_without_tensors(state, tensors))
    temporary = path.with_suffix(path.suffix + ".part")
    save_file(tensors, temporary, metadata={"state": written})
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights as a plain safetensors file, in one step."""
    temporary = path.with_suffix(path.suffix + ".part")
    save_file({name: value.detach().clone().contiguous() for name, value in weights.items()}, temporary)
    temporary.replace(path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote.

    Raises:
        CheckpointInvalid: the file is missing or no checkpoint.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            found: dict[str, Any] = _with_tensors(json.loads(file.metadata()["state"]), tensors)
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise CheckpointInvalid(f"{path}: {error!r}") from error
    return found


@contextmanager
def of_this_run(path: Path) -> Iterator[None]:
    """Name the file when what is in it is not the state of such a run.

    Raises:
        CheckpointInvalid: it is of another design.
    """
    try:
        yield
    except (RuntimeError, KeyError, ValueError) as error:
        raise CheckpointInvalid(f"{path} is of another run: {error}") from error


def random_state(generator: np.random.Generator) -> dict[str, Any]:
    """The state of torch's generator and of the one that the data is drawn with."""
    return {"torch": torch.get_rng_state(), "numpy": generator.bit_generator.state}


def restore_random_state(state: Mapping[str, Any], generator: np.random.Generator) -> None:
    """Go on where `random_state` was taken."""
    torch.set_rng_state(state["torch"])
    generator.bit_generator.state = state["numpy"]


def seed_everything(seed: int) -> np.random.Generator:
    """Seed torch, and return the generator that data is drawn with."""
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def _without_tensors(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy: parameters that share memory cannot be saved side by side.
        tensors[name] = value.detach().clone().contiguous()
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"dict": [[key, _without_tensors(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_without_tensors(item, tensors) for item in value]}
    return {"value": value}


def _with_tensors(value: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    match value:
        case {"tensor": name}:
            return tensors[name]
        case {"dict": pairs}:
            return {key: _with_tensors(item, tensors) for key, item in pairs}
        case {"list": items}:
            return [_with_tensors(item, tensors) for item in items]
    return value["value"]
