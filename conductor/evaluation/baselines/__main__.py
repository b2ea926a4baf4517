"""Plans a batch with a baseline.

python -m conductor.evaluation.baselines chains --batch IN.jsonl --tools tools.json --train ultratool --out OUT
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from conductor.evaluation.baselines.linear import Linear
from conductor.evaluation.baselines.nearest import Nearest
from conductor.evaluation.baselines.tasks import Baseline, read_tasks, write_plans
from conductor.evaluation.baselines.zero_shot import ZeroShot
from conductor.training.datasets import data_folder, read_bfcl, read_nestools, read_sealtools, read_ultratool
from conductor.training.examples import Example
from conductor.training.splits import members
from podium.cli import fail
from podium.errors import PodiumError

_READERS: dict[str, Callable[[Path], tuple[Example, ...]]] = {
    "ultratool": read_ultratool,
    "nestools": read_nestools,
    "sealtools": read_sealtools,
    "bfcl": read_bfcl,
}


def _zero_shot(examples: Sequence[Example]) -> Baseline:
    """As many tools as a training plan has on average."""
    from tools.embeddings.minilm import MiniLmEmbedder

    lengths = [len(example.steps) for example in examples]
    return ZeroShot(MiniLmEmbedder(), count=max(1, round(sum(lengths) / max(1, len(lengths)))))


BASELINES: dict[str, Callable[[Sequence[Example]], Baseline]] = {
    "nearest": Nearest,
    "linear": lambda examples: Linear(examples, use="threshold"),
    "chains": lambda examples: Linear(examples, use="chains"),
    "zero_shot": _zero_shot,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn from the training parts, plan the batch, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(BASELINES))
    parser.add_argument("--batch", type=Path, required=True, help='{"id", "request"[, "tools"]} a line')
    parser.add_argument("--tools", type=Path, help="the registry of rows without tools")
    parser.add_argument("--train", choices=sorted(_READERS), required=True, help="data set whose plans are learnt")
    parser.add_argument("--data", type=Path, help="folder of the data sets; PODIUM_PLANNING_DATA by default")
    parser.add_argument("--all", action="store_true", help="learn from the kept parts too, to plan others' tests")
    parser.add_argument(
        "--out", type=Path, required=True, help="predictions, as `podium plan --batch` writes them"
    )
    given = parser.parse_args(arguments)
    try:
        started = time.monotonic()
        examples = _READERS[given.train](given.data or data_folder())
        if not given.all:
            examples = members(examples, "train", "select", "select_disjoint")
        tasks = read_tasks(given.batch, given.tools)
        write_plans(given.out, tasks, BASELINES[given.name](examples).plan(tasks))
    except PodiumError as error:
        fail(error, as_json=False)
    spent = time.monotonic() - started
    sys.stderr.write(f"{given.name}: {len(tasks)} requests, {len(examples)} training plans, {spent:.1f} s\n")


if __name__ == "__main__":
    main()
