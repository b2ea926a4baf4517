"""Scores are those of the reference scorer that comes with the public data, on any plans.

`tests/cases/plan_scores.json` holds what that program said about the samples of some seeds. Where
`PODIUM_PLANNING_DATA` names the data, the program itself is run on new ones too.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conductor.evaluation.rows import read_gold, read_predictions
from conductor.evaluation.scoring import MODES, Mode, score
from tests.property.plan_rows import sample

RECORDED = json.loads((Path(__file__).parents[1] / "cases" / "plan_scores.json").read_text("utf-8"))
_REFERENCE = Path(os.environ.get("PODIUM_PLANNING_DATA", "/nowhere")) / "score_plans.py"


def _write(folder: Path, seed: int, *, requests: int = 12) -> dict[str, Path]:
    files = {}
    for name, rows in sample(seed, requests=requests).items():
        files[name] = folder / f"{seed}-{name}.jsonl"
        files[name].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return files


def _ours(mode: Mode, files: dict[str, Path]) -> dict[str, float]:
    gold = read_gold(files["accept" if mode == "accept" else "gold"])
    return score(mode, gold, read_predictions(files["predictions"]).by_id).totals()


@pytest.mark.parametrize("mode", MODES)
def test_scores_are_those_that_were_recorded_of_the_reference(mode: Mode, tmp_path: Path) -> None:
    different = set()
    for seed, recorded in RECORDED.items():
        found = _ours(mode, _write(tmp_path, int(seed)))
        assert found == pytest.approx(recorded[mode]), seed
        different.add(tuple(found.values()))
    assert len(different) >= 4, "the samples are too much alike to tell scorers apart"


@pytest.mark.skipif(not _REFERENCE.exists(), reason="needs PODIUM_PLANNING_DATA")
@pytest.mark.parametrize("mode", MODES)
def test_scores_are_those_of_the_reference_on_new_plans(mode: Mode, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")  # noqa: T201 - to run the same again
    files = _write(tmp_path, seed, requests=400)
    assert _ours(mode, files) == pytest.approx(_reference()[mode](files))


def _reference() -> dict[str, Any]:
    """The functions of the reference program, each from files to figures."""
    program = (
        "import json, runpy, sys\n"
        "one = runpy.run_path(sys.argv[1])\n"
        "predictions = {str(row['id']): row for row in one['rows'](sys.argv[4])}\n"
        "print(json.dumps(one[sys.argv[2]](one['rows'](sys.argv[3]), predictions)))\n"
    )

    def run(mode: str, files: dict[str, Path]) -> dict[str, float]:
        gold = files["accept" if mode == "accept" else "gold"]
        command = [sys.executable, "-c", program, str(_REFERENCE), mode, str(gold), str(files["predictions"])]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert isinstance(found, dict)
        return found

    return {mode: (lambda files, mode=mode: run(mode, files)) for mode in MODES}


def record(seeds: int) -> None:
    """Write what the reference says about the samples of the first seeds (python -c, by hand)."""
    import tempfile

    reference = _reference()
    with tempfile.TemporaryDirectory() as folder:
        said = {
            str(seed): {mode: reference[mode](_write(Path(folder), seed)) for mode in MODES}
            for seed in range(seeds)
        }
    target = Path(__file__).parents[1] / "cases" / "plan_scores.json"
    target.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
