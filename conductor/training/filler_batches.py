"""Labelled requests as padded arrays: what the joint pass takes, and what it should say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conductor.policy.filling_fields import ToolFields
from conductor.policy.filling_inputs import Item, joint_inputs
from conductor.policy.filling_kinds import KINDS, LIST, UNKNOWN
from conductor.policy.filling_text import covering
from conductor.policy.parts import Array, Floats
from conductor.policy.tokens import TokenBatch, Tokens
from conductor.training.filler_labels import FieldLabel, Labelled

_MOST_SPANS = 8
_UNKNOWN_WEIGHT = 0.4
_INPUTS = (
    *("pieces", "items", "item_kind", "item_step", "item_features"),
    *("options", "option_mask", "option_features", "pairs"),
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests with everything but the states of their pieces, which the frozen layers make."""

    tokens: TokenBatch
    inputs: Mapping[str, Tensor]
    targets: Mapping[str, Tensor]


def batch_of(
    requests: Sequence[Labelled],
    tools: Mapping[str, ToolFields],
    tokens: Tokens,
    rng: np.random.Generator | None = None,
) -> Batch:
    """One padded batch.

    Args:
        requests: At least one.
        tools: The fields of every card, by its key.
        tokens: The vocabulary.
        rng: Where given, fields are shuffled and now and then known by their name or their description only.
    """
    texts = tokens.batch([item.request for item in requests])
    rows: list[dict[str, Array]] = []
    goals: list[dict[str, Array]] = []
    for number, item in enumerate(requests):
        spans = texts.spans[number]
        fields = [tools[step.card.key] for step in item.steps]
        if rng is not None:
            fields = [_varied(tool, rng) for tool in fields]
        joint = joint_inputs(item.request, spans, np.zeros((0, 0), dtype=np.float32), fields)
        rows.append({name: joint.arrays[name] for name in _INPUTS})
        goals.append(_targets(item, joint.items, spans, joint.arrays["option_mask"].shape[1]))
    length = texts.ids.shape[1]
    items = max(len(row["items"]) for row in rows)
    options = max(row["option_mask"].shape[1] for row in rows)
    sizes = {"pieces": length, "items": items, "options": options, "spans": _MOST_SPANS}
    inputs = {name: _padded([row[name] for row in rows], _AXES[name], sizes) for name in _INPUTS}
    targets = {name: _padded([goal[name] for goal in goals], _GOALS[name], sizes) for name in _GOALS}
    return Batch(tokens=texts, inputs=inputs, targets=targets)


_AXES = {
    "pieces": ("pieces",),
    "items": ("items",),
    "item_kind": ("items",),
    "item_step": ("items",),
    "item_features": ("items",),
    "options": ("items", "options"),
    "option_mask": ("items", "options"),
    "option_features": ("items", "options"),
    "pairs": ("items", "items"),
}
_GOALS = {
    "kinds": ("items",),
    "spans": ("items", "spans"),
    "options": ("items", "options"),
    "references": ("items", "items"),
    "first": ("items", "pieces"),
    "inside": ("items", "pieces"),
    "weight": ("items",),
}


def _padded(arrays: Sequence[Array], axes: tuple[str, ...], sizes: Mapping[str, int]) -> Tensor:
    first = arrays[0]
    shape = [sizes[axis] for axis in axes] + list(first.shape[len(axes) :])
    found = np.zeros((len(arrays), *shape), dtype=first.dtype)
    for row, array in enumerate(arrays):
        place: Any = (row, *(slice(0, size) for size in array.shape))
        found[place] = array
    return torch.from_numpy(found)


def _varied(tool: ToolFields, rng: np.random.Generator) -> ToolFields:
    """The tool with its fields in another order, some known by one of their texts only."""
    order = rng.permutation(len(tool.inputs)) if rng.random() < 0.3 else np.arange(len(tool.inputs))
    vectors: Floats = tool.vectors.copy()
    count = len(tool.inputs)
    vectors[1 : 1 + count] = vectors[1 + order]
    draw = rng.random(len(vectors))
    vectors[draw < 0.08, 0] = vectors[draw < 0.08, 1]
    vectors[draw > 0.92, 1] = vectors[draw > 0.92, 0]
    return ToolFields(
        inputs=tuple(tool.inputs[index] for index in order),
        outputs=tool.outputs,
        vectors=vectors,
        options=tuple(tool.options[index] for index in order),
    )


def _targets(
    item: Labelled, things: Sequence[Item], spans: Sequence[tuple[int, int]], most: int
) -> dict[str, Array]:
    count, length = len(things), len(spans)
    found: dict[str, Array] = {
        "kinds": np.zeros((count, KINDS), dtype=bool),
        "spans": np.zeros((count, _MOST_SPANS, 3), dtype=np.int64),
        "options": np.zeros((count, most), dtype=bool),
        "references": np.zeros((count, count), dtype=bool),
        "first": np.zeros((count, length), dtype=np.float32),
        "inside": np.zeros((count, length), dtype=np.float32),
        "weight": np.zeros(count, dtype=np.float32),
    }
    for row, thing in enumerate(things):
        if thing.input is None:
            continue
        label = item.steps[thing.step].labels.get(thing.input.path)
        if label is not None:
            _one_target(label, row, things, spans, found)
    return found


def _one_target(
    label: FieldLabel,
    row: int,
    things: Sequence[Item],
    spans: Sequence[tuple[int, int]],
    found: dict[str, Array],
) -> None:
    for kind in label.kinds - {UNKNOWN, LIST}:
        found["kinds"][row, kind] = True
    kept = 0
    for kind, start, end in label.spans[:_MOST_SPANS]:
        covered = covering(spans, start, end)
        if covered and spans[-2][1] >= end:
            found["spans"][row, kept] = (kind, *covered)
            kept += 1
    for option in label.options:
        found["options"][row, option] = True
    for column, other in enumerate(things if label.reference is not None else ()):
        if other.output is not None and (other.step, other.output.name) == label.reference:
            found["references"][row, column] = True
    if LIST in label.kinds and label.items and spans[-2][1] >= label.items[-1][1]:
        _list_target(label, row, spans, found)
    known = kept or label.options or found["references"][row].any() or found["kinds"][row].any()
    found["weight"][row] = 1.0 if known else _UNKNOWN_WEIGHT
    if not known:
        found["kinds"][row, UNKNOWN] = True


def _list_target(label: FieldLabel, row: int, spans: Sequence[tuple[int, int]], found: dict[str, Array]) -> None:
    found["kinds"][row, LIST] = True
    for start, end in label.items:
        covered = covering(spans, start, end)
        if covered:
            found["first"][row, covered[0]] = 1
            found["inside"][row, covered[0] : covered[1] + 1] = 1
