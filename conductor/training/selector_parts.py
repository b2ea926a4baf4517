"""The trained selection as parts of the planner's model: names, inputs and outputs that inference relies on."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from conductor.policy.parts import WIDTH
from conductor.policy.selecting_index import KEPT_TOKENS
from conductor.training.encoder import Bottom
from conductor.training.parts import Part
from conductor.training.selector import EDGES, HIDDEN, MOVES, RANK, Memory, SelectorModel
from conductor.training.selector_reading import FEATURES, FOREIGN, TOKEN

_READ = ("top", "vector", "tokens", "weights")


class _Feedback(nn.Module):
    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def forward(self, tools: Tensor, verdicts: Tensor) -> Tensor:
        return self.memory.of_feedback(tools, verdicts)


def load_selector(checkpoint: Path) -> SelectorModel:
    """The model with the weights of a safetensors file.

    Raises:
        RuntimeError: the file is of another model.
    """
    model = SelectorModel()
    model.load_state_dict(load_file(checkpoint))
    return model.eval()


def selector_parts(checkpoint: Path) -> list[Part]:
    """The parts of a trained selection, without the shared `bottom`."""
    return parts_of(load_selector(checkpoint))


def bottom_part(bottom: Bottom) -> Part:
    """The shared layers."""
    ids, mask = torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)
    axes = {0: "texts", 1: "pieces"}
    return Part(
        name="bottom",
        module=bottom,
        inputs={"ids": ids, "mask": mask},
        outputs=("states",),
        dynamic={"ids": axes, "mask": axes, "states": axes},
    )


def parts_of(model: SelectorModel) -> list[Part]:
    """The parts of `model`, which go on sharing its weights."""
    ones = torch.ones
    text = {0: "readers", 1: "read_length"}
    read_axes = {"top": text, "tokens": text, "weights": text, "vector": {0: "readers"}}
    mask = ones(2, 7, dtype=torch.int64)
    short = {0: "lists", 1: "entries"}
    rows = {0: "lists", 1: "rows"}
    paths = {0: "paths"}
    reader = Part(
        name="select_reader",
        module=model.reader,
        inputs={"states": torch.randn(2, 7, WIDTH), "mask": mask},
        outputs=_READ,
        dynamic={"states": text, "mask": text, **read_axes},
    )
    foreign = Part(
        name="select_foreign",
        module=model.foreign,
        inputs={"vectors": torch.randn(2, 7, FOREIGN), "mask": mask},
        outputs=_READ,
        dynamic={"vectors": text, "mask": text, **read_axes},
    )
    relevance = Part(
        name="select_relevance",
        module=model.relevance,
        inputs={
            "vector": torch.randn(2, WIDTH),
            "tokens": torch.randn(2, 7, TOKEN),
            "weights": ones(2, 7) / 7,
            "tools": torch.randn(5, WIDTH),
            "tool_tokens": torch.randn(5, KEPT_TOKENS, TOKEN),
            "tool_mask": ones(5, KEPT_TOKENS),
        },
        outputs=("features",),
        dynamic={
            "vector": {0: "readers"},
            "tokens": text,
            "weights": text,
            "tools": {0: "tools"},
            "tool_tokens": {0: "tools"},
            "tool_mask": {0: "tools"},
            "features": {0: "readers", 1: "tools"},
        },
        weights="fp32",
    )
    memory = Part(
        name="select_memory",
        module=model.memory,
        inputs={"top": torch.randn(2, 7, WIDTH), "mask": mask},
        outputs=("memory",),
        dynamic={"top": text, "mask": text, "memory": text},
    )
    feedback = Part(
        name="select_feedback",
        module=_Feedback(model.memory),
        inputs={"tools": torch.randn(2, 3, WIDTH), "verdicts": torch.zeros(2, 3, dtype=torch.int64)},
        outputs=("memory",),
        dynamic={"tools": text, "verdicts": text, "memory": text},
    )
    joint = Part(
        name="select_joint",
        module=model.joint,
        inputs={
            "memory": torch.randn(2, 7, HIDDEN),
            "memory_mask": ones(2, 7),
            "tools": torch.randn(2, 5, WIDTH),
            "features": torch.randn(2, 5, FEATURES),
            "mask": ones(2, 5),
            "edges": torch.zeros(2, 5, 5, EDGES),
            "given": ones(2),
            "verdicts": torch.zeros(2, 5, dtype=torch.int64),
        },
        outputs=("entries", "unary", "keys", "leaves", "enters", "memory_keys", "memory_values"),
        dynamic={
            "memory": rows,
            "memory_mask": rows,
            "tools": {0: "lists", 1: "short"},
            "features": {0: "lists", 1: "short"},
            "mask": {0: "lists", 1: "short"},
            "edges": {0: "lists", 1: "short", 2: "short_too"},
            "given": {0: "lists"},
            "verdicts": {0: "lists", 1: "short"},
            "entries": short,
            "unary": short,
            "keys": short,
            "leaves": short,
            "enters": short,
            "memory_keys": rows,
            "memory_values": rows,
        },
    )
    return [reader, foreign, relevance, memory, feedback, joint, _step(model, short, rows, paths)]


def _step(model: SelectorModel, short: dict[int, str], rows: dict[int, str], paths: dict[int, str]) -> Part:
    ones = torch.ones
    entry_axes = {0: "paths", 1: "entries"}
    row_axes = {0: "paths", 1: "rows"}
    return Part(
        name="select_step",
        module=model.step,
        inputs={
            "state": torch.randn(3, HIDDEN),
            "previous": torch.randn(3, HIDDEN),
            "leaves": torch.randn(3, RANK),
            "coverage": torch.zeros(3, 7),
            "chosen": torch.zeros(3, 6),
            "linked": torch.zeros(3, 6),
            "moves": torch.zeros(3, 6, MOVES),
            "given": ones(3),
            "unary": torch.randn(1, 6),
            "keys": torch.randn(1, 6, HIDDEN),
            "enters": torch.randn(1, 6, RANK),
            "memory_keys": torch.randn(1, 7, HIDDEN),
            "memory_values": torch.randn(1, 7, HIDDEN),
            "memory_mask": ones(1, 7),
        },
        outputs=("log_probabilities", "state_after", "coverage_after"),
        dynamic={
            "state": paths,
            "previous": paths,
            "leaves": paths,
            "coverage": row_axes,
            "chosen": entry_axes,
            "linked": entry_axes,
            "moves": entry_axes,
            "given": paths,
            "unary": {1: "entries"},
            "keys": {1: "entries"},
            "enters": {1: "entries"},
            "memory_keys": {1: "rows"},
            "memory_values": {1: "rows"},
            "memory_mask": {1: "rows"},
            "log_probabilities": entry_axes,
            "state_after": paths,
            "coverage_after": row_axes,
        },
    )
