"""Fits by which score plans are ranked and how sure the planner may be.

`python -m conductor.training.calibrate --selector FILE --filler FILE --out FILE`: the weights are those that ship;
they were not trained on the `select` parts, for a model is too sure of what it was trained on. What is fitted here
goes into the exported file (`export --confidence`).
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from conductor.evaluation.calibration import Judged, accepted_at, calibration_error, threshold_for
from conductor.policy.confidence import (
    ARGUMENT_FEATURES,
    PLAN_FEATURES,
    STEP_FEATURES,
    Confidence,
    best_serving,
    nothing_features,
    plan_features,
    preferred,
    refused,
    step_features,
)
from conductor.policy.selecting import Hypothesis
from conductor.policy.selecting_choice import best_first
from conductor.policy.tokens import Tokens
from conductor.training.datasets import (
    data_folder,
    read_bfcl,
    read_nestools,
    read_sealtools,
    read_ultratool,
    ultratool_links,
)
from conductor.training.examples import Example
from conductor.training.logistic import Fit, fit
from conductor.training.observing import (
    ModelDrafting,
    Observations,
    Observed,
    Observer,
    Searched,
    without_its_tools,
)
from conductor.training.ranking import fit_ranking
from conductor.training.splits import members
from conductor.training.written import FOLDER, read_written
from podium.cli import fail
from podium.errors import PodiumError


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationConfig:
    """How confidence is fitted."""

    unservable_share: float = 0.5
    """Of the requests, those that are planned once more without the tools they need: the right plan is empty."""
    precision: float = 0.95
    """Share of right plans wanted among the accepted."""
    reserve: float = 0.01
    """Wanted on top of it, because the threshold is chosen on the requests that it is judged by here."""
    refusals: float = 0.93
    """Share of the requests that nobody can serve which should be refused ..."""
    false_refusals: float = 0.02
    """... unless more than this share of the others would be refused with them."""
    seed: int = 0


def fitted(seen: Observations, config: CalibrationConfig) -> tuple[Confidence, dict[str, Any]]:
    """The parameters, and how good they are on folds that were left out.

    Raises:
        ValueError: there is too little to fit on.
    """
    ranking = fit_ranking(seen.searches, seed=config.seed)
    searches = [
        replace(one, hypotheses=best_first(one.hypotheses, left_out))
        for one, left_out in zip(seen.searches, ranking.left_out, strict=True)
    ]
    nothing, refuse_at, refusals = _refusals(searches, config)
    settled = [
        replace(one, hypotheses=_settled(one.hypotheses, refuse=sure >= refuse_at))
        for one, sure in zip(searches, nothing.left_out, strict=True)
    ]
    # A plan for a request that nobody can serve teaches nothing about the plans of the others; a refusal does.
    settled = [one for one in settled if one.example.steps or not one.hypotheses[0].tools]
    plans, steps = decisions(settled)
    fits = {
        name: fit(features, decided.features, decided.right, decided.groups, seed=config.seed)
        for name, features, decided in (
            ("plan", PLAN_FEATURES, plans),
            ("step", STEP_FEATURES, steps),
            ("argument", ARGUMENT_FEATURES, seen.arguments),
        )
        if decided.right
    }
    servable = np.array([bool(one.example.steps) for one in settled])
    found = Judged(confidence=fits["plan"].left_out, right=np.array(plans.right))
    served = Judged(confidence=found.confidence[servable], right=found.right[servable])
    accept_at = threshold_for(served, config.precision + config.reserve)
    confidence = replace(
        Confidence.uncalibrated(),
        **{name: one.regression for name, one in fits.items()},
        nothing=nothing.regression,
        refuse_at=refuse_at,
        ranking=ranking.ranking,
        accept_at=accept_at,
    )
    report: dict[str, Any] = {
        name: _report(fits[name], decided)
        for name, decided in (("plan", plans), ("step", steps), ("argument", seen.arguments))
        if name in fits
    }
    return confidence, report | {
        "ranking": {name: round(weight, 3) for name, weight in ranking.ranking.weights.items()},
        "refusals": refusals,
        "accepted": accepted_at(found, accept_at).to_json(),
        "accepted_of_servable": accepted_at(served, accept_at).to_json(),
    }


def decisions(searches: Sequence[Searched]) -> tuple[Observed, Observed]:
    """The best plan of each search, and its steps, with whether they are right."""
    plans, steps = Observed(), Observed()
    for one in searches:
        example, found = one.example, one.hypotheses
        features = plan_features(found, 0, tools=len(example.tools))
        names = [example.tools[at].name for at in found[0].tools]
        plans.add(features, frozenset(names) == example.tool_set, one.group)
        for place, name in enumerate(names):
            steps.add(step_features(found, 0, place, plan=features), name in example.tool_set, one.group)
    return plans, steps


def _refusals(searches: Sequence[Searched], config: CalibrationConfig) -> tuple[Fit, float, dict[str, Any]]:
    """How likely it is that nothing can serve a request, and from where on it is refused."""
    features = [nothing_features(one.hypotheses, tools=len(one.example.tools)) for one in searches]
    unservable = np.array([not one.example.steps for one in searches])
    empty = np.array([best_serving(one.hypotheses) is None for one in searches])
    found = fit(PLAN_FEATURES, features, unservable.tolist(), [one.group for one in searches], seed=config.seed)
    refuse_at = 1.0
    for threshold in sorted(set(found.left_out.tolist()), reverse=True):
        taken = empty | (found.left_out >= threshold)
        if taken[~unservable].mean() > config.false_refusals:
            break
        refuse_at = threshold
        if taken[unservable].mean() >= config.refusals:
            break
    taken = empty | (found.left_out >= refuse_at)
    by_search = np.array([not one.hypotheses[0].tools for one in searches])
    told = {
        "unservable": int(unservable.sum()),
        "refused": round(100 * float(taken[unservable].mean()), 2),
        "refused_by_the_search": round(100 * float(by_search[unservable].mean()), 2),
        "servable": int((~unservable).sum()),
        "refused_wrongly": round(100 * float(taken[~unservable].mean()), 2),
        "refused_wrongly_by_the_search": round(100 * float(by_search[~unservable].mean()), 2),
    }
    return found, refuse_at, told


def _settled(hypotheses: tuple[Hypothesis, ...], *, refuse: bool) -> tuple[Hypothesis, ...]:
    serving = best_serving(hypotheses)
    if serving is None:
        return hypotheses
    return refused(hypotheses) if refuse else preferred(hypotheses, serving)


def _report(one: Fit, decided: Observed) -> dict[str, Any]:
    found = Judged(confidence=one.left_out, right=np.array(decided.right))
    return {
        "decisions": len(decided.right),
        "right": round(float(found.right.mean()), 4),
        "calibration_error": round(calibration_error(found), 4),
        "strength": one.strength,
    }


def observed(observer: Observer, data: Path, config: CalibrationConfig) -> Observations:
    """Plan and fill the `select` parts of everything.

    Raises:
        OnnxError: the runtime failed.
        TrainingDataInvalid: the data are not there or have another form.
    """
    dice = np.random.default_rng(config.seed)
    links = ultratool_links(data)
    for example in _selected(data):
        observer.plan(example)
        if example.source == "ultratool":
            observer.plan(example, links=links)
        if dice.random() < config.unservable_share and len(example.tools) > len(example.tool_set):
            observer.plan(without_its_tools(example))
        observer.fill(example)
    return observer.seen


def _selected(data: Path) -> Iterator[Example]:
    for read_set in (read_ultratool, read_nestools, read_sealtools, read_bfcl):
        examples = read_set(data)
        # BFCL repeats requests among its parts: one that was trained on says nothing about the others.
        trained = {_words(example.request) for example in members(examples, "train")}
        for example in members(examples, "select", "select_disjoint"):
            if len(example.tools) > 1 and _words(example.request) not in trained:
                yield example
    for path in sorted(FOLDER.glob("*.jsonl")):
        yield from members(read_written(path.stem, data), "select")


def _words(request: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", request.lower()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conductor.training.calibrate", description=__doc__)
    parser.add_argument("--selector", type=Path, required=True, help="weights of train_selector")
    parser.add_argument("--filler", type=Path, help="weights of train_filler; none: no arguments")
    parser.add_argument("--data", type=Path, help="folder of the data sets; PODIUM_PLANNING_DATA by default")
    parser.add_argument("--out", type=Path, required=True, help="JSON for `export --confidence`")
    given = parser.parse_args(arguments)
    try:
        from conductor.training.export import planner_parts
        from conductor.training.parts import TorchParts

        parts = TorchParts(planner_parts(given.selector, given.filler))
        config = CalibrationConfig()
        observer = Observer(ModelDrafting(parts, Tokens(), fills=given.filler is not None))
        seen = observed(observer, given.data or data_folder(), config)
        confidence, report = fitted(seen, config)
    except PodiumError as error:
        fail(error, as_json=False)
    given.out.write_text(json.dumps(confidence.to_json(), indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
