"""Plans a batch with a planner that was not promoted yet, as `podium plan --batch` does with the shipped one.

python -m bench.planner.predict --model planner.onnx --batch IN.jsonl --tools tools.json --out OUT.jsonl
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cloud.commands.plan_batch import plan_batch
from cloud.specialists import load_specialists
from conductor.training.local import local_planner
from podium.cli import fail
from podium.errors import PodiumError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner.predict", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--batch", type=Path, required=True)
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        done = plan_batch(
            load_specialists(),
            batch=given.batch,
            out=given.out,
            tools=given.tools,
            planner="policy",
            model=local_planner(given.model),
            threads=given.threads,
            now=None,
        )
    except PodiumError as error:
        fail(error, as_json=True)
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main()
