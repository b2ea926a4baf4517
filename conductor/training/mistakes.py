"""What the selector would get wrong: `python -m conductor.training.mistakes --weights FILE --data DIR --out FILE`.

Plans that the model ranks high for rows that it is trained on, and that are not right, are earlier plans as they
happen in service: the simulator runs them, and stage 2 learns the better decision.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import torch

from conductor.policy.parts import PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import Selector
from conductor.policy.tokens import Tokens
from conductor.training.datasets import data_folder
from conductor.training.encoder import Bottom
from conductor.training.examples import Example
from conductor.training.feedback import Mistakes, feedback_examples, write_mistakes
from conductor.training.parts import TorchParts
from conductor.training.selector_parts import bottom_part, selector_parts

_KEPT = 3
"""Wrong plans of a row."""
_GROUPS = ("ultratool", "nestools")


def mistakes_of(parts: PartRunner, tokens: Tokens, examples: Sequence[Example], *, beam: int = 6) -> Mistakes:
    """For each example the likeliest plans of other tools than the right ones.

    Args:
        parts: The model.
        tokens: Its vocabulary.
        examples: Rows that are trained on.
        beam: How many plans are looked at.

    Raises:
        OnnxError: the runtime failed.
    """
    selector = Selector(parts, tokens)
    found = {}
    for example in examples:
        right = sorted(step.tool for step in example.steps)
        index = selector.index(example.tools)
        plans = (
            tuple(example.tools[at].name for at in hypothesis.tools)
            for hypothesis in selector.plans(read(parts, tokens, example.request), index, beam=beam)
        )
        wrong = tuple(plan for plan in plans if plan and sorted(plan) != right)[:_KEPT]
        if wrong:
            found[example.source, example.id] = wrong
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weights", type=Path, required=True, help="selector.safetensors of stage 1")
    parser.add_argument("--data", type=Path, help="folder of the public data; else PODIUM_PLANNING_DATA")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    parser.add_argument("--rows", type=int, default=1200, help="how many rows are planned, drawn at random")
    known = parser.parse_args(arguments)
    torch.set_num_threads(1)
    groups, _ = feedback_examples(known.data or data_folder())
    rows = [row for name in _GROUPS for row in groups[name]]
    chance = random.Random("mistakes")  # noqa: S311 - a sample
    rows = chance.sample(rows, min(len(rows), known.rows))
    parts = TorchParts([bottom_part(Bottom()), *selector_parts(known.weights)])
    write_mistakes(known.out, mistakes_of(parts, Tokens(), rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
