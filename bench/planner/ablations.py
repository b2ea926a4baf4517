"""What each part of what the planner is told is worth to it: the trained model with that part taken away.

python -m bench.planner.ablations --selector FILE --filler FILE --confidence FILE

Nothing is trained anew, so a part counts what the trained model makes of it, not what another training would make
up for. Measured on the `select` parts, which were not trained on, and written to bench/planner/ablations.json.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench.planner.__main__ import ABLATIONS
from conductor.evaluation.scoring import f1
from conductor.policy.cards import ToolCard
from conductor.policy.confidence import Confidence
from conductor.policy.multilingual import reads_english
from conductor.policy.parts import Array, PartRunner
from conductor.policy.reading import read
from conductor.policy.selecting import BEAM, PLACE, Selector
from conductor.policy.selecting_choice import SEARCHED, Ranking
from conductor.policy.tokens import Tokens
from conductor.training.datasets import data_folder, read_nestools, read_ultratool
from conductor.training.examples import Example
from conductor.training.export import planner_parts
from conductor.training.filler_scoring import score_filler
from conductor.training.parts import TorchParts
from conductor.training.splits import members
from conductor.training.written import read_written

Inputs = dict[str, Array]
_FLOWS_OF_MOVES, _WAYS_OF_MOVES = slice(0, 3), slice(3, 6)
LIKELIEST = Ranking(weights={"log_probability": 1.0})


class Without:
    """Parts that are not told something."""

    def __init__(self, parts: PartRunner, forget: Callable[[str, Inputs], None]) -> None:
        self._parts = parts
        self._forget = forget

    def run(self, part: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """See `PartRunner.run`."""
        told = {name: np.array(value) for name, value in inputs.items()}
        self._forget(part, told)
        return self._parts.run(part, told)


def _no_flows(part: str, inputs: Inputs) -> None:
    if part == "select_joint":
        inputs["edges"][..., 1:] = 0
    if part == "select_step":
        inputs["moves"][..., _FLOWS_OF_MOVES] = 0


def _no_places(part: str, inputs: Inputs) -> None:
    if part == "select_joint":
        inputs["features"][..., PLACE] = inputs["features"][..., PLACE].mean()
    if part == "select_step":
        inputs["moves"][..., _WAYS_OF_MOVES] = 0


def _no_coverage(part: str, inputs: Inputs) -> None:
    if part == "select_step":
        inputs["coverage"][:] = 0


def _all(part: str, inputs: Inputs) -> None:
    pass


def _names_only(card: ToolCard) -> ToolCard:
    return ToolCard(name=card.name, input_schema=card.input_schema, output_schema=card.output_schema)


def _no_names(card: ToolCard) -> ToolCard:
    return replace(card, name="tool")


def _same(card: ToolCard) -> ToolCard:
    return card


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.planner.ablations", description=__doc__)
    parser.add_argument("--selector", type=Path, required=True, help="weights of train_selector")
    parser.add_argument("--filler", type=Path, required=True, help="weights of train_filler")
    parser.add_argument("--confidence", type=Path, required=True, help="what calibrate wrote")
    parser.add_argument("--data", type=Path, help="folder of the public data; else PODIUM_PLANNING_DATA")
    parser.add_argument("--out", type=Path, default=ABLATIONS)
    given = parser.parse_args(arguments)
    data = given.data or data_folder()
    tokens, parts = Tokens(), TorchParts(planner_parts(given.selector, given.filler))
    confidence = Confidence.from_json(json.loads(given.confidence.read_text("utf-8")))
    ultratool = read_ultratool(data)
    sets = {
        "random": members(ultratool, "select"),
        "unseen sets": members(ultratool, "select_disjoint"),
        "NesTools": members(read_nestools(data), "select"),
        "organisations": tuple(
            row for row in members(read_written("agents", data), "select") if reads_english(row.request)
        ),
    }
    variants: list[tuple[str, Callable[[str, Inputs], None], Callable[[ToolCard], ToolCard], int, Ranking]] = [
        ("everything", _all, _same, BEAM, confidence.ranking),
        ("ranked by the search's own probability, length in favour", _all, _same, BEAM, SEARCHED),
        ("the likeliest collection of tools", _all, _same, BEAM, LIKELIEST),
        ("one path only (greedy)", _all, _same, 1, LIKELIEST),
        ("which tool could feed which is not told", _no_flows, _same, BEAM, confidence.ranking),
        ("where the request speaks of a tool is not told", _no_places, _same, BEAM, confidence.ranking),
        ("what was spoken of already is forgotten", _no_coverage, _same, BEAM, confidence.ranking),
        ("tools without descriptions", _all, _names_only, BEAM, confidence.ranking),
        ("tools without names", _all, _no_names, BEAM, confidence.ranking),
    ]
    rows = []
    for name, forget, card, beam, ranking in variants:
        judge = replace(confidence, ranking=ranking)
        values: list[float] = []
        for title, examples in sets.items():
            found = _selection(Without(parts, forget), tokens, examples, card, beam, judge)
            values += found if title in ("random", "unseen sets") else [found[0], found[2]]
        rows.append({"name": name, "values": [round(value, 1) for value in values]})
        sys.stderr.write(f"{rows[-1]}\n")
    sizes = ", ".join(f"{len(examples)} {title}" for title, examples in sets.items())
    tables = [
        {
            "title": "Choosing tools: the shipped model with a part taken away, not trained anew, on the `select` "
            f"parts ({sizes}); links not given.",
            "columns": [
                *("random: node F1", "link F1", "Acc", "unseen sets: node F1", "link F1", "Acc"),
                *("NesTools: node F1", "Acc", "organisations: node F1", "Acc"),
            ],
            "rows": rows,
        },
        _filling(parts, tokens, sets["NesTools"]),
    ]
    given.out.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    return 0


def _selection(
    parts: PartRunner,
    tokens: Tokens,
    examples: Sequence[Example],
    card: Callable[[ToolCard], ToolCard],
    beam: int,
    judge: Confidence,
) -> list[float]:
    """Node F1, link F1 of the chain and the right set of tools, means in percent."""
    selector = Selector(parts, tokens)
    rows = []
    for example in examples:
        index = selector.index([card(tool) for tool in example.tools])
        found = selector.plans(read(parts, tokens, example.request), index, beam=beam)
        plan = judge.settled(found, tools=len(example.tools))[0]
        tools = [example.tools[at].name for at in plan.tools]
        gold = [step.tool for step in example.steps]
        links = {(gold[at], step.tool) for step in example.steps for at in step.depends_on}
        rows.append((f1(tools, gold), f1(set(pairwise(tools)), links), float(set(tools) == set(gold))))
    return [100 * float(value) for value in np.array(rows).mean(axis=0)]


def _filling(parts: PartRunner, tokens: Tokens, examples: Sequence[Example]) -> dict[str, Any]:
    def no_spans(part: str, inputs: Inputs) -> None:
        if part == "fill_joint":
            inputs["pieces"][:] = 0

    def no_pairs(part: str, inputs: Inputs) -> None:
        if part == "fill_joint":
            inputs["pairs"][..., 2:] = 0

    rows = []
    for name, forget in (
        ("everything", _all),
        ("capitals, numbers, dates and quotes of the request are not marked", no_spans),
        ("how arguments and results are alike is not told", no_pairs),
    ):
        found = score_filler(Without(parts, forget), tokens, examples)
        values = [found.argument_f1, found.dependency_f1, found.exact]
        rows.append({"name": name, "values": [round(value, 1) for value in values]})
    return {
        "title": f"Filling with the right tools given: {len(examples)} `select` requests of NesTools.",
        "columns": ["argument F1", "dependency F1", "exact"],
        "rows": rows,
    }


if __name__ == "__main__":
    raise SystemExit(main())
