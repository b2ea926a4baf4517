"""Fits the score by which the plans of a search are ranked: a conditional logit over what the search found.

A plan is right when its collection of tools is; of several right ones any will do. Requests whose right plan the
search did not find teach nothing here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conductor.policy.selecting_choice import RANKING_FEATURES, Ranking, ranking_features
from conductor.training.logistic import folds_of
from conductor.training.observing import Searched

_Example = tuple[Tensor, Tensor]
"""Features [plans, RANKING_FEATURES] and which plans are right [plans]."""
_FOLDS = 5
_PENALTY = 0.01
"""On the squared distance of each weight from the search's own probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFit:
    """A ranking, and for each request one that did not see its fold."""

    ranking: Ranking
    left_out: tuple[Ranking, ...]


def fit_ranking(searches: Sequence[Searched], *, seed: int) -> RankingFit:
    """Fit a score on searches; a request that nobody can serve says nothing of the plans of others.

    Args:
        searches: What was found for requests whose right plan is known.
        seed: Draws the folds; searches of one request share one.
    """
    examples = [_example(one) for one in searches]
    fold = folds_of([one.group for one in searches], _FOLDS, seed)
    by_fold = {
        int(left): _fitted([example for example, at in zip(examples, fold, strict=True) if at != left])
        for left in np.unique(fold)
    }
    return RankingFit(ranking=_fitted(examples), left_out=tuple(by_fold[int(at)] for at in fold))


def _example(one: Searched) -> _Example:
    names = [[one.example.tools[at].name for at in plan.tools] for plan in one.hypotheses]
    right = sorted(step.tool for step in one.example.steps)
    features = [ranking_features(plan) for plan in one.hypotheses]
    return (
        torch.tensor([[found[name] for name in RANKING_FEATURES] for found in features], dtype=torch.float64),
        torch.tensor([bool(right) and sorted(plan) == right for plan in names]),
    )


def _fitted(examples: Sequence[_Example]) -> Ranking:
    known = [(rows, right) for rows, right in examples if right.any() and not right.all()]
    start = torch.tensor([float(name == "log_probability") for name in RANKING_FEATURES], dtype=torch.float64)
    weights = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        total = _PENALTY * ((weights - start) ** 2).sum()
        for rows, right in known:
            scores = rows @ weights
            total = total + (torch.logsumexp(scores, 0) - torch.logsumexp(scores[right], 0)) / len(known)
        torch.autograd.backward(total)
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]  # torch does not say
    found = weights.detach().tolist()
    return Ranking(weights=dict(zip(RANKING_FEATURES, found, strict=True)))
