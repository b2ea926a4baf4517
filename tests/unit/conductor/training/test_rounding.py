"""Weights rounded to 8 bits: close to what they were, and the same when rounded again."""

import copy

import torch
from torch import nn

from conductor.training.rounding import round_weights


def test_rounding_is_close_and_happens_once() -> None:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Embedding(90, 64), nn.Linear(64, 80), nn.Linear(80, 3))
    before = copy.deepcopy(module.state_dict())

    round_weights(module)
    once = copy.deepcopy(module.state_dict())
    round_weights(module)

    for name, value in module.state_dict().items():
        assert torch.equal(value, once[name])
        assert (value - before[name]).abs().max() <= before[name].abs().max() / 127
    assert not torch.equal(once["0.weight"], before["0.weight"])
    assert not torch.equal(once["1.weight"], before["1.weight"])
    assert torch.equal(once["2.weight"], before["2.weight"]), "too small to be worth it"
