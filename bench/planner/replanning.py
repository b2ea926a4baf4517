"""Second decisions after a plan has run, with the feedback and without it, over simulated trajectories.

python -m bench.planner.replanning --model planner.onnx                the parts that choices are made on
python -m bench.planner.replanning --model planner.onnx --part dev     the parts that are reported
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from conductor.evaluation.intervals import SEED
from conductor.evaluation.replanning import decide, measure, trajectories, write_decided
from conductor.policy.model import PlannerModel
from conductor.policy.parts import PartRunner
from conductor.policy.tokens import Tokens
from conductor.training.datasets import data_folder, read_nestools, read_ultratool
from conductor.training.local import local_planner
from conductor.training.splits import Part, members


def replanning(parts: PartRunner, data: Path, part: str, *, kept: Path | None = None) -> dict[str, Any]:
    """The figures by data set; `all` has every trajectory.

    Args:
        parts: The model.
        data: Folder of the public data.
        part: "select" or "dev"; each with its tool-set-disjoint companion.
        kept: Takes a row for each trajectory.

    Raises:
        OnnxError: the runtime failed.
        TrainingDataInvalid: a file of the data is missing.
    """
    wanted = [name for name in get_args(Part) if name.split("_")[0] == part]
    groups = {
        **{f"ultratool {name}": members(read_ultratool(data), name) for name in wanted},
        f"nestools {part}": members(read_nestools(data), *wanted),
    }
    tokens = Tokens()
    decided = {name: decide(parts, tokens, trajectories(examples, seed=SEED)) for name, examples in groups.items()}
    everything = [item for items in decided.values() for item in items]
    if kept is not None:
        write_decided(kept, everything)
    found = {name: measure(items).to_json() for name, items in decided.items()}
    return {"all": measure(everything).to_json(), **found}


def table(figures: Mapping[str, Any]) -> str:
    """The figures as a table of a page."""
    rows = [
        "| after a plan has run | trajectories | right with feedback | right without, failed tools left out |",
        "| --- | --- | --- | --- |",
    ]
    whole = figures["all"]
    named = [("all trajectories", whole["every"]), ("those in which something failed", whole["failed"])]
    named += [(name, found["every"]) for name, found in figures.items() if name != "all"]
    named += list(whole["kinds"].items())
    for name, share in named:
        rows.append(
            f"| {name} | {share['count']} | {_cell(share['told'], share['told_interval'])} "
            f"| {_cell(share['hidden'], share['hidden_interval'])} |"
        )
    return "\n".join(rows) + f"\n\n{whole['failing']:.0f} % of the trajectories fail."


def _cell(value: float, interval: Sequence[float]) -> str:
    return f"{value:.1f} ({interval[0]:.1f} to {interval[1]:.1f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.planner.replanning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, help="a planner's file; the one that ships by default")
    parser.add_argument("--data", type=Path, help="folder of the public data; PODIUM_PLANNING_DATA by default")
    parser.add_argument("--part", choices=("select", "dev"), default="select")
    parser.add_argument("--rows", type=Path, help="takes a row for each trajectory")
    parser.add_argument("--json", action="store_true", help="print all figures as one object")
    given = parser.parse_args(arguments)
    model = local_planner(given.model) if given.model else PlannerModel.committed()
    found = replanning(model, given.data or data_folder(), given.part, kept=given.rows)
    sys.stdout.write((json.dumps(found) if given.json else table(found)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
