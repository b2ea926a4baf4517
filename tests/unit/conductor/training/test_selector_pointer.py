"""What training computes for many requests at once and service for one at a time must be the same."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from conductor.policy.selecting_paths import Entries, follow
from conductor.training.parts import TorchParts
from conductor.training.selector import EDGES, HIDDEN, SelectorModel, sequence_log_probabilities
from conductor.training.selector_parts import parts_of
from conductor.training.selector_reading import FEATURES, TOKEN, places_of

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


def test_relevance_and_places_are_the_same_for_lists_and_for_all_tools() -> None:
    torch.manual_seed(4)
    relevance = SelectorModel().eval().relevance
    lengths, tools, pieces, size = (9, 6), 5, 9, 7
    tokens = functional.normalize(torch.randn(2, pieces, TOKEN), dim=-1)
    weights = torch.rand(2, pieces)
    for row, length in enumerate(lengths):
        tokens[row, length:] = 0
        weights[row, length:] = 0
    vector, tool_vectors = torch.randn(2, 384), torch.randn(tools, 384)
    tool_tokens, tool_mask = torch.randn(tools, size, TOKEN), torch.ones(tools, size)
    with torch.no_grad():
        lists = torch.arange(tools).expand(2, -1)
        several = relevance.of_lists(
            vector, tokens, weights, tool_vectors[lists], tool_tokens[lists], tool_mask[lists]
        )
        for row, length in enumerate(lengths):
            one = relevance(
                vector[row : row + 1],
                tokens[row : row + 1, :length],
                weights[row : row + 1, :length],
                tool_vectors,
                tool_tokens,
                tool_mask,
            )
            assert torch.allclose(several[row], one[0], atol=1e-4)


def test_a_hidden_piece_moves_no_other() -> None:
    whole, hidden = torch.ones(1, 8), torch.ones(1, 8)
    hidden[0, 3] = 0
    assert torch.equal(places_of(whole), places_of(hidden))
    assert places_of(whole)[0].tolist() == pytest.approx([at / 7 for at in range(8)])
    short = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    assert places_of(short)[0, :3].tolist() == [0.0, 0.5, 1.0]
