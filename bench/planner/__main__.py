"""Everything the trained planner is judged by, in one run that goes on where it stopped.

python -m bench.planner --data DIR                       the planner that ships
python -m bench.planner --data DIR --model planner.onnx  one that was just exported
python -m bench.planner --data DIR --only kept           some pieces only, without writing the page
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measuring import machine
from bench.planner import judging, pictures
from bench.planner.latency import latency
from bench.planner.page import page
from bench.planner.running import Bench, PieceFailed
from bench.planner.suites import Suite, suites, write
from conductor.evaluation.intervals import SEED
from conductor.policy.confidence import Confidence
from conductor.policy.model import PlannerModel
from conductor.training.datasets import data_folder
from conductor.training.local import local_planner

ROOT = Path(__file__).parents[2]
SHIPPED = "conductor/policy/weights/planner.onnx"
ABLATIONS = Path(__file__).parent / "ablations.json"
TEMPLATE = Path(__file__).parent / "page.txt"
_TRAININGS = {
    "selector": (
        "Training of the selection",
        ("random node_f1", "disjoint node_f1", "random accuracy", "disjoint accuracy"),
    ),
    "filler": (
        "Training of the filling",
        (
            "scores.nestools.argument_f1",
            "scores.nestools.dependency_f1",
            "scores.bfcl.calls",
            "scores.calls.calls",
        ),
    ),
}
_POOLED = (
    "ultratool-dev-nolinks",
    "ultratool-dev_disjoint-nolinks",
    "nestools-dev",
    "bfcl-multiple-dev-fresh",
    "bfcl-live_multiple-dev-fresh",
    "sealtools-dev",
    "packs-dev",
)
"""Development parts whose confidence is judged together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    given = _given(arguments)
    started = time.monotonic()
    bench = Bench(
        work=given.work,
        data=given.data or data_folder(),
        model=given.model,
        podium_data=given.podium_data,
        threads=given.threads,
        say=_say,
    )
    if given.page:
        _write_page(json.loads((bench.work / "results.json").read_text("utf-8")), given)
        return 0
    chosen = [suite for suite in suites(bench.data) if given.only in suite.name]
    try:
        if given.baselines:
            _baselines(bench, chosen, given.jobs)
            return 0
        model = local_planner(given.model) if given.model else PlannerModel.committed()
        confidence = Confidence.from_metadata(model.properties)
        results = _results(bench, chosen, confidence, given.jobs)
        results["latency"] = latency(bench) if not given.only else []
    except PieceFailed as error:
        _say(f"failed: {error}")
        return 1
    results["made"] = _made(model, given.model, confidence, time.monotonic() - started)
    if not given.only:
        _write_page(results, given)
    whole = json.dumps(results, ensure_ascii=False)
    (bench.work / "results.json").write_text(whole, encoding="utf-8")
    print(whole if given.json else _summary(results))
    return 0


def _write_page(results: dict[str, Any], given: argparse.Namespace) -> None:
    results["ablations"] = json.loads(given.ablations.read_text("utf-8")) if given.ablations.exists() else []
    _draw(results, given.docs, dict(item.split("=", 1) for item in given.history))
    (given.docs / "results.md").write_text(page(TEMPLATE.read_text("utf-8"), results), encoding="utf-8")


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the public data; PODIUM_PLANNING_DATA by default")
    parser.add_argument("--model", type=Path, help="a planner's file; the one that ships by default")
    parser.add_argument("--podium-data", type=Path, default=ROOT / "var", help="data directory of `podium plan`")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "var" / "planner-bench", help="predictions and results"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where results.md and results/ go")
    parser.add_argument(
        "--history", action="append", default=[], help="selector=FILE or filler=FILE: history.jsonl"
    )
    parser.add_argument(
        "--ablations", type=Path, default=ABLATIONS, help="JSON: [{title, columns, rows: [{name, values}]}]"
    )
    parser.add_argument("--threads", type=int, default=1, help="rows planned at once")
    parser.add_argument("--page", action="store_true", help="only write the page of the last whole run anew")
    parser.add_argument("--jobs", type=int, default=2, help="suites that are worked on at once")
    parser.add_argument("--baselines", action="store_true", help="only let the simple planners plan")
    parser.add_argument("--only", default="", help="only the suites with this in their name; no page")
    parser.add_argument("--json", action="store_true", help="print all figures as one object")
    return parser.parse_args(arguments)


def _baselines(bench: Bench, chosen: Sequence[Suite], jobs: int) -> None:
    """Run the simple planners only; the next run finds what they planned."""
    wanted = [(name, suite, write(suite, bench.work / "suites")) for suite in chosen for name in suite.baselines]
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="baseline") as pool:
        list(pool.map(lambda one: bench.baseline(*one), wanted))


