"""Fits how sure the planner may be.

`python -m conductor.training.calibrate --selector FILE --filler FILE --out FILE`: the weights must be those of a
training without the `select` parts, for a model is too sure of what it was trained on. What is fitted here then
goes with the final weights of the same design (`export --confidence`).
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from conductor.evaluation.calibration import Judged, accepted_at, calibration_error, threshold_for
from conductor.evaluation.scoring import normalised
from conductor.plan import Literal, StepRef
from conductor.policy.cards import ToolCard
from conductor.policy.confidence import (
    ARGUMENT_FEATURES,
    PLAN_FEATURES,
    STEP_FEATURES,
    Confidence,
    argument_features,
    best_serving,
    nothing_features,
    plan_features,
    preferred,
    refused,
    step_features,
)
from conductor.policy.filling import Filled, FilledStep, Filler
from conductor.policy.multilingual import multilingual_memory, reads_english
from conductor.policy.parts import Floats, PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import NOTHING, Extra, Hypothesis, Selector
from conductor.policy.tokens import Tokens
from conductor.training.datasets import (
    data_folder,
    read_bfcl,
    read_nestools,
    read_sealtools,
    read_ultratool,
    ultratool_links,
)
from conductor.training.examples import Example, GoldStep
from conductor.training.logistic import Fit, fit
from conductor.training.splits import members
from conductor.training.written import FOLDER, read_written
from podium.cli import fail
from podium.errors import PodiumError

Links = frozenset[tuple[str, str]]


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


@dataclass(slots=True, kw_only=True)
class Observed:
    """Decisions of a kind: their features, whether they were right, and the request they belong to."""

    features: list[dict[str, float]] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def add(self, features: dict[str, float], right: bool, group: str) -> None:
        """One more decision."""
        self.features.append(features)
        self.right.append(right)
        self.groups.append(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What the search found for an example."""

    example: Example
    hypotheses: tuple[Hypothesis, ...]

    @property
    def group(self) -> str:
        """The request; the same one may be planned several times."""
        return f"{self.example.source}/{self.example.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All that was observed."""

    searches: list[Searched] = field(default_factory=list)
    arguments: Observed = field(default_factory=Observed)


class Drafting(Protocol):
    """What is observed: a model's plans and arguments."""

    def plans(self, example: Example, links: Links | None) -> Sequence[Hypothesis]:
        """Ways to serve the request, best first."""
        ...

    def filled(self, example: Example, steps: Sequence[ToolCard]) -> Sequence[FilledStep]:
        """The arguments of `steps`; () where it fills none."""
        ...


class ModelDrafting:
    """Plans and arguments of parts, as the planner of a server makes them."""

    def __init__(
        self,
        parts: PartRunner,
        tokens: Tokens,
        *,
        fills: bool = True,
        foreign: Callable[[str], Floats] = multilingual_memory,
    ) -> None:
        """Use a model.

        Args:
            parts: the model.
            tokens: the vocabulary.
            fills: whether the model has the parts of the filler.
            foreign: reads requests that the English encoder cannot.
        """
        self._parts = parts
        self._tokens = tokens
        self._fills = fills
        self._foreign = foreign
        self._selector = Selector(parts, tokens)
        self._filler = Filler(parts, tokens)

    def plans(self, example: Example, links: Links | None) -> Sequence[Hypothesis]:
        """See `Drafting.plans`.

        Raises:
            OnnxError: the runtime failed.
        """
        extra = NOTHING
        if not reads_english(example.request):
            extra = Extra(multilingual=self._foreign(example.request))
        reading = read(self._parts, self._tokens, example.request)
        return self._selector.plans(reading, self._selector.index(example.tools), links=links, extra=extra)

    def filled(self, example: Example, steps: Sequence[ToolCard]) -> Sequence[FilledStep]:
        """See `Drafting.filled`.

        Raises:
            OnnxError: the runtime failed.
        """
        if not self._fills or not any(card.inputs for card in steps):
            return ()
        reading = read(self._parts, self._tokens, example.request)
        return self._filler.fill(reading, steps, self._filler.index(steps))


class Observer:
    """Has examples planned and notes what was right."""

    def __init__(self, drafting: Drafting) -> None:
        """Begin with nothing seen."""
        self._drafting = drafting
        self.seen = Observations()

    def plan(self, example: Example, *, links: Links | None = None) -> None:
        """Note what the search finds.

        Raises:
            OnnxError: the runtime failed.
        """
        found = tuple(self._drafting.plans(example, links))
        self.seen.searches.append(Searched(example=example, hypotheses=found))

    def fill(self, example: Example) -> None:
        """Note how sure the filler was of each argument when the right tools are given.

        Raises:
            OnnxError: the runtime failed.
        """
        cards = {card.name: card for card in reversed(example.tools)}
        steps = [cards[step.tool] for step in example.steps]
        for gold, found in zip(example.steps, self._drafting.filled(example, steps), strict=False):
            for name, value in found.arguments.items():
                self.seen.arguments.add(
                    argument_features(value.confidence),
                    _right(value, name, gold, example.steps, steps),
                    f"{example.source}/{example.id}",
                )


def _right(value: Filled, name: str, gold: GoldStep, right: Sequence[GoldStep], steps: Sequence[ToolCard]) -> bool:
    if gold.accept is not None:
        options = [normalised(option) for option in gold.accept.get(name, ())]
        return isinstance(value.argument, Literal) and normalised(value.argument.value) in options
    wanted = gold.arguments.get(name)
    if isinstance(wanted, dict) and "step" in wanted:
        argument = value.argument
        return (
            isinstance(argument, StepRef)
            and steps[argument.step].name == right[wanted["step"]].tool
            and argument.field == wanted.get("field")
        )
    return (
        isinstance(value.argument, Literal)
        and name in gold.arguments
        and (normalised(value.argument.value) == normalised(wanted))
    )


def without_its_tools(example: Example) -> Example:
    """The same request where the tools it needs are not registered; the right plan is empty."""
    left = tuple(card for card in example.tools if card.name not in example.tool_set)
    return Example(source=example.source, id=example.id, request=example.request, tools=left, steps=())


def fitted(seen: Observations, config: CalibrationConfig) -> tuple[Confidence, dict[str, Any]]:
    """The parameters, and how good they are on folds that were left out.

    Raises:
        ValueError: there is too little to fit on.
    """
    nothing, refuse_at, refusals = _refusals(seen.searches, config)
    settled = [
        replace(one, hypotheses=_settled(one.hypotheses, refuse=sure >= refuse_at))
        for one, sure in zip(seen.searches, nothing.left_out, strict=True)
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
        accept_at=accept_at,
    )
    report: dict[str, Any] = {
        name: _report(fits[name], decided)
        for name, decided in (("plan", plans), ("step", steps), ("argument", seen.arguments))
        if name in fits
    }
    return confidence, report | {
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
    parser.add_argument("--selector", type=Path, required=True, help="weights of train_selector, without select")
    parser.add_argument("--filler", type=Path, help="weights of train_filler, without select; none: no arguments")
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
