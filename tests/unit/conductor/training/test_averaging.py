"""Weights between two trainings."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from conductor.training.averaging import between, main


def test_a_share_of_the_second_and_the_rest_of_the_first(tmp_path: Path) -> None:
    for name, value in (("first", 1.0), ("second", 6.0)):
        save_file({"w": torch.full((2, 2), value)}, tmp_path / name)
    assert (
        main([str(tmp_path / "first"), str(tmp_path / "second"), "--share", "0.6", "--out", str(tmp_path / "o")])
        == 0
    )
    assert torch.allclose(load_file(tmp_path / "o")["w"], torch.full((2, 2), 4.0))


def test_weights_of_two_designs_have_nothing_between_them() -> None:
    with pytest.raises(ValueError, match="two designs"):
        between({"w": torch.ones(2)}, {"w": torch.ones(3)}, 0.5)
    with pytest.raises(ValueError, match="in \\[0, 1\\]"):
        between({"w": torch.ones(2)}, {"w": torch.ones(2)}, 1.5)
