"""The parts of the planner that fill arguments, as training and export take them: `fill_tool` and `fill_joint`."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from conductor.policy.filling_fields import TOOL
from conductor.policy.filling_inputs import (
    ITEM_FEATURES,
    JOINT,
    OPTION_FEATURES,
    PAIR_FEATURES,
    PIECE_FEATURES,
)
from conductor.policy.parts import WIDTH
from conductor.training.filler import FillJoint, FillTool
from conductor.training.parts import Part


def filler_parts(checkpoint: Path | None = None) -> list[Part]:
    """The filler's parts, untrained without a checkpoint.

    Args:
        checkpoint: A safetensors file that `train_filler` wrote.
    """
    joint = FillJoint()
    if checkpoint is not None:
        joint.load_state_dict(load_file(checkpoint))
    joint.eval()
    return parts_of(joint)


def parts_of(joint: FillJoint) -> list[Part]:
    """The parts around a module that is being trained."""
    texts, rows, length, items, options = 2, 3, 6, 5, 4
    tool = Part(
        name=TOOL,
        module=FillTool(),
        inputs={
            "states": torch.randn(texts, length, WIDTH),
            "mask": torch.ones(texts, length, dtype=torch.int64),
            "pool": torch.rand(texts, rows, length),
        },
        outputs=("vectors",),
        dynamic={
            "states": {0: "fill_texts", 1: "fill_text_length"},
            "mask": {0: "fill_texts", 1: "fill_text_length"},
            "pool": {0: "fill_texts", 1: "fill_rows", 2: "fill_text_length"},
            "vectors": {0: "fill_texts", 1: "fill_rows"},
        },
        weights="fp32",
    )
    pieces = {0: "fill_batch", 1: "fill_length"}
    things = {0: "fill_batch", 1: "fill_items"}
    offered = {0: "fill_batch", 1: "fill_items", 2: "fill_options"}
    paired = {0: "fill_batch", 1: "fill_items", 2: "fill_items"}
    return [
        tool,
        Part(
            name=JOINT,
            module=joint,
            inputs={
                "states": torch.randn(1, length, WIDTH),
                "mask": torch.ones(1, length, dtype=torch.int64),
                "pieces": torch.rand(1, length, PIECE_FEATURES),
                "items": torch.randn(1, items, 2 * WIDTH),
                "item_kind": torch.tensor([[1, 2, 3, 1, 2]]),
                "item_step": torch.tensor([[0, 0, 0, 1, 1]]),
                "item_features": torch.rand(1, items, ITEM_FEATURES),
                "options": torch.randn(1, items, options, WIDTH),
                "option_mask": torch.ones(1, items, options),
                "option_features": torch.rand(1, items, options, OPTION_FEATURES),
                "pairs": torch.rand(1, items, items, PAIR_FEATURES),
            },
            outputs=("kind", "pointers", "option", "reference", "span"),
            dynamic={
                "states": pieces,
                "mask": pieces,
                "pieces": pieces,
                "items": things,
                "item_kind": things,
                "item_step": things,
                "item_features": things,
                "options": offered,
                "option_mask": offered,
                "option_features": offered,
                "pairs": paired,
                "kind": things,
                "pointers": {0: "fill_batch", 1: "fill_items", 3: "fill_length"},
                "option": offered,
                "reference": paired,
                "span": {0: "fill_batch", 1: "fill_length", 2: "fill_length"},
            },
        ),
    ]