def _results(bench: Bench, chosen: Sequence[Suite], confidence: Confidence, jobs: int) -> dict[str, Any]:
    by_name = {suite.name: suite for suite in chosen}
    files = {suite.name: write(suite, bench.work / "suites") for suite in chosen}
    # Each piece is a process that works on one core; so many of them run side by side.
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="suite") as pool:
        scores = dict(
            zip(by_name, pool.map(lambda suite: bench.scored(suite, files[suite.name]), chosen), strict=True)
        )
    ours = {suite.name: bench.predicted(suite, files[suite.name])[0] for suite in chosen}
    return {
        "suites": {
            suite.name: {
                "title": suite.title,
                "mode": suite.mode,
                "requests": len(suite.examples),
                "kept": suite.kept,
                "marks": dict(suite.marks) if suite.marks else None,
                "score": scores[suite.name],
            }
            for suite in chosen
        },
        "kept": list(_kept(bench, by_name, ours, confidence)),
        "calibration": _calibrations({name: (files[name].gold, ours[name]) for name in ours}, confidence),
    }


def _kept(
    bench: Bench, by_name: Mapping[str, Suite], ours: Mapping[str, Path], confidence: Confidence
) -> Iterable[dict[str, Any]]:
    def told(title: str, mark: float | None, share: judging.Share) -> dict[str, Any]:
        return {"title": title, "mark": mark} | share.to_json()

    if suite := by_name.get("kept-new-agents"):
        out = ours[suite.name]
        yield told("30 unseen agents: right first agent", 80, judging.first_agents(suite, out))
        for steps, words in ((1, "one agent"), (2, "two agents"), (3, "three agents")):
            share = judging.first_agents(suite, out, steps=steps)
            yield told(f"30 unseen agents: right first agent, requests for {words}", None, share)
        yield told("30 unseen agents: right tool set", None, judging.right_sets(suite, out))
    if suite := by_name.get("kept-chinese"):
        yield told("Chinese: right tool set", 85, judging.right_sets(suite, ours[suite.name]))
        for registry, words in (("packs", "over the packs"), ("new_agents", "over the unseen agents")):
            part = judging.only(suite, registry)
            yield told(f"Chinese: right tool set, {words}", None, judging.right_sets(part, ours[suite.name]))
        tasks = judging.only(suite, "packs")
        for planner in ("policy", "rules"):
            title = f"Chinese: right tool set, over the packs as a server's task, planner {planner}"
            yield told(title, None, judging.right_sets(tasks, bench.packs(planner)))
    unservable = [suite for name, suite in by_name.items() if name.startswith("kept-unservable")]
    if unservable:
        parts = [(suite, ours[suite.name]) for suite in unservable]
        yield told("Nobody can serve it: no plan, or asked back", 90, judging.refused_in(parts))
        for suite, out in parts:
            yield told(f"{suite.title}: no plan, or asked back", None, judging.refused_in([(suite, out)]))
        below = judging.refused_in(parts, ask_below=confidence.accept_at)
        yield told("Nobody can serve it: no plan, asked back, or less sure than accepted plans", None, below)


def _calibrations(files: Mapping[str, tuple[Path, Path]], confidence: Confidence) -> dict[str, Any]:
    groups = {
        "development parts together": [name for name in _POOLED if name in files],
        "UltraTool, random": ["ultratool-dev-nolinks"],
        "UltraTool, unseen tool sets": ["ultratool-dev_disjoint-nolinks"],
        "NesTools": ["nestools-dev"],
        "30 unseen agents": ["kept-new-agents"],
    }
    return {
        title: judging.calibration(judging.sure_of([files[name] for name in names]), confidence.accept_at)
        for title, names in groups.items()
        if names and all(name in files for name in names)
    }


def _draw(results: dict[str, Any], docs: Path, histories: Mapping[str, str]) -> None:
    folder = docs / "results"
    drawn = {"risk-coverage.png": "Risk and coverage", "reliability.png": "Reliability"}
    calibration = results["calibration"]
    first = next(iter(calibration.values()))
    curves = {name: found["curve"] for name, found in calibration.items() if name != "30 unseen agents"}
    pictures.risk_coverage(curves, first["accepted"], folder / "risk-coverage.png")
    pictures.reliability(first["bins"], folder / "reliability.png")
    for name, path in histories.items():
        title, marks = _TRAININGS[name.split("-")[0]]
        pictures.training(Path(path), marks, title, folder / f"training-{name}.png")
        drawn[f"training-{name}.png"] = title
    results["pictures"] = drawn


def _made(model: PlannerModel, given_model: Path | None, confidence: Confidence, seconds: float) -> dict[str, Any]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "model": {
            "version": model.version,
            "commit": str(model.metadata.get("commit", ""))[:12],
            "sha256": model.sha256,
            "bytes": (given_model or ROOT / SHIPPED).stat().st_size,
        },
        "machine": machine(),
        "seed": SEED,
        "accept_at": confidence.accept_at,
        "seconds": seconds,
    }


def _summary(results: Mapping[str, Any]) -> str:
    lines = []
    for name, suite in results["suites"].items():
        figures = suite["score"]["predictions"]["figures"]
        lines.append(f"{name}: " + ", ".join(f"{key} {value['value']:.1f}" for key, value in figures.items()))
    lines += [f"{row['title']}: {row['value']:.1f} ({row['right']} of {row['of']})" for row in results["kept"]]
    for name, found in results["calibration"].items():
        lines.append(f"confidence, {name}: error {found['calibration_error']}, accepted {found['accepted']}")
    lines += [f"{row['what']}: {row['value']}" for row in results["latency"]]
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
