"""Checkpoints of a training run: one file, replaced as a whole, from which the run goes on after `kill -9`."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from podium.errors import InvalidRequest

_RANDOM = "random"


class CheckpointUnreadable(InvalidRequest):
    """A checkpoint that is damaged or of another run."""

    code = "CHECKPOINT_UNREADABLE"
    advice = "Start the run again without --resume, or give the folder of the same run."


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Tensors by name, and the plain values beside them."""

    tensors: Mapping[str, Tensor]
    values: Mapping[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write a safetensors file; a reader sees the old one or the new one, never a part."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    content = {name: value.detach().contiguous().clone() for name, value in tensors.items()}
    save_file(content, beside, metadata={"values": json.dumps(dict(values), sort_keys=True)})
    with beside.open("rb") as written:
        os.fsync(written.fileno())
    beside.replace(path)


def read_tensors(path: Path) -> Checkpoint:
    """Read what `write_tensors` wrote.

    Raises:
        CheckpointUnreadable: the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
            values = json.loads((opened.metadata() or {}).get("values", "{}"))
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointUnreadable(f"{path}: {error}") from error
    return Checkpoint(tensors=tensors, values=values)


def run_tensors(
    model: nn.Module, optimiser: torch.optim.Optimizer, average: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """All tensors of a run: the model, its moving average, the optimiser and the random numbers."""
    found = {f"model.{name}": value for name, value in model.state_dict().items()}
    found |= {f"average.{name}": value for name, value in average.items()}
    for number, state in optimiser.state_dict()["state"].items():
        found |= {f"optimiser.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    found[_RANDOM] = torch.get_rng_state()
    return found


def restore_run(
    checkpoint: Checkpoint, model: nn.Module, optimiser: torch.optim.Optimizer, average: dict[str, Tensor]
) -> None:
    """Put everything back as `run_tensors` found it.

    Raises:
        CheckpointUnreadable: it is of another model.
    """
    tensors = checkpoint.tensors
    try:
        model.load_state_dict(_under("model.", tensors))
    except RuntimeError as error:
        raise CheckpointUnreadable(f"the checkpoint is of another model: {error}") from error
    average.clear()
    average.update(_under("average.", tensors))
    states: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimiser.", tensors).items():
        number, _, key = name.partition(".")
        states.setdefault(int(number), {})[key] = value
    content = optimiser.state_dict()
    optimiser.load_state_dict({"state": states, "param_groups": content["param_groups"]})
    torch.set_rng_state(tensors[_RANDOM].to(torch.uint8))


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
