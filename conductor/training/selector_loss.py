"""What the selection is punished for: the short list, the tools on it, and each choice of the pointer."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from conductor.policy.selecting import PLACE, PLACE_SCALE, SHORT_LIST
from conductor.training.feedback_memory import told_about, verdicts_of, with_told
from conductor.training.selector import SelectorModel, sequence_log_probabilities
from conductor.training.selector_batches import Batch, Foreigners, States, ToolReader, request_states

_NEVER = -1e4
_NOISE = 0.05
_SHARPNESS = 20.0
"""Of cosines where vectors alone are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Of one batch."""

    total: Tensor
    pointer: float
    unary: float
    relevance: float
    vector: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a batch is computed from."""

    states: States
    tools: ToolReader
    foreigners: Foreigners
    pieces_dropped: float
    """Share of the word pieces of a request that are hidden."""


def losses_of(
    model: SelectorModel, batch: Batch, sources: Sources, chance: random.Random, *, foreign: bool
) -> Losses:
    """The losses of a batch; `foreign` reads the requests through sentence vectors."""
    if foreign:
        vectors, mask = sources.foreigners.of(batch.requests)
        read = model.foreign(vectors, mask)
    else:
        kept, mask = request_states(sources.states, batch.requests)
        mask = _pieces_dropped(mask, sources.pieces_dropped)
        read = model.reader(kept, mask)
    top, vector, tokens, weights = read
    tools, tool_tokens, tool_mask = sources.tools.read(model.reader, batch.tools, chance)
    right = batch.right.clamp(max=1.0)
    listed = _short_list((vector.float() @ tools.T).detach(), right, batch.candidates)
    rows = torch.arange(len(batch.requests))[:, None]
    features = model.relevance.of_lists(
        vector.float(), tokens, weights.float(), tools[listed], tool_tokens[listed], tool_mask[listed]
    )
    on = batch.candidates[rows, listed].float()
    by_relevance = _relevance_loss(
        features[:, :, 0].float(), right[rows, listed], (on > 0) & ~told_about(listed, batch.told)
    )
    by_vector = _vector_loss(vector.float() @ tools.T, batch)
    edges = batch.edges[listed[:, :, None], listed[:, None, :]]
    edges = torch.cat((edges[..., :1] * batch.given[:, None, None, None], edges[..., 1:]), dim=-1)
    memory, mask = with_told(model.memory, model.memory(top, mask), mask, tools, batch.told)
    verdicts = verdicts_of(listed, batch.told)
    joint = model.joint(memory, mask, tools[listed], features, on, edges, batch.given, verdicts)
    logits = joint[1][:, 1:].float()
    each = functional.binary_cross_entropy_with_logits(logits, right[rows, listed], reduction="none")
    unary = (each * on).sum() / len(rows)
    path, targets, length = _targets(batch, listed)
    places = features[:, :, PLACE] / PLACE_SCALE
    scores = sequence_log_probabilities(model.step, joint, mask, path, batch.given, edges, places).float()
    chosen = torch.logsumexp(scores.masked_fill(~targets, _NEVER), dim=-1)
    pointer = -(chosen * length).sum() / len(rows)
    total = pointer + 0.3 * unary + 0.3 * by_relevance + 0.2 * by_vector
    return Losses(
        total=total,
        pointer=pointer.item(),
        unary=unary.item(),
        relevance=by_relevance.item(),
        vector=by_vector.item(),
    )


def _pieces_dropped(mask: Tensor, share: float) -> Tensor:
    """Hide some pieces, never the first, from which a row would be empty."""
    hidden = (torch.rand(mask.shape) < share).to(mask.dtype)
    hidden[:, 0] = 0
    return mask * (1 - hidden)


def _relevance_loss(relevance: Tensor, right: Tensor, candidates: Tensor) -> Tensor:
    """Each right tool against the wrong ones of the short list."""
    wrong = relevance.masked_fill((right > 0) | ~candidates, _NEVER)
    against = torch.logsumexp(wrong, dim=1, keepdim=True)
    each = functional.softplus(against - relevance) * right
    return each.sum() / right.sum().clamp(min=1.0)


def _vector_loss(cosine: Tensor, batch: Batch) -> Tensor:
    """Each right tool against the wrong ones of the whole batch, by the vectors alone."""
    right = batch.right.clamp(max=1.0)
    scores = cosine.float() * _SHARPNESS
    against = torch.logsumexp(scores.masked_fill(~batch.wrong, _NEVER), dim=1, keepdim=True)
    untold = torch.tensor([float(not steps) for steps in batch.told])[:, None]
    each = functional.softplus(against - scores) * right * untold
    return each.sum() / (right * untold).sum().clamp(min=1.0)


def _short_list(cosine: Tensor, right: Tensor, candidates: Tensor) -> Tensor:
    """Places [n, k]; the right tools are always among them."""
    noisy = cosine + torch.randn_like(cosine) * _NOISE + right * 1e3
    noisy = noisy.masked_fill(~candidates, _NEVER)
    return noisy.topk(min(SHORT_LIST, cosine.shape[1]), dim=1).indices


def _targets(batch: Batch, listed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Entries that are followed [n, steps], that would be right [n, steps+1, k+1], and which steps count."""
    n, width = listed.shape
    steps = max(len(path) for path in batch.paths)
    path = torch.zeros(n, steps, dtype=torch.int64)
    targets = torch.zeros(n, steps + 1, width + 1, dtype=torch.bool)
    counted = torch.zeros(n, steps + 1)
    places = listed.tolist()
    for row, (chosen, ready) in enumerate(zip(batch.paths, batch.ready, strict=True)):
        entry = {tool: at + 1 for at, tool in enumerate(places[row])}
        for at, tool in enumerate(chosen):
            path[row, at] = entry[tool]
            targets[row, at, [entry[other] for other in ready[at]]] = True
        targets[row, len(chosen) :, 0] = True
        counted[row, : len(chosen) + 1] = 1.0
    return path, targets, counted
