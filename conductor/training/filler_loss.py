"""How far the scores of the joint pass are from any of the right ways to fill each argument."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from conductor.policy.filling_kinds import END, FIRST, INSIDE, LIST, OPTION, REFERENCE, START

_LIST_WEIGHT = 0.5


def filler_loss(outputs: tuple[Tensor, ...], targets: Mapping[str, Tensor], mask: Tensor) -> Tensor:
    """Mean over the arguments of -log of the probability of all right ways together.

    Args:
        outputs: Of `FillJoint`.
        targets: As `filler_batches` builds them.
        mask: [batch, pieces], 1 where there is a piece.
    """
    kind, pointers, option, reference, span = (value.float() for value in outputs)
    kinds = functional.log_softmax(kind, dim=-1)
    starts = functional.log_softmax(pointers[:, :, START], dim=-1)
    spans = targets["spans"]
    way = torch.gather(kinds, 2, spans[..., 0])
    way = way + torch.gather(starts, 2, spans[..., 1]) + _ends(pointers[:, :, END], span, spans)
    way = way.masked_fill(spans[..., 0] == 0, _NEVER)
    options = functional.log_softmax(option, dim=-1) + kinds[..., OPTION, None]
    references = functional.log_softmax(reference, dim=-1) + kinds[..., REFERENCE, None]
    ways = torch.cat(
        [
            kinds.masked_fill(~targets["kinds"], _NEVER),
            way,
            options.masked_fill(~targets["options"], _NEVER),
            references.masked_fill(~targets["references"], _NEVER),
        ],
        dim=-1,
    )
    weight = targets["weight"]
    loss = -(torch.logsumexp(ways, dim=-1) * weight).sum() / weight.sum().clamp(min=1)
    return loss + _LIST_WEIGHT * _list_loss(pointers, targets, mask)


_NEVER = -1e4


def _ends(pointer: Tensor, span: Tensor, spans: Tensor) -> Tensor:
    """[batch, items, spans]: log-probability of each span's end, given where it begins.

    Args:
        pointer: To the end [batch, items, pieces].
        span: [batch, pieces, pieces].
        spans: [batch, items, spans, 3], kind, first and last piece.
    """
    batch, items, count, _ = spans.shape
    rows = spans[..., 1].reshape(batch, items * count, 1).expand(-1, -1, span.shape[2])
    given = torch.gather(span, 1, rows).reshape(batch, items, count, -1)
    ends = functional.log_softmax(given + pointer[:, :, None], dim=-1)
    return torch.gather(ends, 3, spans[..., 2:]).squeeze(3)


def _list_loss(pointers: Tensor, targets: Mapping[str, Tensor], mask: Tensor) -> Tensor:
    listed = targets["kinds"][..., LIST].float()[:, :, None] * mask[:, None, :].float()
    total = torch.zeros(())
    for pointer, name in ((FIRST, "first"), (INSIDE, "inside")):
        cost = functional.binary_cross_entropy_with_logits(
            pointers[:, :, pointer], targets[name], reduction="none"
        )
        # Where a list begins and goes on is rare among the pieces; a mean over all would drown it.
        total = total + (cost * listed).sum() / targets[name].sum().clamp(min=1)
    return total
