"""In service the pointer is asked step by step, in training along whole paths: both must say the same."""

import numpy as np
import pytest
import torch

from conductor.policy.selecting_paths import Entries, follow
from conductor.training.parts import TorchParts
from conductor.training.selector import EDGES, HIDDEN, SelectorModel, sequence_log_probabilities
from conductor.training.selector_parts import parts_of
from conductor.training.selector_reading import FEATURES

_NAMES = ("entries", "unary", "keys", "leaves", "enters", "memory_keys", "memory_values")


def test_the_probability_of_a_path_is_the_same_in_training_and_in_service() -> None:
    torch.manual_seed(3)
    model = SelectorModel().eval()
    with torch.no_grad():
        for parameter in (*model.step.moves.parameters(), *model.joint.verdict.parameters()):
            parameter.normal_()
        memory, mask, edges, places = (
            torch.randn(1, 9, HIDDEN),
            torch.ones(1, 9),
            torch.rand(1, 6, 6, EDGES),
            torch.rand(1, 6),
        )
        given = torch.ones(1)
        verdicts = torch.tensor([[0, 2, 0, 0, 5, 0]])
        joint = model.joint(
            memory,
            mask,
            torch.randn(1, 6, 384),
            torch.randn(1, 6, FEATURES),
            torch.ones(1, 6),
            edges,
            given,
            verdicts,
        )
        entries = Entries(
            joint={name: value.numpy() for name, value in zip(_NAMES, joint, strict=True)},
            memory_mask=mask.numpy(),
            edges=np.pad(edges[0].numpy(), ((1, 0), (1, 0), (0, 0))),
            places=np.pad(places[0].numpy(), (1, 0)),
            links_given=True,
        )
        paths = follow(TorchParts(parts_of(model)), entries, 8)
        assert max(len(path.entries) for path in paths) > 1
        for path in paths:
            chosen = torch.tensor([path.entries], dtype=torch.int64)
            scores = sequence_log_probabilities(model.step, joint, mask, chosen, given, edges, places)[0]
            total = sum(float(scores[at, entry]) for at, entry in enumerate((*path.entries, 0)))
            assert total == pytest.approx(path.log_probability, abs=1e-4)
