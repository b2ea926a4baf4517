"""Weights between two trainings."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from conductor.training.averaging import between, main
from conductor.training.rounding import round_weights
from conductor.training.selector import SelectorModel


def test_a_share_of_the_second_and_the_rest_of_the_first() -> None:
    found = between({"w": torch.full((2, 2), 1.0)}, {"w": torch.full((2, 2), 6.0)}, 0.6)
    assert torch.allclose(found["w"], torch.full((2, 2), 4.0))


def test_what_is_written_is_on_the_grid_of_the_shipped_file(tmp_path: Path) -> None:
    for seed in (1, 2):
        torch.manual_seed(seed)
        save_file(SelectorModel().state_dict(), tmp_path / str(seed))
    assert main([str(tmp_path / "1"), str(tmp_path / "2"), "--out", str(tmp_path / "between")]) == 0
    model = SelectorModel()
    model.load_state_dict(load_file(tmp_path / "between"))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    round_weights(model)
    for name, value in model.state_dict().items():
        assert torch.allclose(value, before[name], atol=1e-6), name


def test_weights_of_two_designs_have_nothing_between_them() -> None:
    with pytest.raises(ValueError, match="two designs"):
        between({"w": torch.ones(2)}, {"w": torch.ones(3)}, 0.5)
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        between({"w": torch.ones(2)}, {"w": torch.ones(2)}, 1.5)
