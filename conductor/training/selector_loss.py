"""What the selection is punished for: the short list, the tools on it, and each choice of the pointer."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from conductor.policy.selecting import SHORT_LIST
from conductor.training.feedback_memory import told_about, with_told
from conductor.training.selector import SelectorModel, sequence_log_probabilities
from conductor.training.selector_batches import Batch, Foreigners, States, ToolMemory, request_states

_NEVER = -1e4
_NOISE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """Of one batch."""

    total: Tensor
    pointer: float
    unary: float
    relevance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a batch is computed from."""

    states: States
    memory: ToolMemory
    foreigners: Foreigners
    trained_tools: int
    """How many tools of a batch are trained; the vectors of the others are some steps old."""
    oldest: int
    """How many steps old."""
    pieces_dropped: float
    """Share of the word pieces of a request that are hidden."""


def losses_of(
    model: SelectorModel, batch: Batch, sources: Sources, step: int, chance: random.Random, *, foreign: bool
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
    tools, tool_tokens, tool_mask = _tools(model, batch, sources, step, chance)
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
    links = batch.links[listed[:, :, None], listed[:, None, :]] * batch.given[:, None, None]
    memory, mask = with_told(model.memory, model.memory(top), mask, tools, batch.told)
    joint = model.joint(memory, mask, tools[listed], features, on, links, batch.given)
    logits = joint[1][:, 1:].float()
    each = functional.binary_cross_entropy_with_logits(logits, right[rows, listed], reduction="none")
    unary = (each * on).sum() / len(rows)
    path, targets, length = _targets(batch, listed)
    scores = sequence_log_probabilities(model.step, joint, mask, path, batch.given, links).float()
    chosen = torch.logsumexp(scores.masked_fill(~targets, _NEVER), dim=-1)
    pointer = -(chosen * length).sum() / len(rows)
    total = pointer + 0.3 * unary + 0.3 * by_relevance
    return Losses(total=total, pointer=pointer.item(), unary=unary.item(), relevance=by_relevance.item())


def _pieces_dropped(mask: Tensor, share: float) -> Tensor:
    """Hide some pieces, never the first, from which a row would be empty."""
    hidden = (torch.rand(mask.shape) < share).to(mask.dtype)
    hidden[:, 0] = 0
    return mask * (1 - hidden)


def _tools(
    model: SelectorModel, batch: Batch, sources: Sources, step: int, chance: random.Random
) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors of the batch's tools: some computed with gradient, the others from memory."""
    memory = sources.memory
    right = [at for path in batch.paths for at in path]
    trained = list(dict.fromkeys(right))
    others = [at for at in range(len(batch.tools)) if at not in set(trained)]
    spare = max(0, sources.trained_tools - len(trained))
    trained += chance.sample(others, min(spare, len(others)))
    fresh = set(trained)
    old = [tool for at, tool in enumerate(batch.tools) if at not in fresh]
    memory.refresh(model.reader, old, step, sources.oldest, chance)
    numbers = torch.tensor(batch.tools)
    vectors = memory.vectors[numbers]
    tokens = memory.tokens[numbers].float()
    masks = memory.masks[numbers]
    if trained:
        texts = [memory.variant(batch.tools[at], chance) for at in trained]
        new_vectors, new_tokens, new_masks = memory.read(model.reader, texts)
        places = torch.tensor(trained)
        vectors = vectors.index_copy(0, places, new_vectors)
        tokens = tokens.index_copy(0, places, new_tokens)
        masks = masks.index_copy(0, places, new_masks)
    return vectors, tokens, masks


def _relevance_loss(relevance: Tensor, right: Tensor, candidates: Tensor) -> Tensor:
    """Each right tool against all wrong ones."""
    wrong = relevance.masked_fill((right > 0) | ~candidates, _NEVER)
    against = torch.logsumexp(wrong, dim=1, keepdim=True)
    each = functional.softplus(against - relevance) * right
    return each.sum() / right.sum().clamp(min=1.0)


def _short_list(relevance: Tensor, right: Tensor, candidates: Tensor) -> Tensor:
    """Places [n, k]; the right tools are always among them."""
    noisy = relevance + torch.randn_like(relevance) * _NOISE + right * 1e3
    noisy = noisy.masked_fill(~candidates, _NEVER)
    return noisy.topk(min(SHORT_LIST, relevance.shape[1]), dim=1).indices


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
