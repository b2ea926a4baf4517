"""What became of an earlier plan as rows of the selector's memory, behind those of the request."""

from collections.abc import Sequence

import torch
from torch import Tensor

from conductor.training.selector import Memory

Told = Sequence[Sequence[tuple[int, int]]]
"""For each request (place of the tool, number of the verdict) of each step; empty where nothing ran before."""


def with_told(memory: Memory, rows: Tensor, mask: Tensor, tools: Tensor, told: Told) -> tuple[Tensor, Tensor]:
    """Memory and mask with the rows of what was told; as they were when nothing was told to anybody.

    Args:
        memory: The part of the model that makes the rows.
        rows: Of the requests [n, m, HIDDEN].
        mask: [n, m], 1 where there is a row.
        tools: Vectors [tools, WIDTH].
        told: For each request.
    """
    most = max((len(steps) for steps in told), default=0)
    if not most:
        return rows, mask
    places = torch.zeros(len(told), most, dtype=torch.int64)
    verdicts = torch.zeros(len(told), most, dtype=torch.int64)
    on = torch.zeros(len(told), most, dtype=mask.dtype)
    for row, steps in enumerate(told):
        for at, (place, verdict) in enumerate(steps):
            places[row, at], verdicts[row, at], on[row, at] = place, verdict, 1
    found = memory.of_feedback(tools[places], verdicts)
    return torch.cat((rows, found.to(rows.dtype)), dim=1), torch.cat((mask, on), dim=1)


def verdicts_of(listed: Tensor, told: Told) -> Tensor:
    """[n, k], int64: 1 + the number of the last verdict on each tool of the short list, 0 where there is none."""
    found = torch.zeros(listed.shape, dtype=torch.int64)
    for row, steps in enumerate(told):
        for place, verdict in steps:
            found[row, listed[row] == place] = 1 + verdict
    return found


def told_about(listed: Tensor, told: Told) -> Tensor:
    """[n, k], true where something was told of a tool of the short list `listed` [n, k].

    What is told says more of such a tool than its text: its text must not be punished for it.
    """
    found = torch.zeros(listed.shape, dtype=torch.bool)
    for row, steps in enumerate(told):
        for place in {place for place, _ in steps}:
            found[row] |= listed[row] == place
    return found
