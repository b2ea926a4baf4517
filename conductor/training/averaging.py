"""Weights between those of two trainings of the selection.

`python -m conductor.training.averaging FIRST SECOND --out FILE`: a second training that goes on from the first
gains on what it saw most and loses a little elsewhere; weights between the two keep most of both (Wortsman et al.,
Robust fine-tuning of zero-shot models, 2022).
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from conductor.training.checkpoints import save_weights
from conductor.training.rounding import round_weights
from conductor.training.selector import SelectorModel


def between(first: Mapping[str, Tensor], second: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """`share` of the second weights and the rest of the first.

    Raises:
        ValueError: they are not of the same design, or the share is not in [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share is in [0, 1], not {share}")
    if {name: value.shape for name, value in first.items()} != {n: v.shape for n, v in second.items()}:
        raise ValueError("the weights are of two designs")
    return {name: ((1 - share) * value.float() + share * second[name].float()) for name, value in first.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conductor.training.averaging", description=__doc__)
    parser.add_argument("first", type=Path, help="weights of the first training")
    parser.add_argument("second", type=Path, help="weights of the second")
    parser.add_argument("--share", type=float, default=0.6, help="of the second")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    model = SelectorModel()
    model.load_state_dict(between(load_file(given.first), load_file(given.second), given.share))
    # As the shipped file stores them: what is between two numbers of its grid mostly is on none.
    round_weights(model)
    save_weights(given.out, model.state_dict())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
